// GPU memory of a training job, and what to change when it does not fit.
#include "models/workloads/memory.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

double tokens_per_rank(const TransformerOptions& options) {
  return as_double(options.micro_batch) * as_double(options.sequence_length) / as_double(options.parallel.context);
}

/// What is kept whole on every tensor rank unless sequence parallelism shards it.
double sequence_shards(const TransformerOptions& options) {
  return options.sequence_parallel ? as_double(options.parallel.tensor) : 1.0;
}

/// Per token: inner activations of a feed-forward block (gate, up and product, or input and output of the GELU).
double inner_activations(const TransformerOptions& options, std::int64_t inner) {
  const double products = options.recompute == Recompute::elementwise ? 0.0 : 1.0;
  return ((options.model.gated ? 2.0 : 1.0) + products) * options.element_bytes() * as_double(inner);
}

/// Per token: what the feed-forward half of a layer keeps. Returns (shared out over tensor ranks, kept whole).
std::pair<double, double> feed_forward_activations(const TransformerOptions& options, Block block) {
  const TransformerSpec& model = options.model;
  if (block == Block::dense_layer) return {inner_activations(options, model.ffn_hidden), 0.0};
  const double routed = as_double(model.experts_per_token) * options.expert_imbalance;
  const double inner = routed * inner_activations(options, model.expert_ffn_hidden) +
                       as_double(model.shared_experts) * inner_activations(options, model.expert_ffn_hidden);
  // Each routed token's input and output, and 32-bit router scores and probabilities.
  const double whole =
      2.0 * options.element_bytes() * routed * as_double(model.hidden) + 8.0 * as_double(model.experts);
  return {inner, whole};
}

double layer_activation_bytes(const TransformerOptions& options, Block block) {
  const TransformerSpec& model = options.model;
  const double element = options.element_bytes();
  const AttentionShape attention = attention_shape(model, options.parallel.tensor);
  const double heads = as_double(attention.heads);
  const auto [inner, routed] = feed_forward_activations(options, block);

  double sharded =
      element * (heads * as_double(attention.key_dim + attention.value_dim) + as_double(attention.key_value_width)) +
      inner;
  // Inputs and outputs of the two norms, and the two dropout masks of a byte each.
  const double norm_streams = options.recompute == Recompute::elementwise ? 2.0 : 4.0;
  double whole = norm_streams * element * as_double(model.hidden) + routed;
  if (options.dropout) whole += 2.0 * as_double(model.hidden);
  for (const Linear& linear : attention.replicated_inputs) whole += element * as_double(linear.out);

  if (options.flash_attention) {
    sharded += 4.0 * heads;  // the 32-bit log-sum-exp of each row
  } else if (options.recompute != Recompute::selective) {
    // Softmax output, and with dropout its mask and its output.
    const double scores = options.dropout ? 2.0 * element + 1.0 : element;
    sharded += scores * heads * as_double(options.sequence_length);
  }
  return tokens_per_rank(options) * (sharded / as_double(options.parallel.tensor) + whole / sequence_shards(options));
}

double block_input_bytes(const TransformerOptions& options) {
  return tokens_per_rank(options) * options.element_bytes() * as_double(options.model.hidden) /
         sequence_shards(options);
}

/// Vocabulary-parallel logits and their 32-bit copy for the loss, of one micro-batch.
double logits_bytes(const TransformerOptions& options) {
  return tokens_per_rank(options) * as_double(options.model.vocabulary) / as_double(options.parallel.tensor) *
         (options.element_bytes() + 4.0);
}

BlockParameters rank_parameters(const TransformerOptions& options, Block block) {
  return block_parameters(options.model, block, options.parallel.tensor, options.parallel.expert,
                          options.parallel.pipeline > 1);
}

/// FSDP: two blocks' weights gathered at a time, and one block's gradient before it is scattered.
double gathered_bytes(const TransformerOptions& options, double largest_block) {
  return options.zero_stage == 3 ? largest_block * (2.0 * options.element_bytes() + options.gradient_bytes()) : 0.0;
}

