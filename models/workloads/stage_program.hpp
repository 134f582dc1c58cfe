// The frame of a pipeline stage's program: launches, receives, calls and sends, around whatever a call computes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/programs/program.hpp"
#include "models/workloads/parallel.hpp"
#include "models/workloads/schedule.hpp"

namespace clustersim {

/// Streams of a training program. Sends and receives of each direction have their own, so that an early receive never
/// holds up the other direction.
enum TrainingStream : std::uint8_t {
  kComputeStream,
  kForwardSendStream,
  kForwardReceiveStream,
  kBackwardSendStream,
  kBackwardReceiveStream,
  kHostStream,       // a controller's launches
  kDataStream,       // gradients
  kParameterStream,  // sharded parameters
  kTensorStream,     // tensor-parallel collectives that run beside GEMMs
  kContextStream,    // keys and values that circulate beside attention
  kTrainingStreams,
};

/// Slots of the communicators of two that join neighbouring stages: sender is member 0, receiver member 1.
enum PipelineSlot : std::uint16_t {
  kForwardOutSlot,
  kForwardInSlot,
  kBackwardOutSlot,
  kBackwardInSlot,
  kPipelineSlots
};

/// Joins every rank to the ranks before and after it along the pipeline. `wrap`: also the last stage to the first, for
/// chunks beyond the first.
void add_pipeline_communicators(Job& job, const RankGrid& grid, bool wrap);

/// Who launches the calls of a pipeline stage.
enum class Dispatch : std::uint8_t {
  per_rank,           // every rank its own; the overhead delays each call once its input is there
  single_controller,  // one process launches all calls of all stages, and each transfer of a call's output per
                      // receiving GPU, one after another and ahead of the GPUs
};

struct StageFrame {
  PipelineShape shape;
  std::uint32_t stage = 0;
  Bytes payload{0};  // to the next stage, per call and rank
  Picoseconds call_overhead{0};
  Dispatch dispatch = Dispatch::per_rank;
  std::span<const std::uint32_t> launches = {};  // single controller: this stage's row of controller_launches()
};

/// Writes what a call computes, its first compute instruction waiting for `inputs`; returns the instruction that
/// produces the output.
using CallBody = std::function<std::uint32_t(const StageCall& call, std::span<const std::uint32_t> inputs)>;

/// Writes all calls of a stage in the order of its schedule. Receives are posted as early as their order allows; a send
/// waits for the call's output and does not hold up the next call.
void write_stage_calls(ProgramBuilder& builder, const StageFrame& frame, const CallBody& body);

}  // namespace clustersim
