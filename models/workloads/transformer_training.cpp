// The "transformer-training" workload: one optimizer step of a decoder under tensor, sequence, pipeline, data, context
// and expert parallelism with ZeRO.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "models/compute/kernel_time.hpp"
#include "models/workloads/layer_kernels.hpp"
#include "models/workloads/memory.hpp"
#include "models/workloads/stage_program.hpp"
#include "models/workloads/transformer_options.hpp"
#include "models/workloads/transformer_schema.hpp"
#include "models/workloads/workload.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

/// Gradients of a stage are reduced in at most so many pieces: frameworks bucket them too, and programs stay short.
constexpr std::size_t kBucketsPerStage = 10;

using Waits = std::vector<std::uint32_t>;

std::uint32_t kind_index(Block block) { return static_cast<std::uint32_t>(block); }

/// Steps of the four kinds of block, computed once.
class StepTable {
 public:
  StepTable(const TransformerOptions& options, const GpuSpec& gpu) {
    for (const Block block : {Block::embedding, Block::dense_layer, Block::expert_layer, Block::head}) {
      if (block == Block::expert_layer && options.model.experts == 0) continue;
      steps_[kind_index(block)] = block_steps(options, block, gpu);
    }
  }
  [[nodiscard]] const BlockSteps& of(Block block) const { return steps_[kind_index(block)]; }

 private:
  std::array<BlockSteps, 4> steps_;
};

