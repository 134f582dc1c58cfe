// What one block of a decoder runs on one rank, after Megatron-LM's tensor and sequence parallelism (Shoeybi et al.
// 2019, Korthikanti et al. 2022), ring attention (Liu et al. 2023) and expert parallelism with two all-to-alls.
#include "models/workloads/layer_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "models/compute/kernel_time.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }
Bytes as_bytes(double value) { return Bytes(std::llround(value)); }

/// Writes the steps of one block. Passes append to `steps`; `cause` says whether this is work done again.
class BlockWriter {
 public:
  BlockWriter(const TransformerOptions& options, const GpuSpec& gpu)
      : options_(options),
        model_(options.model),
        gpu_(gpu),
        attention_(attention_shape(options.model, options.parallel.tensor)),
        tensor_(options.parallel.tensor),
        tokens_(options.micro_batch * options.sequence_length / options.parallel.context),
        local_tokens_(options.sequence_parallel ? tokens_ / tensor_ : tokens_),
        element_(options.element_bytes()) {}

  std::vector<BlockStep> take() { return std::move(steps_); }

  void forward(Block block) {
    switch (block) {
      case Block::embedding:
        return embedding_forward();
      case Block::head:
        return head_forward();
      case Block::dense_layer:
        attention_half_forward();
        return dense_half_forward(model_.ffn_hidden);
      case Block::expert_layer:
        attention_half_forward();
        if (model_.shared_experts > 0) dense_half_forward(model_.shared_experts * model_.expert_ffn_hidden);
        return expert_half_forward();
    }
  }

  void backward(Block block) {
    const bool is_layer = block == Block::dense_layer || block == Block::expert_layer;
    if (is_layer && options_.recompute == Recompute::full) {
      cause_ = Cause::recompute;
      forward(block);
      cause_ = Cause::compute;
    }
    switch (block) {
      case Block::embedding:
        return embedding_backward();
      case Block::head:
        return head_backward();
      case Block::dense_layer:
        dense_half_backward(model_.ffn_hidden);
        return attention_half_backward();
      case Block::expert_layer:
        expert_half_backward();
        if (model_.shared_experts > 0) dense_half_backward(model_.shared_experts * model_.expert_ffn_hidden);
        return attention_half_backward();
    }
  }

 private:
  // --- single steps ---

  std::size_t add(const BlockStep& step) {
    steps_.push_back(step);
    return steps_.size() - 1;
  }

  void kernel(std::string_view label, Picoseconds duration, std::optional<std::size_t> awaits = {}) {
    add({.label = label, .cause = cause_, .duration = duration, .awaits = awaits});
  }

  std::size_t collective(std::string_view label, std::uint8_t stream, std::uint16_t slot, Collective kind, double bytes,
                         Cause exposed) {
    return add({.label = label,
                .stream = stream,
                .cause = exposed,
                .operation = Operation{kind, as_bytes(bytes), exposed},
                .slot = slot});
  }

  [[nodiscard]] Picoseconds multiply(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) const {
    return kernel_time(gpu_, gemm(options_.precision, m, n, k, batch));
  }

  /// One pass over memory of `bytes_per_element_of` x width x rows.
  [[nodiscard]] Picoseconds stream_memory(double bytes) const {
    return kernel_time(gpu_, memory_bound(as_bytes(bytes)));
  }

  [[nodiscard]] double hidden_bytes(std::int64_t rows) const {
    return as_double(rows) * as_double(model_.hidden) * element_;
  }

  // --- tensor parallelism ---

  /// Sequence shards become whole sequences before a column-parallel layer.
  void gather_sequence(std::string_view label) {
    if (options_.sequence_parallel && tensor_ > 1) {
      collective(label, kComputeStream, kTensorSlot, Collective::all_gather, hidden_bytes(tokens_),
                 Cause::exposed_tensor);
    }
  }

  /// Partial sums of a row-parallel layer become sums.
  void reduce_partial_sums(std::string_view label) {
    if (tensor_ == 1) return;
    collective(label, kComputeStream, kTensorSlot,
               options_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce, hidden_bytes(tokens_),
               Cause::exposed_tensor);
  }

