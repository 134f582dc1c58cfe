// What the user asks of a training job, checked: the typed form of the "transformer-training" settings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/catalog/catalog.hpp"
#include "models/workloads/parallel.hpp"
#include "models/workloads/schedule.hpp"
#include "models/workloads/stage_program.hpp"
#include "models/workloads/transformer_shape.hpp"

namespace clustersim {

struct TransformerOptions {
  TransformerSpec model;
  std::int64_t sequence_length = 0;
  std::int64_t global_batch = 0;  // sequences per optimizer step, over all replicas
  std::int64_t micro_batch = 1;   // sequences
  DataType precision = DataType::bf16;
  DataType gradient_precision = DataType::fp32;
  ParallelLayout parallel;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  std::int64_t zero_stage = 0;
  RankOrder rank_order{};
  Placement placement = Placement::packed;
  std::uint32_t first_gpu = 0;
  std::uint64_t placement_seed = 0;
  bool overlap_gradients = true;
  bool overlap_parameters = false;
  bool overlap_tensor = true;
  bool ring_attention = true;  // context parallelism: keys and values circulate beside the attention kernels
  bool flash_attention = true;
  bool dropout = false;
  double optimizer_bytes = 12;  // optimizer state per parameter
  double expert_imbalance = 1;  // tokens on the busiest expert rank over the mean
  Bytes workspace{0};           // memory set aside for the framework, libraries and fragmentation
  Picoseconds stage_call_overhead{0};
  Dispatch dispatch = Dispatch::per_rank;
  bool check_memory = true;

  [[nodiscard]] std::int64_t micro_batches() const { return global_batch / (parallel.data * micro_batch); }
  [[nodiscard]] PipelineShape pipeline_shape() const;
  /// Bytes of an activation or weight element; fp8 training keeps both in 16 bits outside its GEMMs.
  [[nodiscard]] double element_bytes() const;
  [[nodiscard]] double gradient_bytes() const { return element_size(gradient_precision); }
  /// Type of everything but the linear layers.
  [[nodiscard]] DataType attention_type() const { return precision == DataType::fp8 ? DataType::bf16 : precision; }
};

/// Reads and checks; throws BadInput. With `one_replica` the smallest whole replica is taken (data = expert) with the
/// same work per replica.
TransformerOptions read_transformer_options(const Settings& settings, const Catalog& catalog, bool one_replica = false);

/// What is wrong with a layout, in words, with values that work; nothing when it can run.
struct LayoutProblem {
  std::string key;  // the setting to blame: "parallel.tensor", "global_batch"
  std::string text;
};
std::optional<LayoutProblem> find_layout_problem(const TransformerOptions& options);

/// Layers of each position of the pipeline (stages x chunks of them): as even as possible; what is left over goes to
/// the middle, since the ends also carry the embedding and the logits.
std::vector<std::int64_t> layers_per_position(std::int64_t layers, std::int64_t positions);

/// The blocks that one chunk of a stage holds, in forward order.
std::vector<Block> chunk_blocks(const TransformerOptions& options, std::uint32_t stage, std::uint32_t chunk);

}  // namespace clustersim
