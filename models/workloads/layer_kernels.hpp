// What one block of a decoder runs on one rank: its kernels and collectives, forward, backward and recomputed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/programs/program.hpp"
#include "models/workloads/stage_program.hpp"
#include "models/workloads/transformer_options.hpp"

namespace clustersim {

/// Communicator slots of a rank, after those of the pipeline.
enum TrainingSlot : std::uint16_t {
  kTensorSlot = kPipelineSlots,
  kContextSlot,
  kExpertSlot,
  kGradientSlot,        // ranks with the same dense parameters: data x context
  kExpertGradientSlot,  // ranks with the same experts: data / expert x context
  kModelSlot,           // ranks of one replica: tensor x pipeline
  kEmbeddingSlot,       // first and last stage, when they share the embedding
  kTrainingSlots,
};

/// A kernel or collective of a block. Steps on the compute stream run in order. A step on another stream starts when
/// the compute step before it has finished; a compute step starts after the other-stream step it `awaits`.
struct BlockStep {
  std::string_view label;
  std::uint8_t stream = kComputeStream;
  Cause cause = Cause::compute;
  Picoseconds duration{0};                  // kernels
  std::optional<Operation> operation = {};  // collectives
  std::uint16_t slot = 0;
  std::optional<std::size_t> awaits = {};  // index of a step of the same list
};

struct BlockSteps {
  std::vector<BlockStep> forward;
  std::vector<BlockStep> backward;  // full or selective recomputation included
};

/// Durations are those of `gpu`; shapes are those of one micro-batch on one rank.
BlockSteps block_steps(const TransformerOptions& options, Block block, const GpuSpec& gpu);

/// Reading and writing the optimizer state, gradients and weights of `parameters`.
Picoseconds optimizer_time(const TransformerOptions& options, double parameters, const GpuSpec& gpu);

/// What goes to the next stage per micro-batch and rank; with sequence parallelism each rank sends its own shard.
Bytes stage_payload(const TransformerOptions& options);

}  // namespace clustersim