  /// Backward of column-parallel layers with one shared input: the input is gathered again beside the products that
  /// give its gradient, and that gradient is reduced beside those that give the weights' gradients. Returns the
  /// reduction, for whoever needs the input's gradient.
  std::optional<std::size_t> column_parallel_backward(std::string_view label, Picoseconds input_gradient,
                                                      Picoseconds weight_gradient) {
    const std::uint8_t stream = options_.overlap_tensor ? kTensorStream : kComputeStream;
    std::optional<std::size_t> gathered;
    std::optional<std::size_t> reduced;
    if (options_.sequence_parallel && tensor_ > 1) {
      gathered = collective("gather input again", stream, kTensorSlot, Collective::all_gather, hidden_bytes(tokens_),
                            Cause::exposed_tensor);
    }
    kernel(label, input_gradient);
    if (tensor_ > 1) {
      reduced = collective("reduce input gradient", stream, kTensorSlot,
                           options_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce,
                           hidden_bytes(tokens_), Cause::exposed_tensor);
    }
    if (!options_.overlap_tensor) gathered = reduced = std::nullopt;  // in order already
    kernel(label, weight_gradient, gathered);
    return reduced;
  }

  // --- norms ---

  /// Residual sum and norm: two streams in and one out, then one in and one out; dropout masks add a byte.
  void norm_forward(std::string_view label) {
    const double row = hidden_bytes(local_tokens_);
    const double mask = options_.dropout ? row / element_ : 0.0;
    kernel(label, stream_memory(3 * row + mask) + stream_memory(2 * row));
  }

  void norm_backward(std::string_view label, std::optional<std::size_t> awaits) {
    const double row = hidden_bytes(local_tokens_);
    const double mask = options_.dropout ? row / element_ : 0.0;
    kernel(label, stream_memory(3 * row) + stream_memory(3 * row + mask), awaits);
  }

  /// A norm's output, or an activation function's product, written once more from what was kept.
  void again_elementwise(std::string_view label, double bytes) {
    if (options_.recompute != Recompute::elementwise) return;
    cause_ = Cause::recompute;
    kernel(label, stream_memory(bytes));
    cause_ = Cause::compute;
  }

  // --- attention ---

  [[nodiscard]] std::int64_t query_width() const { return attention_.heads * attention_.key_dim / tensor_; }
  [[nodiscard]] std::int64_t key_value_width() const { return attention_.key_value_width / tensor_; }

  [[nodiscard]] Picoseconds input_projections(bool backward_input, bool backward_weights) const {
    Picoseconds sum{0};
    const auto one = [&](std::int64_t in, std::int64_t out) {
      if (backward_input) {
        sum += multiply(tokens_, in, out);
      } else if (backward_weights) {
        sum += multiply(out, in, tokens_);
      } else {
        sum += multiply(tokens_, out, in);
      }
    };
    for (const Linear& linear : attention_.replicated_inputs) one(linear.in, linear.out);
    for (const Linear& linear : attention_.inputs) one(linear.in, linear.out / tensor_);
    return sum;
  }

  /// Scores, softmax and weighted sum of all heads of a rank. With context parallelism every rank has 1 / context of
  /// the queries, cut so that the causal mask is balanced, and all keys.
  [[nodiscard]] Picoseconds attention_time(bool backward_pass) const {
    const std::int64_t batch = options_.micro_batch * attention_.heads / tensor_;
    const std::int64_t queries = options_.sequence_length / options_.parallel.context;
    const std::int64_t keys = options_.sequence_length;
    // One head size per kernel; latent attention has two and does their mean's work.
    const std::int64_t width = (attention_.key_dim + attention_.value_dim) / 2;
    const DataType type = options_.attention_type();
    if (options_.flash_attention) {
      return kernel_time(gpu_, attention(type, batch, queries, keys, width, true, backward_pass));
    }
    const double scores = as_double(batch) * as_double(queries) * as_double(keys);
    // Scale, mask and softmax read and write the scores; dropout reads, writes and keeps a mask.
    const double softmax = scores * (2 * element_ + (options_.dropout ? 2 * element_ + 1 : 0.0));
    const Picoseconds products = kernel_time(gpu_, gemm(type, queries, keys, attention_.key_dim, batch)) +
                                 kernel_time(gpu_, gemm(type, queries, attention_.value_dim, keys, batch));
    if (!backward_pass) return products + stream_memory(softmax);
    return 2 * products + stream_memory(softmax + scores * element_);
  }