/// Writes the program of one pipeline stage.
class StageWriter {
 public:
  StageWriter(Job& job, const TransformerOptions& options, const StepTable& steps, const GpuSpec& gpu,
              std::uint32_t stage)
      : builder_(job, kTrainingStreams), options_(options), steps_(steps), gpu_(gpu), stage_(stage) {
    std::size_t blocks = 0;
    for (std::uint32_t chunk = 0; chunk < options.parallel.virtual_stages; ++chunk) {
      chunks_.push_back(chunk_blocks(options, stage, chunk));
      blocks += chunks_.back().size();
    }
    bucket_blocks_ = (blocks + kBucketsPerStage - 1) / kBucketsPerStage;
    gathered_.resize(chunks_.size());
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) gathered_[chunk].resize(chunks_[chunk].size());
  }

  void write(std::span<const std::uint32_t> launches) {
    if (sharded_optimizer() && options_.overlap_parameters) gather_parameters_early();
    const StageFrame frame{.shape = options_.pipeline_shape(),
                           .stage = stage_,
                           .payload = stage_payload(options_),
                           .call_overhead = options_.stage_call_overhead,
                           .dispatch = options_.dispatch,
                           .launches = launches};
    write_stage_calls(builder_, frame, [this](const StageCall& call, std::span<const std::uint32_t> inputs) {
      return call.backward ? backward(call, inputs) : forward(call, inputs);
    });
    finish_step();
    builder_.finish();
  }

 private:
  [[nodiscard]] bool fsdp() const { return options_.zero_stage == 3; }
  [[nodiscard]] bool sharded_optimizer() const { return options_.zero_stage == 1 || options_.zero_stage == 2; }
  [[nodiscard]] std::int64_t dense_ranks() const { return options_.parallel.data * options_.parallel.context; }
  [[nodiscard]] std::int64_t expert_ranks() const { return dense_ranks() / options_.parallel.expert; }

  [[nodiscard]] BlockParameters parameters(Block block) const {
    return block_parameters(options_.model, block, options_.parallel.tensor, options_.parallel.expert,
                            options_.parallel.pipeline > 1);
  }

  // --- steps of a block ---

  /// Writes the steps; `waits` go to the first that can start. Keeps last_compute_ up to date.
  void write_steps(const std::vector<BlockStep>& steps, Waits waits) {
    Waits written(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const BlockStep& step = steps[i];
      Waits needs;
      if (step.stream == kComputeStream) {
        needs = std::move(waits);
        waits.clear();
        if (step.awaits) needs.push_back(written[*step.awaits]);
      } else {
        needs = waits;
        if (last_compute_) needs.push_back(*last_compute_);
      }
      written[i] = step.operation ? builder_.collective(step.stream, step.slot, *step.operation, step.label, needs)
                                  : builder_.kernel(step.stream, step.cause, step.label, step.duration, needs);
      if (step.stream == kComputeStream) last_compute_ = written[i];
    }
  }

  // --- data parallelism ---

  /// One collective for dense parameters and one for experts, on the ranks that share them. Returns the last.
  std::optional<std::uint32_t> data_collective(std::uint8_t stream, Collective kind, const BlockParameters& amount,
                                               double bytes_each, std::string_view label, const Waits& waits) {
    std::optional<std::uint32_t> last;
    const auto one = [&](double parameters, std::int64_t ranks, std::uint16_t slot) {
      if (parameters <= 0 || ranks < 2) return;
      const Operation operation{kind, Bytes(std::llround(parameters * bytes_each)), Cause::exposed_data};
      last = builder_.collective(stream, slot, operation, label, waits);
      if (stream == kComputeStream) last_compute_ = last;
    };
    one(amount.dense, dense_ranks(), kGradientSlot);
    one(amount.experts, expert_ranks(), kExpertGradientSlot);
    return last;
  }

  void reduce_gradients(const BlockParameters& amount, bool beside) {
    const Collective kind = options_.zero_stage >= 1 ? Collective::reduce_scatter : Collective::all_reduce;
    Waits waits;
    if (beside && last_compute_) waits.push_back(*last_compute_);
    const auto done = data_collective(beside ? kDataStream : kComputeStream, kind, amount, options_.gradient_bytes(),
                                      "reduce gradients", waits);
    if (done && beside) last_reduction_ = done;
  }

  /// FSDP: the weights of a block, gathered while the block before it computes (so that two are held at a time).
  Waits gather_block(Block block) {
    const bool beside = options_.overlap_parameters;
    Waits waits;
    if (beside && block_start_) waits.push_back(*block_start_);
    const auto done = data_collective(beside ? kParameterStream : kComputeStream, Collective::all_gather,
                                      parameters(block), options_.element_bytes(), "gather parameters", waits);
    return done && beside ? Waits{*done} : Waits{};
  }

  /// Sharded optimizer with overlap: parameters updated by the step before are gathered beside the first forward
  /// passes.
  void gather_parameters_early() {
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      for (std::size_t first = 0; first < chunks_[chunk].size(); first += bucket_blocks_) {
        const std::size_t end = std::min(first + bucket_blocks_, chunks_[chunk].size());
        BlockParameters bucket;
        for (std::size_t i = first; i < end; ++i) add(bucket, parameters(chunks_[chunk][i]));
        gathered_[chunk][first] = data_collective(kParameterStream, Collective::all_gather, bucket,
                                                  options_.element_bytes(), "gather parameters", {});
      }
    }
  }

  static void add(BlockParameters& sum, const BlockParameters& more) {
    sum.dense += more.dense;
    sum.experts += more.experts;
  }

  // --- calls ---

  /// Waits of the i-th block of a call in its order: the call's inputs first, and parameters that are under way.
  void enter_block(Waits& waits, Block block) {
    if (!fsdp()) return;
    const Waits gathered = gather_block(block);
    waits.insert(waits.end(), gathered.begin(), gathered.end());
  }

  std::uint32_t forward(const StageCall& call, std::span<const std::uint32_t> inputs) {
    Waits waits(inputs.begin(), inputs.end());
    const std::vector<Block>& blocks = chunks_[call.chunk];
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      enter_block(waits, blocks[i]);
      std::optional<std::uint32_t>& gathered = gathered_[call.chunk][i];
      if (gathered) waits.push_back(*gathered);
      gathered.reset();  // later micro-batches find the parameters there
      const std::optional<std::uint32_t> before = last_compute_;
      write_steps(steps_.of(blocks[i]).forward, std::move(waits));
      waits.clear();
      block_start_ = before;
    }
    return *last_compute_;
  }

  std::uint32_t backward(const StageCall& call, std::span<const std::uint32_t> inputs) {
    Waits waits(inputs.begin(), inputs.end());
    const std::vector<Block>& blocks = chunks_[call.chunk];
    const bool last_micro_batch = call.micro_batch + 1 == options_.micro_batches();
    // Sharded gradients cannot accumulate whole: ZeRO 2 and 3 reduce those of every micro-batch.
    const bool reduce = options_.overlap_gradients && (last_micro_batch || options_.zero_stage >= 2);
    BlockParameters pending;
    std::size_t pending_blocks = 0;
    for (std::size_t i = blocks.size(); i-- > 0;) {
      enter_block(waits, blocks[i]);
      const std::optional<std::uint32_t> before = last_compute_;
      write_steps(steps_.of(blocks[i]).backward, std::move(waits));
      waits.clear();
      block_start_ = before;
      add(pending, parameters(blocks[i]));
      ++pending_blocks;
      const std::size_t bucket = fsdp() ? 1 : bucket_blocks_;
      if (reduce && (pending_blocks >= bucket || i == 0)) {
        reduce_gradients(pending, true);
        pending = {};
        pending_blocks = 0;
      }
    }
    if (!options_.overlap_gradients && options_.zero_stage >= 2) reduce_gradients(pending, false);
    return *last_compute_;
  }

  // --- end of the step ---

  [[nodiscard]] BlockParameters stage_parameters() const {
    BlockParameters sum;
    for (const std::vector<Block>& blocks : chunks_) {
      for (const Block block : blocks) add(sum, parameters(block));
    }
    return sum;
  }

  void scalar_all_reduce(std::uint16_t slot, Cause cause, Waits waits) {
    last_compute_ =
        builder_.collective(kComputeStream, slot, {Collective::all_reduce, Bytes(4), cause}, "gradient norm", waits);
  }

  /// The first and the last stage each hold a copy of a tied embedding and add up its gradients.
  void reduce_shared_embedding() {
    const std::int64_t last = options_.parallel.pipeline - 1;
    if (!options_.model.tied_embeddings || last == 0 || (stage_ != 0 && stage_ != last)) return;
    const double table = static_cast<double>(options_.model.vocabulary) * static_cast<double>(options_.model.hidden) /
                         static_cast<double>(options_.parallel.tensor);
    const Operation operation{Collective::all_reduce, Bytes(std::llround(table * options_.gradient_bytes())),
                              Cause::exposed_pipeline};
    last_compute_ =
        builder_.collective(kComputeStream, kEmbeddingSlot, operation, "reduce shared embedding", wait_all());
  }

  /// What the compute stream must still wait for before it may use the gradients.
  Waits wait_all() {
    Waits waits;
    if (last_reduction_) waits.push_back(*last_reduction_);
    last_reduction_.reset();
    return waits;
  }

  void finish_step() {
    const BlockParameters all = stage_parameters();
    if (!options_.overlap_gradients && options_.zero_stage < 2) reduce_gradients(all, false);
    reduce_shared_embedding();
    // Gradient clipping needs the norm over the whole model: over a replica's ranks, and over the shards of sharded
    // ones.
    Waits waits = wait_all();
    if (options_.zero_stage >= 1 && dense_ranks() > 1) {
      scalar_all_reduce(kGradientSlot, Cause::exposed_data, std::move(waits));
      waits.clear();
    }
    if (options_.parallel.tensor * options_.parallel.pipeline > 1) {
      // Waiting here for stages that finish later is part of the pipeline's bubble.
      const bool stages = options_.parallel.pipeline > 1;
      scalar_all_reduce(kModelSlot, stages ? Cause::exposed_pipeline : Cause::exposed_tensor, std::move(waits));
      waits.clear();
    }
    const bool sharded = options_.zero_stage >= 1;
    const double own = all.dense / static_cast<double>(sharded ? dense_ranks() : 1) +
                       all.experts / static_cast<double>(sharded ? expert_ranks() : 1);
    last_compute_ =
        builder_.kernel(kComputeStream, Cause::optimizer, "optimizer", optimizer_time(options_, own, gpu_), waits);
    if (sharded_optimizer() && !options_.overlap_parameters) {
      data_collective(kComputeStream, Collective::all_gather, all, options_.element_bytes(), "gather parameters", {});
    }
  }

  ProgramBuilder builder_;
  const TransformerOptions& options_;
  const StepTable& steps_;
  const GpuSpec& gpu_;
  std::uint32_t stage_;
  std::vector<std::vector<Block>> chunks_;
  std::size_t bucket_blocks_ = 1;
  std::vector<std::vector<std::optional<std::uint32_t>>>
      gathered_;  // per block: the gather its first forward waits for
  std::optional<std::uint32_t> last_compute_;
  std::optional<std::uint32_t> block_start_;     // the last compute instruction before the current block
  std::optional<std::uint32_t> last_reduction_;  // of gradients, beside the compute stream
};

