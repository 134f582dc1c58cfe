// Arithmetic of a decoder: parameters and floating-point operations, term by term.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/workloads/workload.hpp"

namespace clustersim {

/// The pieces that a model is cut into for pipelining, sharding and recomputation.
enum class Block : std::uint8_t { embedding, dense_layer, expert_layer, head };

/// One weight matrix of a layer: out = W in.
struct Linear {
  std::int64_t in = 0;
  std::int64_t out = 0;
  [[nodiscard]] double weights() const { return static_cast<double>(in) * static_cast<double>(out); }
};

/// Sizes of one attention block, of ordinary grouped-query or of latent attention, before sharding.
struct AttentionShape {
  std::vector<Linear> replicated_inputs;  // projections that every tensor rank computes whole (latent attention)
  std::vector<Linear> inputs;             // column-parallel: `out` is divided among tensor ranks
  Linear output;                          // row-parallel: `in` is divided
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;          // of one head: in the scores
  std::int64_t value_dim = 0;        // of one head: in the weighted sum
  std::int64_t key_value_width = 0;  // of one token: K and V of all heads that are kept or exchanged
};
/// With more tensor ranks than key-value heads each rank keeps a copy of one head.
AttentionShape attention_shape(const TransformerSpec& model, std::int64_t tensor = 1);

/// Kind of layer `layer` (0-based): leading layers of an expert model may be dense.
Block layer_block(const TransformerSpec& model, std::int64_t layer);

/// Parameters that one rank of a tensor and expert group holds of a block.
struct BlockParameters {
  double dense = 0;    // replicated over the whole data-parallel group
  double experts = 0;  // replicated over the data-parallel ranks outside the expert group
  [[nodiscard]] double total() const { return dense + experts; }
};
/// `own_head`: the head keeps its own copy of a tied embedding, as the last stage of a pipeline must.
BlockParameters block_parameters(const TransformerSpec& model, Block block, std::int64_t tensor = 1,
                                 std::int64_t expert = 1, bool own_head = false);

/// Parameters of the whole model.
double parameter_count(const TransformerSpec& model);

/// Operations (two per multiply-add) of one forward pass, per token. Embedding look-ups have none.
struct ForwardFlops {
  double linear = 0;     // projections and feed-forward blocks, active experts only
  double attention = 0;  // scores and weighted sums
  double logits = 0;
};
/// A causal mask halves the attention term; published "Megatron" counts do not take the half (causal = false).
ForwardFlops forward_flops_per_token(const TransformerSpec& model, std::int64_t sequence_length, bool causal);

/// What the backward pass computes again. elementwise: norm outputs and the activation function's products, which cost
/// a pass over memory and no matrix product; selective: the attention core; full: whole layers from their inputs.
enum class Recompute : std::uint8_t { none, elementwise, selective, full };
std::string_view name(Recompute recompute);

/// Terms of a training step on `tokens` tokens: the backward pass does twice the forward's operations. `recompute` is
/// the attention again (selective) or every layer's forward pass again, but never the logits (full).
std::vector<WorkloadFigures::FlopTerm> training_flops(const TransformerSpec& model, std::int64_t sequence_length,
                                                      double tokens, bool causal, Recompute recompute);
/// Sum of the terms without / with recomputation.
Flops model_flops(const std::vector<WorkloadFigures::FlopTerm>& terms);
Flops hardware_flops(const std::vector<WorkloadFigures::FlopTerm>& terms);

/// Model FLOPs of a step over what the GPUs' dense peak would do in its time. Throws Infeasible, naming peak and type,
/// when the GPU has no such peak or the result exceeds 1: then time, peak (sparse instead of dense, another type or
/// another GPU) or FLOP count is wrong.
double model_flops_utilization(Flops flops_per_step, double step_seconds, const GpuSpec& gpu, DataType type,
                               std::int64_t gpus);

/// Bytes of a training checkpoint: 16-bit weights and 32-bit master weights and Adam moments, 14 per parameter.
double checkpoint_bytes(double parameters);

}  // namespace clustersim
