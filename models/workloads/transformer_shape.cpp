// Arithmetic of a decoder: parameters and floating-point operations, term by term.
#include "models/workloads/transformer_shape.hpp"

#include <algorithm>
#include <array>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// Matrices of a feed-forward block: gate and up, or up alone, then down.
double feed_forward_weights(const TransformerSpec& model, std::int64_t inner) {
  return (model.gated ? 3.0 : 2.0) * as_double(model.hidden) * as_double(inner);
}

double norm_parameters(const TransformerSpec& model) { return (model.biases ? 2.0 : 1.0) * as_double(model.hidden); }

/// Norms inside latent attention, on the two compressed vectors.
double latent_norm_parameters(const TransformerSpec& model) {
  return as_double(model.kv_lora_rank) + as_double(model.q_lora_rank);
}

double sharded_attention_weights(const AttentionShape& attention) {
  double weights = attention.output.weights();
  for (const Linear& linear : attention.inputs) weights += linear.weights();
  return weights;
}

double replicated_attention_weights(const AttentionShape& attention) {
  double weights = 0;
  for (const Linear& linear : attention.replicated_inputs) weights += linear.weights();
  return weights;
}

double attention_parameters(const TransformerSpec& model, std::int64_t tensor) {
  const AttentionShape attention = attention_shape(model, tensor);
  const double shards = as_double(tensor);
  double parameters = sharded_attention_weights(attention) / shards + replicated_attention_weights(attention);
  if (model.kv_lora_rank > 0) parameters += latent_norm_parameters(model);
  if (model.biases) {
    for (const Linear& linear : attention.inputs) parameters += as_double(linear.out) / shards;
    parameters += as_double(model.hidden);  // of the output, added once after the reduction: on every rank
  }
  return parameters;
}

double feed_forward_parameters(const TransformerSpec& model, std::int64_t inner, std::int64_t tensor) {
  double parameters = feed_forward_weights(model, inner) / as_double(tensor);
  if (model.biases)
    parameters += (model.gated ? 2.0 : 1.0) * as_double(inner) / as_double(tensor) + as_double(model.hidden);
  return parameters;
}

BlockParameters layer_parameters(const TransformerSpec& model, Block block, std::int64_t tensor, std::int64_t expert) {
  BlockParameters result;
  result.dense = attention_parameters(model, tensor) + 2.0 * norm_parameters(model);
  if (block == Block::dense_layer) {
    result.dense += feed_forward_parameters(model, model.ffn_hidden, tensor);
    return result;
  }
  result.dense += as_double(model.hidden) * as_double(model.experts);  // router
  result.dense += as_double(model.shared_experts) * feed_forward_parameters(model, model.expert_ffn_hidden, tensor);
  result.experts =
      as_double(model.experts) / as_double(expert) * feed_forward_parameters(model, model.expert_ffn_hidden, tensor);
  return result;
}

}  // namespace

AttentionShape attention_shape(const TransformerSpec& model, std::int64_t tensor) {
  AttentionShape shape;
  shape.heads = model.heads;
  if (model.kv_lora_rank == 0) {
    const std::int64_t kv_heads = std::max(model.kv_heads, tensor > model.kv_heads ? tensor : model.kv_heads);
    shape.key_dim = shape.value_dim = model.head_dim;
    shape.key_value_width = 2 * kv_heads * model.head_dim;
    shape.inputs = {{model.hidden, model.heads * model.head_dim + shape.key_value_width}};
    shape.output = {model.heads * model.head_dim, model.hidden};
    return shape;
  }
  // DeepSeek-V2 (2024), section 2.1: keys and queries carry a rotary part of their own; K and V come from one
  // compressed vector, queries from another.
  shape.key_dim = model.head_dim + model.rope_head_dim;
  shape.value_dim = model.v_head_dim;
  shape.key_value_width = model.heads * (shape.key_dim + shape.value_dim);
  shape.replicated_inputs.push_back({model.hidden, model.kv_lora_rank + model.rope_head_dim});
  shape.inputs.push_back({model.kv_lora_rank, model.heads * (model.head_dim + model.v_head_dim)});
  if (model.q_lora_rank > 0) {
    shape.replicated_inputs.push_back({model.hidden, model.q_lora_rank});
    shape.inputs.push_back({model.q_lora_rank, model.heads * shape.key_dim});
  } else {
    shape.inputs.push_back({model.hidden, model.heads * shape.key_dim});
  }
  shape.output = {model.heads * model.v_head_dim, model.hidden};
  return shape;
}

