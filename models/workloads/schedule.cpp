// Pipeline schedules: GPipe, 1F1B and interleaved 1F1B as lists of calls per stage.
#include "models/workloads/schedule.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr std::array<std::string_view, 3> kNames{"gpipe", "1f1b", "interleaved-1f1b"};

/// Huang et al. 2019: all forward passes, then all backward passes.
std::vector<StageCall> gpipe_calls(const PipelineShape& shape) {
  std::vector<StageCall> calls;
  for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
    for (std::uint32_t m = 0; m < shape.micro_batches; ++m) calls.push_back({false, m, chunk});
  }
  for (std::uint32_t chunk = shape.chunks; chunk-- > 0;) {
    for (std::uint32_t m = 0; m < shape.micro_batches; ++m) calls.push_back({true, m, chunk});
  }
  return calls;
}

/// Narayanan et al. 2021, section 2.2.2: micro-batches go through the chunks in groups of as many as there are stages;
/// the k-th forward (or backward, chunks reversed) of a stage.
StageCall interleaved_call(const PipelineShape& shape, std::uint32_t k, bool backward) {
  const std::uint32_t group_size = shape.stages * shape.chunks;
  const std::uint32_t in_group = k % group_size;
  const std::uint32_t chunk = in_group / shape.stages;
  return {backward, k / group_size * shape.stages + in_group % shape.stages,
          backward ? shape.chunks - 1 - chunk : chunk};
}

/// Warm-up forwards, then one forward and one backward in turn, then the backwards that are left.
template <class Call>
std::vector<StageCall> warm_up_then_alternate(std::uint32_t total, std::uint32_t warm_up, Call call) {
  std::vector<StageCall> calls;
  calls.reserve(2 * std::size_t{total});
  warm_up = std::min(warm_up, total);
  for (std::uint32_t k = 0; k < warm_up; ++k) calls.push_back(call(k, false));
  for (std::uint32_t k = warm_up; k < total; ++k) {
    calls.push_back(call(k, false));
    calls.push_back(call(k - warm_up, true));
  }
  for (std::uint32_t k = total - warm_up; k < total; ++k) calls.push_back(call(k, true));
  return calls;
}

/// Whether the positions before a forward (after a backward) call have produced what it needs. On one position passes
/// finish in micro-batch order, so done[position][backward] counts them.
bool input_is_ready(const PipelineShape& shape, std::uint32_t stage, const StageCall& call,
                    const std::vector<std::array<std::uint32_t, 2>>& done) {
  const std::uint32_t position = call.chunk * shape.stages + stage;
  const std::uint32_t last = shape.stages * shape.chunks - 1;
  if (!call.backward) return position == 0 || done[position - 1][0] > call.micro_batch;
  if (position == last) return done[position][0] > call.micro_batch;
  return done[position + 1][1] > call.micro_batch;
}

}  // namespace

std::string_view name(PipelineSchedule schedule) { return kNames[static_cast<std::size_t>(schedule)]; }

PipelineSchedule parse_pipeline_schedule(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<PipelineSchedule>(i);
  }
  const std::vector<std::string> names(kNames.begin(), kNames.end());
  bad_input("\"{}\" is not a pipeline schedule{}; there are gpipe, 1f1b and interleaved-1f1b", text,
            did_you_mean(text, names));
}

std::vector<StageCall> stage_calls(const PipelineShape& shape, std::uint32_t stage) {
  ensure(stage < shape.stages && shape.chunks > 0 && shape.micro_batches > 0, "stage {} of {}", stage, shape.stages);
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
      return gpipe_calls(shape);
    case PipelineSchedule::one_forward_one_backward:
      ensure(shape.chunks == 1, "1f1b has one chunk per stage, not {}", shape.chunks);
      return warm_up_then_alternate(shape.micro_batches, shape.stages - stage - 1,
                                    [](std::uint32_t k, bool backward) { return StageCall{backward, k, 0}; });
    case PipelineSchedule::interleaved:
      ensure(shape.micro_batches % shape.stages == 0, "interleaved: {} micro-batches on {} stages", shape.micro_batches,
             shape.stages);
      return warm_up_then_alternate(
          shape.micro_batches * shape.chunks, (shape.stages - stage - 1) * 2 + (shape.chunks - 1) * shape.stages,
          [&](std::uint32_t k, bool backward) { return interleaved_call(shape, k, backward); });
  }
  throw BrokenContract("a pipeline schedule without an order");
}

double peak_in_flight(const std::vector<StageCall>& calls, const std::vector<double>& weight_of_chunk) {
  double held = 0;
  double peak = 0;
  for (const StageCall& call : calls) {
    held += (call.backward ? -1.0 : 1.0) * weight_of_chunk[call.chunk];
    peak = std::max(peak, held);
  }
  return peak;
}

std::vector<std::vector<std::uint32_t>> controller_launches(const PipelineShape& shape,
                                                            std::uint32_t launches_per_transfer) {
  std::vector<std::vector<StageCall>> calls;
  calls.reserve(shape.stages);
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) calls.push_back(stage_calls(shape, stage));
  std::vector<std::vector<std::uint32_t>> launches(shape.stages);
  std::vector<std::array<std::uint32_t, 2>> done(std::size_t{shape.stages} * shape.chunks, {0, 0});
  const std::uint32_t last = shape.stages * shape.chunks - 1;
  std::uint32_t launched = 0;
  for (std::uint32_t left = 2 * (last + 1) * shape.micro_batches; left > 0;) {
    // Every call takes one tick; a stage starts its next call when the input was there as the tick began.
    std::vector<std::pair<std::uint32_t, StageCall>> started;
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      const std::size_t next = launches[stage].size();
      if (next < calls[stage].size() && input_is_ready(shape, stage, calls[stage][next], done)) {
        started.emplace_back(stage, calls[stage][next]);
      }
    }
    ensure(!started.empty(), "{} deadlocks on {} stages", name(shape.schedule), shape.stages);
    for (const auto& [stage, call] : started) {
      const std::uint32_t position = call.chunk * shape.stages + stage;
      launches[stage].push_back(++launched);
      if (shape.stages > 1 && position != (call.backward ? 0 : last)) launched += launches_per_transfer;
      ++done[position][call.backward ? 1 : 0];
      --left;
    }
  }
  return launches;
}

}  // namespace clustersim