  /// Attention, with the exchange of keys and values among context ranks before it or beside it.
  /// A ring passes context - 1 blocks while as many blocks are computed; the last block waits for the last arrival.
  void attention_kernel(std::string_view label, bool backward_pass) {
    const std::int64_t context = options_.parallel.context;
    const Picoseconds whole = attention_time(backward_pass);
    if (context == 1) return kernel(label, whole);
    const double keys_values =
        as_double(options_.micro_batch) * as_double(options_.sequence_length) * as_double(key_value_width()) * element_;
    const std::uint8_t stream = options_.ring_attention ? kContextStream : kComputeStream;
    std::size_t arrived = collective("exchange keys and values", stream, kContextSlot, Collective::all_gather,
                                     keys_values, Cause::exposed_context);
    if (backward_pass && options_.ring_attention) {
      arrived = collective("return key and value gradients", stream, kContextSlot, Collective::reduce_scatter,
                           keys_values, Cause::exposed_context);
    }
    if (options_.ring_attention) {
      kernel(label, whole - whole / context);
      kernel(label, whole / context, arrived);
      return;
    }
    kernel(label, whole);
    if (backward_pass) {
      collective("return key and value gradients", stream, kContextSlot, Collective::reduce_scatter, keys_values,
                 Cause::exposed_context);
    }
  }

  void attention_half_forward() {
    norm_forward("attention norm");
    gather_sequence("gather sequence");
    kernel("qkv", input_projections(false, false));
    kernel("rotary",
           stream_memory(2 * as_double(tokens_) * as_double(query_width() + key_value_width() / 2) * element_));
    attention_kernel("attention", false);
    kernel("attention output", multiply(tokens_, model_.hidden, attention_.output.in / tensor_));
    reduce_partial_sums("reduce attention output");
  }

  void attention_half_backward() {
    gather_sequence("gather output gradient");
    const std::int64_t width = attention_.output.in / tensor_;
    kernel("attention output backward",
           multiply(tokens_, width, model_.hidden) + multiply(model_.hidden, width, tokens_));
    if (options_.recompute == Recompute::selective) {
      cause_ = Cause::recompute;
      attention_kernel("attention", false);
      cause_ = Cause::compute;
    }
    attention_kernel("attention backward", true);
    kernel("rotary backward",
           stream_memory(2 * as_double(tokens_) * as_double(query_width() + key_value_width() / 2) * element_));
    again_elementwise("attention norm", 2 * hidden_bytes(local_tokens_));
    const auto reduced =
        column_parallel_backward("qkv backward", input_projections(true, false), input_projections(false, true));
    norm_backward("attention norm backward", reduced);
  }

  // --- dense feed-forward ---

  [[nodiscard]] std::int64_t up_width(std::int64_t inner) const { return (model_.gated ? 2 : 1) * inner / tensor_; }
  /// Streams of the inner width that the activation function moves.
  [[nodiscard]] double activation_streams(bool backward_pass) const {
    if (model_.gated) return backward_pass ? 5 : 3;
    return backward_pass ? 3 : 2;
  }

  void dense_half_forward(std::int64_t inner) {
    norm_forward("feed-forward norm");
    gather_sequence("gather sequence");
    kernel("up", multiply(tokens_, up_width(inner), model_.hidden));
    kernel("activation", stream_memory(activation_streams(false) * as_double(tokens_ * (inner / tensor_)) * element_));
    kernel("down", multiply(tokens_, model_.hidden, inner / tensor_));
    reduce_partial_sums("reduce feed-forward output");
  }

