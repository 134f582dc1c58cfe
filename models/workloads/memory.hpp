// GPU memory of a training job: model state by ZeRO stage and activations by recomputation mode.
#pragma once

#include <cstdint>

#include "models/catalog/catalog.hpp"
#include "models/workloads/transformer_options.hpp"
#include "models/workloads/workload.hpp"

namespace clustersim {

/// Bytes per rank of the three parts of a model's state. ZeRO (Rajbhandari et al. 2020, section 3): stage 1 shards the
/// optimizer state over the data-parallel ranks, stage 2 the gradients too, stage 3 the weights too.
struct ModelState {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  [[nodiscard]] double total() const { return weights + gradients + optimizer; }
};
struct StateBytes {  // per parameter
  double weight = 2;
  double gradient = 2;
  double optimizer = 12;
};
ModelState model_state(double parameters, std::int64_t zero_stage, std::int64_t data_ranks, const StateBytes& bytes);

/// Bytes one rank keeps of a block for the backward pass of one micro-batch (Korthikanti et al. 2022, section 4,
/// generalized to gated and grouped-query layers and experts).
double activation_bytes(const TransformerOptions& options, Block block);

/// The account of one rank of a pipeline stage.
MemoryReport stage_memory(const TransformerOptions& options, std::uint32_t stage, Bytes capacity);
/// That of the stage that needs most.
MemoryReport fullest_stage_memory(const TransformerOptions& options, Bytes capacity);

/// Throws Infeasible when the fullest stage does not fit the GPU, with changes that were tried and found to fit.
void require_memory(const TransformerOptions& options, const GpuSpec& gpu);

}  // namespace clustersim
