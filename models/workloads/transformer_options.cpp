// What the user asks of a training job: reading it, and layouts that cannot work.
#include "models/workloads/transformer_options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "models/workloads/transformer_schema.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

using namespace transformer_schema;

template <std::size_t Count>
std::size_t choice_index(const Settings& settings, std::string_view key,
                         const std::array<std::string_view, Count>& choices) {
  const std::string& chosen = settings.text(key);
  return static_cast<std::size_t>(std::find(choices.begin(), choices.end(), chosen) - choices.begin());
}

TransformerSpec read_model(const Settings& settings, const Catalog& catalog) {
  const bool named = settings.given("model");
  if (named == settings.given("architecture")) {
    if (named) settings.reject("architecture", "give either model or architecture, not both");
    settings.reject("model",
                    "expected the name of a catalog model, for example \"llama3-8b\", or a table architecture");
  }
  if (named) {
    try {
      return catalog.transformer(settings.text("model"));
    } catch (const BadInput& error) {
      settings.reject("model", "{}", error.what());
    }
  }
  return read_transformer(settings.any("architecture"), "architecture");
}

ParallelLayout read_parallel(const Settings& table) {
  return {.tensor = table.integer("tensor"),
          .pipeline = table.integer("pipeline"),
          .data = table.integer("data"),
          .context = table.integer("context"),
          .expert = table.integer("expert"),
          .virtual_stages = table.integer("virtual_stages")};
}

void read_switches(const Settings& settings, TransformerOptions& options) {
  options.sequence_parallel =
      settings.given("sequence_parallel") ? settings.boolean("sequence_parallel") : options.parallel.tensor > 1;
  options.zero_stage = settings.integer("zero_stage");
  options.overlap_gradients = settings.boolean("overlap_gradients");
  options.overlap_parameters =
      settings.given("overlap_parameters") ? settings.boolean("overlap_parameters") : options.zero_stage == 3;
  options.overlap_tensor = settings.boolean("overlap_tensor");
  options.ring_attention = settings.text("context_exchange") == "ring";
  options.flash_attention = settings.boolean("flash_attention");
  options.dropout = settings.boolean("dropout");
  const bool full_precision = options.precision == DataType::fp32 || options.precision == DataType::tf32;
  options.optimizer_bytes =
      settings.given("optimizer_bytes") ? settings.number("optimizer_bytes") : (full_precision ? 8.0 : 12.0);
  options.expert_imbalance = settings.number("expert_imbalance");
  options.workspace = settings.bytes("workspace");
  options.stage_call_overhead = settings.duration("stage_call_overhead");
  options.dispatch = static_cast<Dispatch>(choice_index(settings, "dispatch", kDispatches));
}

/// "192 or 256": the multiples of `step` around `value`.
std::string multiples_around(std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  return below > 0 ? fmt::format("{} or {}", below, below + step) : fmt::format("{}", step);
}