  void dense_half_backward(std::int64_t inner) {
    gather_sequence("gather output gradient");
    const std::int64_t width = inner / tensor_;
    again_elementwise("activation", activation_streams(false) * as_double(tokens_ * width) * element_);
    kernel("down backward", multiply(tokens_, width, model_.hidden) + multiply(model_.hidden, width, tokens_));
    kernel("activation backward", stream_memory(activation_streams(true) * as_double(tokens_ * width) * element_));
    again_elementwise("feed-forward norm", 2 * hidden_bytes(local_tokens_));
    const auto reduced = column_parallel_backward("up backward", multiply(tokens_, model_.hidden, up_width(inner)),
                                                  multiply(up_width(inner), model_.hidden, tokens_));
    norm_backward("feed-forward norm backward", reduced);
  }

  // --- experts ---

  /// Token copies that a rank sends and, on the busiest rank, receives.
  [[nodiscard]] double routed_tokens() const {
    return as_double(local_tokens_) * as_double(model_.experts_per_token) * options_.expert_imbalance;
  }

  void all_to_all(std::string_view label) {
    if (options_.parallel.expert == 1) return;
    const double bytes = routed_tokens() * as_double(model_.hidden) * element_;
    collective(label, kComputeStream, kExpertSlot, Collective::all_to_all, bytes, Cause::exposed_expert);
  }

  /// Every tensor rank has a slice of each expert, so routed tokens are gathered before and reduced after.
  void exchange_routed(std::string_view label, bool gather) {
    if (tensor_ == 1) return;
    if (!options_.sequence_parallel && gather) return;  // every tensor rank routed all tokens already
    const double bytes =
        routed_tokens() * as_double(model_.hidden) * element_ * (options_.sequence_parallel ? as_double(tensor_) : 1.0);
    const Collective reduction = options_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
    collective(label, kComputeStream, kTensorSlot, gather ? Collective::all_gather : reduction, bytes,
               Cause::exposed_tensor);
  }

  [[nodiscard]] std::int64_t local_experts() const { return model_.experts / options_.parallel.expert; }
  [[nodiscard]] std::int64_t tokens_per_expert() const {
    const double rows = as_double(tokens_) * as_double(model_.experts_per_token) * options_.expert_imbalance;
    return std::max<std::int64_t>(1, std::llround(std::ceil(rows / as_double(local_experts()))));
  }

  void expert_half_forward() {
    if (model_.shared_experts == 0) norm_forward("feed-forward norm");
    const double routed = routed_tokens() * as_double(model_.hidden) * element_;
    kernel("router", kernel_time(gpu_, gemm(options_.attention_type(), local_tokens_, model_.experts, model_.hidden)) +
                         stream_memory(hidden_bytes(local_tokens_) + routed));
    all_to_all("dispatch");
    exchange_routed("gather routed tokens", true);
    const std::int64_t rows = tokens_per_expert();
    const std::int64_t experts = local_experts();
    const std::int64_t width = model_.expert_ffn_hidden / tensor_;
    kernel("experts up", multiply(rows, up_width(model_.expert_ffn_hidden), model_.hidden, experts));
    kernel("experts activation",
           stream_memory(activation_streams(false) * as_double(rows * experts * width) * element_));
    kernel("experts down", multiply(rows, model_.hidden, width, experts));
    exchange_routed("reduce routed tokens", false);
    all_to_all("combine");
    kernel("weighted sum", stream_memory(routed + hidden_bytes(local_tokens_)));
  }

  void expert_half_backward() {
    const double routed = routed_tokens() * as_double(model_.hidden) * element_;
    kernel("weighted sum backward", stream_memory(hidden_bytes(local_tokens_) + 2 * routed));
    all_to_all("combine backward");
    exchange_routed("gather routed gradients", true);
    const std::int64_t rows = tokens_per_expert();
    const std::int64_t experts = local_experts();
    const std::int64_t width = model_.expert_ffn_hidden / tensor_;
    const std::int64_t up = up_width(model_.expert_ffn_hidden);
    again_elementwise("experts activation", activation_streams(false) * as_double(rows * experts * width) * element_);
    kernel("experts down backward",
           multiply(rows, width, model_.hidden, experts) + multiply(model_.hidden, width, rows, experts));
    kernel("experts activation backward",
           stream_memory(activation_streams(true) * as_double(rows * experts * width) * element_));
    kernel("experts up backward",
           multiply(rows, model_.hidden, up, experts) + multiply(up, model_.hidden, rows, experts));
    exchange_routed("reduce routed gradients", false);
    all_to_all("dispatch backward");
    const DataType type = options_.attention_type();
    kernel("router backward", kernel_time(gpu_, gemm(type, local_tokens_, model_.hidden, model_.experts)) +
                                  kernel_time(gpu_, gemm(type, model_.experts, model_.hidden, local_tokens_)) +
                                  stream_memory(routed + hidden_bytes(local_tokens_)));
    if (model_.shared_experts == 0) norm_backward("feed-forward norm backward", {});
  }