// --- ranks ---

void add_groups(Job& job, const RankGrid& grid, std::span<const Axis> axes, std::uint16_t slot) {
  std::vector<std::uint16_t> slots;
  grid.for_each_group(axes, [&](std::span<const RankId> members) {
    if (members.size() < 2) return;
    slots.assign(members.size(), slot);
    job.add_communicator(members, slots);
  });
}

void add_communicators(Job& job, const RankGrid& grid, const TransformerOptions& options) {
  add_pipeline_communicators(job, grid, options.parallel.virtual_stages > 1);
  add_groups(job, grid, std::array{Axis::tensor}, kTensorSlot);
  add_groups(job, grid, std::array{Axis::context}, kContextSlot);
  add_groups(job, grid, std::array{Axis::expert}, kExpertSlot);
  add_groups(job, grid, std::array{Axis::context, Axis::expert, Axis::data}, kGradientSlot);
  if (options.model.experts > 0) add_groups(job, grid, std::array{Axis::context, Axis::data}, kExpertGradientSlot);
  add_groups(job, grid, std::array{Axis::tensor, Axis::pipeline}, kModelSlot);
  if (!options.model.tied_embeddings || options.parallel.pipeline == 1) return;
  const auto last = static_cast<std::uint32_t>(options.parallel.pipeline - 1);
  constexpr std::array<std::uint16_t, 2> kSlots{kEmbeddingSlot, kEmbeddingSlot};
  for (std::uint32_t r = 0; r < grid.ranks(); ++r) {
    if (grid.coordinate(RankId(r), Axis::pipeline) != 0) continue;
    job.add_communicator(std::array{RankId(r), grid.moved(RankId(r), Axis::pipeline, last)}, kSlots);
  }
}

