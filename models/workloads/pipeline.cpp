// The "pipeline" workload: a bare pipeline with given stage times, for closed forms and what-ifs.
#include <array>

#include "models/workloads/stage_program.hpp"
#include "models/workloads/workload.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

using enum ValueKind;

constexpr std::array<std::string_view, 3> kSchedules{"gpipe", "1f1b", "interleaved-1f1b"};
constexpr std::array<std::string_view, 2> kDispatches{"per-rank", "single-controller"};

constexpr std::array kSchema{
    Parameter{
        .name = "stages", .kind = integer, .help = "GPUs in a row", .required = true, .minimum = 1, .maximum = 1e5},
    Parameter{.name = "data",
              .kind = integer,
              .default_text = "1",
              .help = "independent pipelines beside each other",
              .minimum = 1,
              .maximum = 1e6},
    Parameter{.name = "micro_batches",
              .kind = integer,
              .help = "through each pipeline per step",
              .required = true,
              .minimum = 1,
              .maximum = 1e5},
    Parameter{.name = "virtual_stages",
              .kind = integer,
              .default_text = "1",
              .help = "model chunks per stage; each takes that share of the stage's time",
              .minimum = 1,
              .maximum = 1e3},
    Parameter{.name = "schedule",
              .kind = choice,
              .default_text = "1f1b",
              .help = "order of micro-batches in a stage",
              .choices = kSchedules},
    Parameter{.name = "forward",
              .kind = duration,
              .help = "one micro-batch through one stage",
              .required = true,
              .minimum = 0,
              .maximum = 1e6},
    Parameter{.name = "backward",
              .kind = duration,
              .help = "the same, backward",
              .required = true,
              .minimum = 0,
              .maximum = 1e6},
    Parameter{.name = "stage_time_factors",
              .kind = numbers,
              .help = "multiplies forward and backward, one per stage; default: 1 for all",
              .minimum = 0,
              .maximum = 1e6},
    Parameter{
        .name = "payload", .kind = bytes, .default_text = "0 B", .help = "to the next stage per call", .minimum = 0},
    Parameter{.name = "stage_call_overhead",
              .kind = duration,
              .default_text = "0 s",
              .help = "host time of one launch",
              .minimum = 0,
              .maximum = 1e4},
    Parameter{.name = "dispatch",
              .kind = choice,
              .default_text = "per-rank",
              .help = "who launches: every rank for itself, or one process for all, one call after another",
              .choices = kDispatches},
};

PipelineShape read_shape(const Settings& settings) {
  const PipelineShape shape{parse_pipeline_schedule(settings.text("schedule")),
                            static_cast<std::uint32_t>(settings.integer("stages")),
                            static_cast<std::uint32_t>(settings.integer("micro_batches")),
                            static_cast<std::uint32_t>(settings.integer("virtual_stages"))};
  if (shape.chunks > 1 && shape.schedule == PipelineSchedule::one_forward_one_backward) {
    settings.reject("virtual_stages", "1f1b has one chunk per stage; use schedule = \"interleaved-1f1b\"");
  }
  if (shape.schedule == PipelineSchedule::interleaved && shape.micro_batches % shape.stages != 0) {
    settings.reject("micro_batches", "interleaved-1f1b needs a multiple of the {} stages; {} works", shape.stages,
                    (shape.micro_batches / shape.stages + 1) * shape.stages);
  }
  return shape;
}

std::vector<double> read_factors(const Settings& settings, std::uint32_t stages) {
  if (!settings.has("stage_time_factors")) return std::vector<double>(stages, 1.0);
  const std::vector<double>& factors = settings.numbers("stage_time_factors");
  if (factors.size() != stages) {
    settings.reject("stage_time_factors", "expected {} numbers, one per stage, and got {}", stages, factors.size());
  }
  return factors;
}

void write_programs(Job& job, const Settings& settings, const PipelineShape& shape, std::uint32_t data) {
  const std::vector<double> factors = read_factors(settings, shape.stages);
  const bool controller = settings.text("dispatch") == "single-controller";
  const auto launches = controller ? controller_launches(shape, data) : std::vector<std::vector<std::uint32_t>>{};
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    const double share = factors[stage] / shape.chunks;
    const auto forward = from_seconds<Picoseconds>(settings.seconds("forward") * share);
    const auto backward = from_seconds<Picoseconds>(settings.seconds("backward") * share);
    ProgramBuilder builder(job, kHostStream + 1);
    const StageFrame frame{
        .shape = shape,
        .stage = stage,
        .payload = settings.bytes("payload"),
        .call_overhead = settings.duration("stage_call_overhead"),
        .dispatch = controller ? Dispatch::single_controller : Dispatch::per_rank,
        .launches = controller ? std::span<const std::uint32_t>(launches[stage]) : std::span<const std::uint32_t>{}};
    write_stage_calls(builder, frame, [&](const StageCall& call, std::span<const std::uint32_t> inputs) {
      return builder.kernel(kComputeStream, Cause::compute, call.backward ? "backward" : "forward",
                            call.backward ? backward : forward, inputs);
    });
    builder.finish();
  }
}

BuiltWorkload build_pipelines(const Settings& settings, const WorkloadContext& context, std::int64_t data) {
  const PipelineShape shape = read_shape(settings);
  const ParallelLayout layout{.pipeline = shape.stages, .data = data};
  if (layout.ranks() > context.cluster.gpus()) {
    infeasible("data = {} pipelines of {} stages need {} GPUs and the cluster has {}; data = {} fits", data,
               shape.stages, layout.ranks(), context.cluster.gpus(), context.cluster.gpus() / shape.stages);
  }
  // Stages of one pipeline sit next to each other.
  const RankGrid grid(layout, {Axis::pipeline, Axis::tensor, Axis::context, Axis::expert, Axis::data});
  BuiltWorkload result;
  Job& job = result.job;
  job.name = "pipeline";
  job.slots = kPipelineSlots;
  job.gpu_of = place_ranks(context.cluster, grid.ranks(), Placement::packed, 0, 0);
  for (std::uint32_t rank = 0; rank < grid.ranks(); ++rank) {
    job.program_of.push_back(grid.coordinate(RankId(rank), Axis::pipeline));
    if (!context.gpu_slowdown.empty()) job.slowdown.push_back(context.gpu_slowdown[job.gpu_of[rank].index()]);
  }
  job.slot_of.resize(std::size_t{grid.ranks()} * job.slots);  // a job may have no communicator at all
  add_pipeline_communicators(job, grid, shape.chunks > 1);
  write_programs(job, settings, shape, static_cast<std::uint32_t>(data));
  result.figures.samples_per_step = static_cast<double>(shape.micro_batches) * static_cast<double>(data);
  result.notes.emplace_back(
      "samples are micro-batches; the stages' times are given, so nothing is known of FLOPs and memory");
  return result;
}

BuiltWorkload build(const Settings& settings, const WorkloadContext& context) {
  return build_pipelines(settings, context, settings.integer("data"));
}

BuiltWorkload build_one_replica(const Settings& settings, const WorkloadContext& context) {
  return build_pipelines(settings, context, 1);
}

}  // namespace

extern const WorkloadEntry kPipeline;
const WorkloadEntry kPipeline{"pipeline", "a bare pipeline with given stage times", kSchema, build, build_one_replica};

}  // namespace clustersim