/// Divisors of `value` near `wanted`, as text.
std::string divisors_around(std::int64_t value, std::int64_t wanted) {
  std::int64_t below = 1;
  std::int64_t above = 0;
  for (std::int64_t d = 1; d <= value; ++d) {
    if (value % d != 0) continue;
    if (d <= wanted) below = d;
    if (d >= wanted && above == 0) above = d;
  }
  return above == 0 || above == below ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

std::optional<LayoutProblem> find_tensor_problem(const TransformerOptions& options) {
  const TransformerSpec& model = options.model;
  const std::int64_t tensor = options.parallel.tensor;
  if (model.heads % tensor != 0) {
    return LayoutProblem{"parallel.tensor",
                         fmt::format("tensor = {} does not divide the {} attention heads of {}; {} does", tensor,
                                     model.heads, model.name, divisors_around(model.heads, tensor))};
  }
  const bool divides_heads = model.kv_lora_rank > 0 || model.kv_heads % tensor == 0 || tensor % model.kv_heads == 0;
  if (!divides_heads) {
    return LayoutProblem{
        "parallel.tensor",
        fmt::format("tensor = {} neither divides the {} key-value heads of {} nor is a multiple of them", tensor,
                    model.kv_heads, model.name)};
  }
  for (const std::int64_t width : {model.hidden, model.ffn_hidden, model.expert_ffn_hidden}) {
    if (width % tensor != 0) {
      return LayoutProblem{"parallel.tensor", fmt::format("tensor = {} does not divide the width {} of {}; {} does",
                                                          tensor, width, model.name, divisors_around(width, tensor))};
    }
  }
  const std::int64_t tokens = options.micro_batch * options.sequence_length / options.parallel.context;
  if (options.sequence_parallel && tokens % tensor != 0) {
    return LayoutProblem{"sequence_parallel", fmt::format("tensor = {} ranks cannot share {} tokens evenly; set "
                                                          "sequence_parallel = false or change sequence_length",
                                                          tensor, tokens)};
  }
  return std::nullopt;
}

std::optional<LayoutProblem> find_expert_problem(const TransformerOptions& options) {
  const TransformerSpec& model = options.model;
  const ParallelLayout& parallel = options.parallel;
  if (parallel.expert == 1) return std::nullopt;
  if (model.experts == 0) {
    return LayoutProblem{"parallel.expert", fmt::format("{} has no experts; expert = 1 works", model.name)};
  }
  if (model.experts % parallel.expert != 0) {
    return LayoutProblem{"parallel.expert",
                         fmt::format("expert = {} does not divide the {} experts of {}; {} does", parallel.expert,
                                     model.experts, model.name, divisors_around(model.experts, parallel.expert))};
  }
  if (parallel.data % parallel.expert != 0) {
    return LayoutProblem{
        "parallel.expert",
        fmt::format("expert groups lie inside the data-parallel ranks, but expert = {} does not divide "
                    "data = {}; data = {} works",
                    parallel.expert, parallel.data, multiples_around(parallel.data, parallel.expert))};
  }
  return std::nullopt;
}

std::optional<LayoutProblem> find_batch_problem(const TransformerOptions& options) {
  const ParallelLayout& parallel = options.parallel;
  const std::int64_t per_pass = parallel.data * options.micro_batch;
  if (options.global_batch % per_pass != 0) {
    return LayoutProblem{"global_batch",
                         fmt::format("is not a multiple of data x micro_batch = {} x {} = {}; {} works", parallel.data,
                                     options.micro_batch, per_pass, multiples_around(options.global_batch, per_pass))};
  }
  // Two pieces per rank, one from each end, balance the causal mask.
  if (parallel.context > 1 && options.sequence_length % (2 * parallel.context) != 0) {
    return LayoutProblem{
        "sequence_length",
        fmt::format("{} tokens do not divide into 2 x context = {} pieces; {} works", options.sequence_length,
                    2 * parallel.context, multiples_around(options.sequence_length, 2 * parallel.context))};
  }
  return std::nullopt;
}

std::optional<LayoutProblem> find_pipeline_problem(const TransformerOptions& options) {
  const ParallelLayout& parallel = options.parallel;
  const std::int64_t positions = parallel.pipeline * parallel.virtual_stages;
  // The embedding and the head may fill the first and the last position alone.
  if (positions > options.model.layers + 2) {
    return LayoutProblem{"parallel.pipeline",
                         fmt::format("pipeline x virtual_stages = {} x {} is more than the {} layers of {}, its "
                                     "embedding and its head; at most {} stages work",
                                     parallel.pipeline, parallel.virtual_stages, options.model.layers,
                                     options.model.name, (options.model.layers + 2) / parallel.virtual_stages)};
  }
  const bool interleaved = options.schedule == PipelineSchedule::interleaved;
  if (parallel.virtual_stages > 1 && options.schedule == PipelineSchedule::one_forward_one_backward) {
    return LayoutProblem{"schedule", fmt::format("1f1b has one chunk per stage; virtual_stages = {} needs schedule = "
                                                 "\"interleaved-1f1b\"",
                                                 parallel.virtual_stages)};
  }
  if (interleaved && parallel.pipeline == 1) {
    return LayoutProblem{"schedule", "interleaved-1f1b needs pipeline > 1; \"1f1b\" works"};
  }
  if (interleaved && options.micro_batches() % parallel.pipeline != 0) {
    const std::int64_t step = parallel.pipeline * parallel.data * options.micro_batch;
    return LayoutProblem{
        "global_batch",
        fmt::format("gives {} micro-batches; interleaved-1f1b needs a multiple of the {} stages, so "
                    "global_batch = {}",
                    options.micro_batches(), parallel.pipeline, multiples_around(options.global_batch, step))};
  }
  return std::nullopt;
}

}  // namespace

