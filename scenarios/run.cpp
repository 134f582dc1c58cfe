// Runs a scenario: one step, a table of collectives, or every point of a study.
#include "scenarios/run.hpp"

#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/collectives/nccl_test.hpp"
#include "models/programs/execute.hpp"
#include "scenarios/build.hpp"
#include "sim/errors.hpp"
#include "sim/parallel.hpp"

namespace clustersim {
namespace {

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux counts KiB
}

std::string describe_cluster(const Scenario& scenario, const BuiltCluster& built) {
  std::string text;
  for (const NodeCount& group : scenario.cluster.groups) {
    const NodeSpec& node = scenario.catalog->node(group.node);
    text += fmt::format("{}{} x {} ({} x {})", text.empty() ? "" : " + ", group.count, node.name, node.shape.gpus,
                        scenario.catalog->gpu(node.gpu).title);
  }
  if (built.cluster->fabric() == nullptr) return text + ", no network";
  const Settings& network = scenario.cluster.network.settings;
  return text + fmt::format(", {}, {} {}, {} routing", scenario.cluster.fabric->name,
                            format_bits(scenario.cluster.link_rate), name(scenario.cluster.link_kind),
                            network.text("routing"));
}

Result start_result(const Scenario& scenario) {
  Result result;
  result.scenario = scenario.name;
  result.description = scenario.description;
  result.label = scenario.label;
  result.scenario_hash = scenario.hash;
  result.resolved_text = scenario.resolved_text;
  result.version = program_version();
  result.seed = scenario.seed;
  return result;
}

ExecutionOptions execution_options(const RunOptions& options) {
  ExecutionOptions execution;
  execution.lump = options.lump;
  execution.record_timeline = options.record_timeline;
  execution.stage = options.stage;
  execution.progress = options.progress;
  return execution;
}

double work_per_step(const WorkloadFigures& figures) {
  return figures.tokens_per_step > 0 ? figures.tokens_per_step : figures.samples_per_step;
}

/// Throughput per GPU over that of one model replica alone on nominal hardware. Why there is none goes to `notes`.
void add_scaling(const Scenario& scenario, const BuiltCluster& built, const RunOptions& options, StepReport& report,
                 std::vector<std::string>& notes) {
  const bool degraded = !scenario.cluster.degraded.empty();
  std::optional<BuiltCluster> nominal;
  if (degraded) nominal = build_cluster(scenario, Health::nominal);
  const BuiltCluster& healthy = degraded ? *nominal : built;
  BuiltWorkload replica;
  try {
    replica = build_one_replica(scenario, healthy);
  } catch (const Infeasible& reason) {
    notes.push_back(fmt::format("no scaling efficiency: one model replica alone is not possible ({})", reason.what()));
    return;
  }
  if (replica.job.ranks() == 0) return;
  report.replica_ranks = replica.job.ranks();
  if (replica.job.ranks() == report.ranks && !degraded) {
    report.scaling_efficiency = 1.0;
    return;
  }
  RunOptions quiet = options;
  quiet.record_timeline = false;
  const StepResult step = execute(replica.job, *healthy.cluster, scenario.communication, execution_options(quiet));
  const double alone =
      work_per_step(replica.figures) / to_seconds(step.step_time) / static_cast<double>(replica.job.ranks());
  const double here = work_per_step(report.figures) / report.step_time_s / static_cast<double>(report.ranks);
  report.scaling_efficiency = here / alone;
}

void run_job(const Scenario& scenario, const BuiltCluster& built, const RunOptions& options, Result& result) {
  if (options.stage) options.stage("writing the job's programs");
  BuiltWorkload workload = build_workload(scenario, built);
  StepReport& report = result.step.emplace();
  report.workload = scenario.job->workload->name;
  report.job = scenario.job->name.empty() ? workload.job.name : scenario.job->name;
  report.steps = scenario.job->steps;
  report.ranks = workload.job.ranks();
  report.step = execute(workload.job, *built.cluster, scenario.communication, execution_options(options));
  report.figures = std::move(workload.figures);
  report.labels = std::move(workload.job.labels);
  report.peak = built.gpu->peak(report.figures.peak_type);
  for (const ResourceUsage& usage : report.step.resources) {
    report.resources.push_back({built.cluster->network().resource_name(usage.resource), usage});
  }
  derive_figures(report);
  for (std::string& note : workload.notes) result.assumptions.push_back(std::move(note));
  if (options.scaling) add_scaling(scenario, built, options, report, result.assumptions);
}

void run_nccl(const Scenario& scenario, const BuiltCluster& built, Result& result) {
  const NcclTestOptions& test = *scenario.nccl_test;
  NcclReport& report = result.nccl.emplace();
  report.operation = test.operation;
  report.ranks = built.cluster->gpus();
  report.form = test.form;
  std::vector<GpuId> members;
  members.reserve(built.cluster->gpus());
  for (std::uint32_t gpu = 0; gpu < built.cluster->gpus(); ++gpu) members.emplace_back(gpu);
  report.rows = run_nccl_test({*built.cluster, members}, scenario.communication, test);
}

void run_points(const Scenario& scenario, const RunOptions& options, Result& result) {
  RunOptions each = options;
  each.threads = 1;
  if (options.threads != 1) {
    each.stage = nullptr;
    each.progress = nullptr;
  }
  result.points.resize(scenario.points.size());
  in_parallel(scenario.points.size(), options.threads,
              [&](std::size_t i) { result.points[i] = run_scenario(scenario.points[i], each); });
}

}  // namespace

Result run_scenario(const Scenario& scenario, const RunOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  Result result = start_result(scenario);
  if (!scenario.points.empty()) {
    run_points(scenario, options, result);
    const Result& last = result.points.back();
    result.cluster_gpus = last.cluster_gpus;
    result.cluster_nodes = last.cluster_nodes;
    result.cluster_text = last.cluster_text;
    result.assumptions = last.assumptions;
  } else {
    if (options.stage) options.stage("building the cluster");
    const BuiltCluster built = build_cluster(scenario);
    result.cluster_gpus = built.cluster->gpus();
    result.cluster_nodes = built.cluster->nodes();
    result.cluster_text = describe_cluster(scenario, built);
    if (scenario.job) run_job(scenario, built, options, result);
    if (scenario.nccl_test) run_nccl(scenario, built, result);
    for (std::string& note : assumed_figures(scenario)) result.assumptions.push_back(std::move(note));
  }
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  result.peak_rss_mib = peak_rss_mib();
  return result;
}

std::vector<CheckReport> check_scenario(const Scenario& scenario) {
  std::vector<CheckReport> reports;
  if (!scenario.points.empty()) {
    for (const Scenario& point : scenario.points) {
      for (CheckReport& report : check_scenario(point)) reports.push_back(std::move(report));
    }
    return reports;
  }
  const BuiltCluster built = build_cluster(scenario);
  CheckReport report;
  report.name = scenario.name;
  report.label = scenario.label;
  report.gpus = built.cluster->gpus();
  if (scenario.job) {
    const BuiltWorkload workload = build_workload(scenario, built);
    report.ranks = workload.job.ranks();
    report.memory_bytes = workload.figures.memory.total_bytes();
    report.memory_capacity = workload.figures.memory.capacity;
  }
  reports.push_back(std::move(report));
  return reports;
}

}  // namespace clustersim