double activations_of_stage(const TransformerOptions& options, std::uint32_t stage,
                            const std::vector<std::vector<Block>>& chunks) {
  std::vector<double> per_chunk;
  double recomputed_layer = 0;
  for (const std::vector<Block>& blocks : chunks) {
    double bytes = 0;
    for (const Block block : blocks) {
      bytes += activation_bytes(options, block);
      const bool is_layer = block == Block::dense_layer || block == Block::expert_layer;
      if (is_layer && options.recompute == Recompute::full) {
        recomputed_layer = std::max(recomputed_layer, layer_activation_bytes(options, block));
      }
    }
    per_chunk.push_back(bytes);
  }
  return peak_in_flight(stage_calls(options.pipeline_shape(), stage), per_chunk) + recomputed_layer;
}

/// A change of the layout, and how to say it.
struct Change {
  std::function<void(TransformerOptions&)> apply;
  std::function<std::string(const TransformerOptions&)> text;
};

Change trade_data_for(std::int64_t ParallelLayout::* degree, std::string name) {
  return {[degree](TransformerOptions& o) {
            o.parallel.*degree *= 2;
            if (o.parallel.data % 2 == 0) o.parallel.data /= 2;
          },
          [degree, name = std::move(name)](const TransformerOptions& o) {
            return fmt::format("{} = {} (data = {})", name, o.parallel.*degree, o.parallel.data);
          }};
}

std::vector<Change> possible_changes(const TransformerOptions& options) {
  std::vector<Change> changes;
  for (std::int64_t stage = options.zero_stage + 1; stage <= 3 && options.parallel.data > 1; ++stage) {
    changes.push_back({[stage](TransformerOptions& o) { o.zero_stage = stage; },
                       [](const TransformerOptions& o) { return fmt::format("zero_stage = {}", o.zero_stage); }});
  }
  if (options.recompute == Recompute::none) {
    changes.push_back({[](TransformerOptions& o) { o.recompute = Recompute::elementwise; },
                       [](const TransformerOptions&) { return std::string("recompute = \"elementwise\""); }});
  }
  if (options.recompute != Recompute::full) {
    changes.push_back({[](TransformerOptions& o) { o.recompute = Recompute::full; },
                       [](const TransformerOptions&) { return std::string("recompute = \"full\""); }});
  }
  if (options.parallel.tensor > 1 && !options.sequence_parallel) {
    changes.push_back({[](TransformerOptions& o) { o.sequence_parallel = true; },
                       [](const TransformerOptions&) { return std::string("sequence_parallel = true"); }});
  }
  if (options.micro_batch % 2 == 0) {
    changes.push_back({[](TransformerOptions& o) { o.micro_batch /= 2; },
                       [](const TransformerOptions& o) { return fmt::format("micro_batch = {}", o.micro_batch); }});
  }
  changes.push_back(trade_data_for(&ParallelLayout::tensor, "tensor"));
  changes.push_back(trade_data_for(&ParallelLayout::pipeline, "pipeline"));
  changes.push_back(trade_data_for(&ParallelLayout::context, "context"));
  return changes;
}

/// The options after the changes, if that is a layout that can run on no more GPUs than before.
std::optional<TransformerOptions> changed(const TransformerOptions& options,
                                          std::initializer_list<const Change*> changes) {
  TransformerOptions result = options;
  for (const Change* change : changes) change->apply(result);
  if (result.parallel.tensor > 1 && options.parallel.tensor == 1) result.sequence_parallel = true;
  if (result.parallel.ranks() > options.parallel.ranks() || result.parallel.data % result.parallel.expert != 0 ||
      find_layout_problem(result)) {
    return std::nullopt;
  }
  return result;
}

std::string fitting_changes(const TransformerOptions& options, Bytes capacity) {
  const std::vector<Change> changes = possible_changes(options);
  std::vector<std::string> fits;
  const auto try_changes = [&](std::initializer_list<const Change*> tried) {
    const std::optional<TransformerOptions> candidate = changed(options, tried);
    if (!candidate) return;
    const double total = fullest_stage_memory(*candidate, capacity).total_bytes();
    if (total > as_double(capacity.value())) return;
    std::vector<std::string> texts;
    for (const Change* change : tried) texts.push_back(change->text(*candidate));
    fits.push_back(fmt::format("{} ({})", fmt::join(texts, " with "), format(Bytes(std::llround(total)))));
  };
  for (const Change& change : changes) try_changes({&change});
  if (fits.empty()) {
    for (const Change& first : changes) {
      for (const Change& second : changes) {
        if (&first <= &second) try_changes({&first, &second});
      }
    }
  }
  if (fits.empty())
    return "no one or two of ZeRO, recomputation, micro_batch, tensor, pipeline and context doubled fit";
  constexpr std::size_t kShown = 4;
  fits.resize(std::min(fits.size(), kShown));
  return fmt::format("what fits: {}", fmt::join(fits, "; "));
}

}  // namespace