  // --- embedding and head ---

  void embedding_forward() {
    kernel("embedding", stream_memory(2 * hidden_bytes(tokens_)));
    reduce_partial_sums("reduce embedding");
  }

  void embedding_backward() {
    gather_sequence("gather embedding gradient");
    // Rows of the gradient are read, and added to the accumulated gradient.
    const double accumulated = 2 * hidden_bytes(tokens_) / element_ * options_.gradient_bytes();
    kernel("embedding backward", stream_memory(hidden_bytes(tokens_) + accumulated));
  }

  [[nodiscard]] std::int64_t vocabulary_shard() const { return (model_.vocabulary + tensor_ - 1) / tensor_; }

  void head_forward() {
    norm_forward("final norm");
    gather_sequence("gather sequence");
    const std::int64_t vocabulary = vocabulary_shard();
    const DataType type = options_.attention_type();
    kernel("logits", kernel_time(gpu_, gemm(type, tokens_, vocabulary, model_.hidden)));
    // Vocabulary-parallel cross entropy: 16-bit logits in, 32-bit copy out, read for the sum of exponentials; ranks
    // agree on the maximum, the target's logit and the sum, 4 bytes each per token.
    const double logits = as_double(tokens_) * as_double(vocabulary);
    kernel("loss", stream_memory(logits * (element_ + 4)) + stream_memory(logits * 4));
    if (tensor_ > 1) {
      collective("reduce loss", kComputeStream, kTensorSlot, Collective::all_reduce, 12.0 * as_double(tokens_),
                 Cause::exposed_tensor);
    }
  }

  void head_backward() {
    const std::int64_t vocabulary = vocabulary_shard();
    const DataType type = options_.attention_type();
    kernel("loss backward", stream_memory(as_double(tokens_) * as_double(vocabulary) * (element_ + 4)));
    const auto reduced =
        column_parallel_backward("logits backward", kernel_time(gpu_, gemm(type, tokens_, model_.hidden, vocabulary)),
                                 kernel_time(gpu_, gemm(type, vocabulary, model_.hidden, tokens_)));
    norm_backward("final norm backward", reduced);
  }

  const TransformerOptions& options_;
  const TransformerSpec& model_;
  const GpuSpec& gpu_;
  AttentionShape attention_;
  std::int64_t tensor_;
  std::int64_t tokens_;        // of one rank's micro-batch, all of them
  std::int64_t local_tokens_;  // those of its sequence shard
  double element_;
  Cause cause_ = Cause::compute;
  std::vector<BlockStep> steps_;
};

}  // namespace

BlockSteps block_steps(const TransformerOptions& options, Block block, const GpuSpec& gpu) {
  BlockWriter forward(options, gpu);
  forward.forward(block);
  BlockWriter backward(options, gpu);
  backward.backward(block);
  return {forward.take(), backward.take()};
}

Picoseconds optimizer_time(const TransformerOptions& options, double parameters, const GpuSpec& gpu) {
  // Gradient norm reads gradients once; the update reads gradients, reads and writes its state, and writes weights.
  const double norm = options.gradient_bytes();
  const double update = options.gradient_bytes() + 2.0 * options.optimizer_bytes + options.element_bytes();
  return kernel_time(gpu, memory_bound(as_bytes(parameters * norm))) +
         kernel_time(gpu, memory_bound(as_bytes(parameters * update)));
}

Bytes stage_payload(const TransformerOptions& options) {
  const double tokens = as_double(options.micro_batch * options.sequence_length / options.parallel.context);
  const double shards = options.sequence_parallel ? as_double(options.parallel.tensor) : 1.0;
  return as_bytes(tokens * as_double(options.model.hidden) * options.element_bytes() / shards);
}

}  // namespace clustersim