PipelineShape TransformerOptions::pipeline_shape() const {
  return {schedule, static_cast<std::uint32_t>(parallel.pipeline), static_cast<std::uint32_t>(micro_batches()),
          static_cast<std::uint32_t>(parallel.virtual_stages)};
}

double TransformerOptions::element_bytes() const { return std::max(2.0, element_size(precision)); }

std::optional<LayoutProblem> find_layout_problem(const TransformerOptions& options) {
  for (const auto find : {find_tensor_problem, find_expert_problem, find_batch_problem, find_pipeline_problem}) {
    if (std::optional<LayoutProblem> problem = find(options)) return problem;
  }
  return std::nullopt;
}

TransformerOptions read_transformer_options(const Settings& settings, const Catalog& catalog, bool one_replica) {
  TransformerOptions options;
  options.model = read_model(settings, catalog);
  options.sequence_length =
      settings.has("sequence_length") ? settings.integer("sequence_length") : options.model.sequence_length;
  options.global_batch = settings.integer("global_batch");
  options.micro_batch = settings.integer("micro_batch");
  options.precision = parse_data_type(settings.text("precision"));
  options.gradient_precision = parse_data_type(settings.text("gradient_precision"));
  options.parallel = read_parallel(settings.table("parallel"));
  options.schedule = parse_pipeline_schedule(settings.text("schedule"));
  options.recompute = static_cast<Recompute>(choice_index(settings, "recompute", kRecomputes));
  options.placement = static_cast<Placement>(choice_index(settings, "placement", kPlacements));
  options.placement_seed = static_cast<std::uint64_t>(settings.integer("placement_seed"));
  options.first_gpu = static_cast<std::uint32_t>(settings.integer("first_gpu"));
  read_switches(settings, options);
  try {
    options.rank_order = parse_rank_order(settings.text("rank_order"));
  } catch (const BadInput& error) {
    settings.reject("rank_order", "{}", error.what());
  }
  if (const std::optional<LayoutProblem> problem = find_layout_problem(options)) {
    const std::string_view key = problem->key;
    constexpr std::string_view kTable = "parallel.";
    if (key.starts_with(kTable)) settings.table("parallel").reject(key.substr(kTable.size()), "{}", problem->text);
    settings.reject(key, "{}", problem->text);
  }
  if (one_replica) {
    options.global_batch = options.global_batch / options.parallel.data * options.parallel.expert;
    options.parallel.data = options.parallel.expert;
    options.check_memory = false;
  }
  return options;
}

std::vector<std::int64_t> layers_per_position(std::int64_t layers, std::int64_t positions) {
  ensure(positions > 0 && positions <= layers + 2, "{} layers on {} positions", layers, positions);
  const std::int64_t left_over = layers % positions;
  std::vector<std::int64_t> result(static_cast<std::size_t>(positions), layers / positions);
  const std::int64_t first = (positions - left_over) / 2;
  for (std::int64_t i = first; i < first + left_over; ++i) ++result[static_cast<std::size_t>(i)];
  return result;
}

std::vector<Block> chunk_blocks(const TransformerOptions& options, std::uint32_t stage, std::uint32_t chunk) {
  const std::int64_t positions = options.parallel.pipeline * options.parallel.virtual_stages;
  const std::vector<std::int64_t> layers = layers_per_position(options.model.layers, positions);
  const auto position = static_cast<std::int64_t>(chunk) * options.parallel.pipeline + stage;
  const auto here = layers.begin() + position;
  const std::int64_t first = std::accumulate(layers.begin(), here, std::int64_t{0});
  std::vector<Block> blocks;
  if (position == 0) blocks.push_back(Block::embedding);
  for (std::int64_t layer = first; layer < first + *here; ++layer) blocks.push_back(layer_block(options.model, layer));
  if (position == positions - 1) blocks.push_back(Block::head);
  return blocks;
}

}  // namespace clustersim