double MemoryReport::total_bytes() const {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [](double sum, const MemoryItem& item) { return sum + item.bytes; });
}

ModelState model_state(double parameters, std::int64_t zero_stage, std::int64_t data_ranks, const StateBytes& bytes) {
  const auto shard = [&](std::int64_t from_stage) { return zero_stage >= from_stage ? as_double(data_ranks) : 1.0; };
  return {parameters * bytes.weight / shard(3), parameters * bytes.gradient / shard(2),
          parameters * bytes.optimizer / shard(1)};
}

double activation_bytes(const TransformerOptions& options, Block block) {
  const double input = block_input_bytes(options);
  switch (block) {
    case Block::embedding:
      return options.dropout ? input / options.element_bytes() : 0.0;
    case Block::head:
      return 2.0 * input;  // of the final norm and of the logits
    default:
      return options.recompute == Recompute::full ? input : layer_activation_bytes(options, block);
  }
}

MemoryReport stage_memory(const TransformerOptions& options, std::uint32_t stage, Bytes capacity) {
  std::vector<std::vector<Block>> chunks;
  BlockParameters parameters;
  double largest_block = 0;
  bool has_head = false;
  for (std::uint32_t chunk = 0; chunk < options.parallel.virtual_stages; ++chunk) {
    chunks.push_back(chunk_blocks(options, stage, chunk));
    for (const Block block : chunks.back()) {
      const BlockParameters here = rank_parameters(options, block);
      parameters.dense += here.dense;
      parameters.experts += here.experts;
      largest_block = std::max(largest_block, here.total());
      has_head = has_head || block == Block::head;
    }
  }
  const StateBytes bytes{options.element_bytes(), options.gradient_bytes(), options.optimizer_bytes};
  const std::int64_t data_ranks = options.parallel.data * options.parallel.context;
  const ModelState dense = model_state(parameters.dense, options.zero_stage, data_ranks, bytes);
  const ModelState experts =
      model_state(parameters.experts, options.zero_stage, data_ranks / options.parallel.expert, bytes);
  const double logits = has_head ? logits_bytes(options) : 0.0;
  return {{{"weights", dense.weights + experts.weights},
           {"gradients", dense.gradients + experts.gradients},
           {"optimizer state", dense.optimizer + experts.optimizer},
           {"activations", activations_of_stage(options, stage, chunks)},
           {"logits", logits},
           {"gathered parameters", gathered_bytes(options, largest_block)},
           {"workspace", as_double(options.workspace.value())}},
          capacity};
}

MemoryReport fullest_stage_memory(const TransformerOptions& options, Bytes capacity) {
  MemoryReport fullest;
  for (std::uint32_t stage = 0; stage < options.parallel.pipeline; ++stage) {
    MemoryReport report = stage_memory(options, stage, capacity);
    if (report.total_bytes() > fullest.total_bytes()) fullest = std::move(report);
  }
  return fullest;
}

void require_memory(const TransformerOptions& options, const GpuSpec& gpu) {
  const MemoryReport report = fullest_stage_memory(options, gpu.memory);
  const double total = report.total_bytes();
  if (total <= as_double(gpu.memory.value())) return;
  std::vector<std::string> parts;
  for (const MemoryItem& item : report.items) {
    if (item.bytes > 0) parts.push_back(fmt::format("{} {}", item.name, format(Bytes(std::llround(item.bytes)))));
  }
  infeasible("{} needs {} per GPU ({}), {} has {}; {}", options.model.name, format(Bytes(std::llround(total))),
             fmt::join(parts, ", "), gpu.name, format(gpu.memory), fitting_changes(options, gpu.memory));
}

}  // namespace clustersim