void require_gpus(const TransformerOptions& options, const Cluster& cluster) {
  const ParallelLayout& layout = options.parallel;
  const std::int64_t room = static_cast<std::int64_t>(cluster.gpus()) - options.first_gpu;
  if (layout.ranks() <= room) return;
  const std::int64_t replica = layout.tensor * layout.pipeline * layout.context;
  std::int64_t data = std::max<std::int64_t>(0, room) / replica;
  const std::int64_t passes = options.global_batch / options.micro_batch;
  while (data > 0 && (data % layout.expert != 0 || passes % data != 0)) --data;
  const std::string fits = data > 0 ? fmt::format("data = {} fits", data)
                                    : fmt::format("not even one replica of {} GPUs fits", replica * layout.expert);
  infeasible("tensor x pipeline x data x context = {} x {} x {} x {} needs {} GPUs, the cluster has {}{}; {}",
             layout.tensor, layout.pipeline, layout.data, layout.context, layout.ranks(), cluster.gpus(),
             options.first_gpu > 0 ? fmt::format(" and the job begins at GPU {}", options.first_gpu) : "", fits);
}

WorkloadFigures figures_of(const TransformerOptions& options, const GpuSpec& gpu) {
  WorkloadFigures figures;
  figures.samples_per_step = static_cast<double>(options.global_batch);
  figures.tokens_per_step = figures.samples_per_step * static_cast<double>(options.sequence_length);
  figures.parameters = parameter_count(options.model);
  figures.flop_terms =
      training_flops(options.model, options.sequence_length, figures.tokens_per_step, true, options.recompute);
  figures.model_flops = model_flops(figures.flop_terms);
  figures.hardware_flops = hardware_flops(figures.flop_terms);
  figures.peak_type = options.precision;
  figures.memory = fullest_stage_memory(options, gpu.memory);
  return figures;
}