Block layer_block(const TransformerSpec& model, std::int64_t layer) {
  return model.experts > 0 && layer >= model.dense_layers ? Block::expert_layer : Block::dense_layer;
}

BlockParameters block_parameters(const TransformerSpec& model, Block block, std::int64_t tensor, std::int64_t expert,
                                 bool own_head) {
  const double table = as_double(model.vocabulary) * as_double(model.hidden) / as_double(tensor);
  switch (block) {
    case Block::embedding: {
      const std::int64_t positions = model.learned_positions ? model.sequence_length : 0;
      return {table + as_double(positions) * as_double(model.hidden), 0};
    }
    case Block::head:
      return {norm_parameters(model) + (model.tied_embeddings && !own_head ? 0.0 : table), 0};
    default:
      return layer_parameters(model, block, tensor, expert);
  }
}

double parameter_count(const TransformerSpec& model) {
  double total = block_parameters(model, Block::embedding).total() + block_parameters(model, Block::head).total();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    total += block_parameters(model, layer_block(model, layer)).total();
  }
  return total;
}

ForwardFlops forward_flops_per_token(const TransformerSpec& model, std::int64_t sequence_length, bool causal) {
  const AttentionShape attention = attention_shape(model);
  const double projections = sharded_attention_weights(attention) + replicated_attention_weights(attention);
  ForwardFlops flops;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    double weights = projections;
    if (layer_block(model, layer) == Block::dense_layer) {
      weights += feed_forward_weights(model, model.ffn_hidden);
    } else {
      const std::int64_t active = model.experts_per_token + model.shared_experts;
      weights += as_double(active) * feed_forward_weights(model, model.expert_ffn_hidden) +
                 as_double(model.hidden) * as_double(model.experts);
    }
    flops.linear += 2.0 * weights;
  }
  // Scores and weighted sum: every query meets every key, or half of them under a causal mask.
  const double width = as_double(attention.heads) * as_double(attention.key_dim + attention.value_dim);
  flops.attention = 2.0 * as_double(model.layers) * width * as_double(sequence_length) * (causal ? 0.5 : 1.0);
  flops.logits = 2.0 * as_double(model.hidden) * as_double(model.vocabulary);
  return flops;
}

std::string_view name(Recompute recompute) {
  constexpr std::array<std::string_view, 4> kNames{"none", "elementwise", "selective", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

std::vector<WorkloadFigures::FlopTerm> training_flops(const TransformerSpec& model, std::int64_t sequence_length,
                                                      double tokens, bool causal, Recompute recompute) {
  const ForwardFlops forward = forward_flops_per_token(model, sequence_length, causal);
  double again = 0;
  if (recompute == Recompute::selective) again = forward.attention;
  if (recompute == Recompute::full) again = forward.attention + forward.linear;
  return {{"linear layers", Flops(3.0 * tokens * forward.linear)},
          {"attention", Flops(3.0 * tokens * forward.attention)},
          {"logits", Flops(3.0 * tokens * forward.logits)},
          {"recompute", Flops(tokens * again)}};
}

Flops hardware_flops(const std::vector<WorkloadFigures::FlopTerm>& terms) {
  Flops sum{0};
  for (const auto& term : terms) sum += term.flops;
  return sum;
}

Flops model_flops(const std::vector<WorkloadFigures::FlopTerm>& terms) {
  Flops sum{0};
  for (const auto& term : terms) {
    if (term.name != "recompute") sum += term.flops;
  }
  return sum;
}

double model_flops_utilization(Flops flops_per_step, double step_seconds, const GpuSpec& gpu, DataType type,
                               std::int64_t gpus) {
  ensure(step_seconds > 0 && gpus > 0, "utilization of {} GPUs over {} s", gpus, step_seconds);
  const FlopRate peak = gpu.peak(type);
  if (peak.value() <= 0) infeasible("{} has no {} peak to measure utilization against", gpu.name, name(type));
  const FlopRate achieved(flops_per_step.value() / step_seconds / as_double(gpus));
  const double utilization = achieved / peak;
  if (utilization > 1) {
    infeasible(
        "model FLOPs utilization {:.3f} is above 1: {} per GPU against the dense {} peak of {}, {}. Check the step "
        "time, "
        "the data type, the GPU and the FLOP count (peaks with sparsity are twice the dense ones)",
        utilization, format(achieved), name(type), gpu.name, format(peak));
  }
  return utilization;
}

double checkpoint_bytes(double parameters) { return 14.0 * parameters; }

}  // namespace clustersim
