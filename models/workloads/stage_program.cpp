// The frame of a pipeline stage's program: launches, receives, calls and sends.
#include "models/workloads/stage_program.hpp"

#include <array>

#include "sim/errors.hpp"

namespace clustersim {

void add_pipeline_communicators(Job& job, const RankGrid& grid, bool wrap) {
  const std::uint32_t stages = grid.extent(Axis::pipeline);
  if (stages < 2) return;
  constexpr std::array<std::uint16_t, 2> kForward{kForwardOutSlot, kForwardInSlot};
  constexpr std::array<std::uint16_t, 2> kBackward{kBackwardOutSlot, kBackwardInSlot};
  for (std::uint32_t r = 0; r < grid.ranks(); ++r) {
    const RankId rank(r);
    const std::uint32_t stage = grid.coordinate(rank, Axis::pipeline);
    if (stage + 1 == stages && !wrap) continue;
    const RankId next = grid.moved(rank, Axis::pipeline, (stage + 1) % stages);
    job.add_communicator(std::array{rank, next}, kForward);
    job.add_communicator(std::array{next, rank}, kBackward);
  }
}

void write_stage_calls(ProgramBuilder& builder, const StageFrame& frame, const CallBody& body) {
  const Operation transfer{Collective::send_receive, frame.payload, Cause::exposed_pipeline};
  const std::uint32_t last = frame.shape.stages * frame.shape.chunks - 1;
  const std::vector<StageCall> calls = stage_calls(frame.shape, frame.stage);
  std::uint32_t launched = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const StageCall& call = calls[i];
    const std::uint32_t position = call.chunk * frame.shape.stages + frame.stage;
    const bool several = frame.shape.stages > 1;
    std::vector<std::uint32_t> inputs;
    if (several && !call.backward && position > 0) {
      inputs.push_back(builder.collective(kForwardReceiveStream, kForwardInSlot, transfer, "receive activations"));
    }
    if (several && call.backward && position < last) {
      inputs.push_back(builder.collective(kBackwardReceiveStream, kBackwardInSlot, transfer, "receive gradients"));
    }
    if (frame.call_overhead.count() > 0 && frame.dispatch == Dispatch::single_controller) {
      // The controller has to do every launch before this one, whichever stage it belongs to.
      ensure(frame.launches.size() == calls.size(), "{} launches for {} calls", frame.launches.size(), calls.size());
      const Picoseconds since = (frame.launches[i] - launched) * frame.call_overhead;
      inputs.push_back(builder.kernel(kHostStream, Cause::other, "launch", since));
      launched = frame.launches[i];
    } else if (frame.call_overhead.count() > 0) {
      const std::uint32_t launch = builder.kernel(kComputeStream, Cause::other, "launch", frame.call_overhead, inputs);
      inputs = {launch};
    }
    const std::array<std::uint32_t, 1> output{body(call, inputs)};
    if (several && !call.backward && position < last) {
      builder.collective(kForwardSendStream, kForwardOutSlot, transfer, "send activations", output);
    }
    if (several && call.backward && position > 0) {
      builder.collective(kBackwardSendStream, kBackwardOutSlot, transfer, "send gradients", output);
    }
  }
}

}  // namespace clustersim