std::vector<std::string> notes_of(const TransformerOptions& options, const Cluster& cluster) {
  std::vector<std::string> notes;
  if (options.parallel.ranks() < cluster.gpus()) {
    notes.push_back(fmt::format("the job uses {} of the cluster's {} GPUs", options.parallel.ranks(), cluster.gpus()));
  }
  const std::int64_t positions = options.parallel.pipeline * options.parallel.virtual_stages;
  if (options.model.layers % positions != 0) {
    const std::vector<std::int64_t> layers = layers_per_position(options.model.layers, positions);
    notes.push_back(
        fmt::format("{} layers do not divide over {} stage chunks: the first has {}, the middle {}, the last {}",
                    options.model.layers, positions, layers.front(), layers[layers.size() / 2], layers.back()));
  }
  notes.push_back(fmt::format("{} of GPU memory is set aside as workspace", format(options.workspace)));
  notes.emplace_back(
      "attention FLOPs are counted causal (half); scores recomputed inside fused attention are not counted");
  if (options.overlap_parameters && options.zero_stage > 0 && options.zero_stage < 3) {
    notes.emplace_back("parameters of the step before are gathered beside this step's first forward passes");
  }
  if (options.model.experts > 0 && options.expert_imbalance == 1) {
    notes.emplace_back("experts are taken as perfectly balanced (expert_imbalance = 1)");
  }
  std::vector<std::string> assumed;
  for (const auto& [key, provenance] : options.model.provenance) {
    if (provenance.assumed) assumed.push_back(key);
  }
  if (!assumed.empty()) {
    notes.push_back(fmt::format("assumed, not published, of {}: {}", options.model.name, fmt::join(assumed, ", ")));
  }
  return notes;
}

BuiltWorkload build_options(const TransformerOptions& options, const WorkloadContext& context) {
  require_gpus(options, context.cluster);
  if (context.gpu.peak(options.precision).value() <= 0) {
    infeasible("{} has no {} peak; choose a precision that it supports", context.gpu.name, name(options.precision));
  }
  if (options.check_memory) require_memory(options, context.gpu);

  BuiltWorkload result;
  Job& job = result.job;
  job.name = options.model.name;
  job.slots = kTrainingSlots;
  const RankGrid grid(options.parallel, options.rank_order);
  job.gpu_of = place_ranks(context.cluster, grid.ranks(), options.placement, options.first_gpu, options.placement_seed);
  job.program_of.reserve(grid.ranks());
  for (std::uint32_t rank = 0; rank < grid.ranks(); ++rank) {
    job.program_of.push_back(grid.coordinate(RankId(rank), Axis::pipeline));
    if (!context.gpu_slowdown.empty()) job.slowdown.push_back(context.gpu_slowdown[job.gpu_of[rank].index()]);
  }
  job.slot_of.resize(std::size_t{grid.ranks()} * job.slots);  // a job may have no communicator at all
  add_communicators(job, grid, options);

  const GpuSpec gpu = under_sustained_load(context.gpu);
  const StepTable steps(options, gpu);
  const bool controller = options.dispatch == Dispatch::single_controller && options.stage_call_overhead.count() > 0;
  const auto ranks_of_stage = static_cast<std::uint32_t>(options.parallel.ranks() / options.parallel.pipeline);
  const auto launches = controller ? controller_launches(options.pipeline_shape(), ranks_of_stage)
                                   : std::vector<std::vector<std::uint32_t>>{};
  for (std::uint32_t stage = 0; stage < options.parallel.pipeline; ++stage) {
    StageWriter writer(job, options, steps, gpu, stage);
    writer.write(controller ? std::span<const std::uint32_t>(launches[stage]) : std::span<const std::uint32_t>{});
  }
  result.figures = figures_of(options, context.gpu);
  result.notes = notes_of(options, context.cluster);
  return result;
}

BuiltWorkload build(const Settings& settings, const WorkloadContext& context) {
  return build_options(read_transformer_options(settings, context.catalog), context);
}

BuiltWorkload build_one_replica(const Settings& settings, const WorkloadContext& context) {
  BuiltWorkload result = build_options(read_transformer_options(settings, context.catalog, true), context);
  result.notes.emplace_back("one replica for comparison only: whether it fits GPU memory alone is not checked");
  return result;
}

}  // namespace

extern const WorkloadEntry kTransformerTraining;
const WorkloadEntry kTransformerTraining{
    "transformer-training",
    "one optimizer step of a decoder: tensor, sequence, pipeline, data, context and "
    "expert parallelism, ZeRO, recomputation",
    transformer_schema::kSchema, build, build_one_replica};

}  // namespace clustersim
