// Figures derived from a simulated step, checked against physics, and the result as JSON.
#include "scenarios/result.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

using Json = nlohmann::ordered_json;

// Rounding of sums of a few thousand terms; anything larger is a fault.
constexpr double kTolerance = 1e-9;

/// Every GPU-second goes to exactly one cause: each class's ledger is the step time to the tick, and the classes are
/// all ranks.
void derive_ledger(StepReport& report) {
  const StepResult& step = report.step;
  ensure(step.step_time.count() > 0, "a step that takes no time");
  std::int64_t ranks = 0;
  for (CauseShare& share : report.ledger) share = {0, 1, 0};
  for (const RankClass& rank_class : step.rank_classes) {
    Picoseconds sum{0};
    for (std::size_t i = 0; i < kCauses; ++i) {
      sum += rank_class.ledger[i];
      const double share = to_seconds(rank_class.ledger[i]) / report.step_time_s;
      ensure(share >= 0, "negative {} time on rank {}", name(static_cast<Cause>(i)), rank_class.representative);
      CauseShare& total = report.ledger[i];
      total.mean += share * rank_class.count / static_cast<double>(report.ranks);
      total.minimum = std::min(total.minimum, share);
      total.maximum = std::max(total.maximum, share);
    }
    ensure(sum == step.step_time, "the ledger of rank {} sums to {} ps of a step of {} ps", rank_class.representative,
           sum.count(), step.step_time.count());
    ranks += rank_class.count;
  }
  ensure(ranks == report.ranks, "the rank classes hold {} ranks of {}", ranks, report.ranks);
  double total = 0;
  for (const CauseShare& share : report.ledger) total += share.mean;
  ensure(std::abs(total - 1) < kTolerance, "the shares of the step sum to {}", total);
}

double share_of(const StepReport& report, Cause cause) { return report.ledger[static_cast<std::size_t>(cause)].mean; }

void check_peak(const StepReport& report, std::string_view what, Flops flops, double utilization) {
  ensure(utilization <= 1 + kTolerance,
         "{} of {:.4f}: {} in {} on {} GPUs is more than the dense {} peak of {} per GPU allows", what, utilization,
         format(flops), format_duration(report.step_time_s), report.ranks, name(report.figures.peak_type),
         format(report.peak));
}

Json resource_json(const NamedUsage& resource) {
  return {{"name", resource.name},
          {"count", resource.usage.count},
          {"bytes", resource.usage.bytes},
          {"utilization", resource.usage.busy_share},
          {"capacity_bytes_per_s", resource.usage.capacity.value()}};
}

Json lumps_json(const LumpCounts& lumps) {
  return {{"ranks", lumps.ranks},
          {"rank_classes", lumps.rank_classes},
          {"communicators", lumps.communicators},
          {"communicator_classes", lumps.communicator_classes},
          {"resources", lumps.resources},
          {"resource_classes", lumps.resource_classes}};
}

Json communication_json(const std::vector<CommunicationSummary>& communication) {
  Json list = Json::array();
  for (const CommunicationSummary& item : communication) {
    list.push_back({{"collective", name(item.collective)},
                    {"exposed_as", name(item.exposed_as)},
                    {"algorithm", item.algorithm},
                    {"reason", item.reason},
                    {"operations", item.operations},
                    {"bytes", item.bytes},
                    {"busy_s", to_seconds(item.busy)}});
  }
  return list;
}

void add_step(Json& json, const StepReport& report) {
  constexpr std::size_t kTopResources = 10;
  json["workload"] = report.workload;
  json["job"] = report.job;
  json["gpus"] = report.ranks;
  json["step_time_s"] = report.step_time_s;
  json["steps"] = report.steps;
  json["total_time_s"] = report.total_time_s;
  json["total_tokens"] = report.total_tokens;
  json["gpu_hours"] = report.gpu_hours;
  json["tokens_per_s"] = report.tokens_per_s;
  json["samples_per_s"] = report.samples_per_s;
  json["tflops_per_gpu"] = report.model_rate_per_gpu.value() / 1e12;
  json["hardware_tflops_per_gpu"] = report.hardware_rate_per_gpu.value() / 1e12;
  json["mfu"] = report.mfu;
  json["hfu"] = report.hfu;
  json["peak_tflops_per_gpu"] = report.peak.value() / 1e12;
  json["peak_type"] = name(report.figures.peak_type);
  json["memory_gib_per_gpu"] = report.figures.memory.total_bytes() / 0x1p30;
  json["memory_capacity_gib_per_gpu"] = static_cast<double>(report.figures.memory.capacity.value()) / 0x1p30;
  json["memory_gib"] = Json::object();
  for (const MemoryItem& item : report.figures.memory.items) json["memory_gib"][item.name] = item.bytes / 0x1p30;
  json["exposed_comm_share"] = report.exposed_communication_share;
  json["bubble_share"] = report.bubble_share;
  json["scaling_efficiency"] = report.scaling_efficiency ? Json(*report.scaling_efficiency) : Json(nullptr);
  for (std::size_t i = 0; i < kCauses; ++i) json["ledger_share"][name(static_cast<Cause>(i))] = report.ledger[i].mean;
  json["resources"] = Json::array();
  for (std::size_t i = 0; i < std::min(kTopResources, report.resources.size()); ++i) {
    json["resources"].push_back(resource_json(report.resources[i]));
  }
  json["communication"] = communication_json(report.step.communication);
  json["parameters"] = report.figures.parameters;
  json["tokens_per_step"] = report.figures.tokens_per_step;
  json["model_flop_per_step"] = report.figures.model_flops.value();
  json["hardware_flop_per_step"] = report.figures.hardware_flops.value();
  json["events"] = report.step.events;
  json["flow_events"] = report.step.flow_events;
  json["lumps"] = lumps_json(report.step.lumps);
}

void add_nccl(Json& json, const NcclReport& report) {
  json["op"] = name(report.operation);
  json["gpus"] = report.ranks;
  json["form"] = form_name(report.form);
  json["rows"] = Json::array();
  for (const NcclTestRow& row : report.rows) {
    json["rows"].push_back({{"size_bytes", row.size.value()},
                            {"time_us", to_seconds(row.time) * 1e6},
                            {"algbw_gb_per_s", row.algorithm_bandwidth.value() / 1e9},
                            {"busbw_gb_per_s", row.bus_bandwidth.value() / 1e9},
                            {"algorithm", row.algorithm},
                            {"reason", row.reason}});
  }
}

Json result_json(const Result& result) {
  Json json;
  json["scenario"] = result.scenario;
  if (!result.description.empty()) json["description"] = result.description;
  if (!result.label.empty()) json["label"] = result.label;
  json["scenario_hash"] = result.scenario_hash;
  json["version"] = result.version;
  json["seed"] = result.seed;
  json["cluster"] = {{"text", result.cluster_text}, {"gpus", result.cluster_gpus}, {"nodes", result.cluster_nodes}};
  if (result.step) add_step(json, *result.step);
  if (result.nccl) add_nccl(json, *result.nccl);
  if (!result.points.empty()) {
    json["points"] = Json::array();
    for (const Result& point : result.points) json["points"].push_back(result_json(point));
  }
  json["assumptions"] = result.assumptions;
  json["wall_s"] = result.wall_s;
  json["peak_rss_mib"] = result.peak_rss_mib;
  return json;
}

}  // namespace

std::string_view form_name(NcclTestForm form) {
  switch (form) {
    case NcclTestForm::pipelined:
      return "pipelined";
    case NcclTestForm::stepped:
      return "stepped";
    case NcclTestForm::simulated:
      return "simulated";
  }
  return "";
}

std::string_view program_version() { return CLUSTERSIM_VERSION; }

void derive_figures(StepReport& report) {
  report.step_time_s = to_seconds(report.step.step_time);
  derive_ledger(report);
  const WorkloadFigures& figures = report.figures;
  const double gpus = static_cast<double>(report.ranks);
  report.tokens_per_s = figures.tokens_per_step / report.step_time_s;
  report.samples_per_s = figures.samples_per_step / report.step_time_s;
  const auto steps = static_cast<double>(report.steps);
  report.total_time_s = steps * report.step_time_s;
  report.total_tokens = steps * figures.tokens_per_step;
  report.gpu_hours = gpus * report.total_time_s / 3600;
  if (figures.model_flops.value() > 0) {
    report.model_rate_per_gpu = FlopRate(figures.model_flops.value() / report.step_time_s / gpus);
    report.hardware_rate_per_gpu = FlopRate(figures.hardware_flops.value() / report.step_time_s / gpus);
    ensure(report.peak.value() > 0, "the GPU has no {} peak", name(figures.peak_type));
    report.mfu = report.model_rate_per_gpu / report.peak;
    report.hfu = report.hardware_rate_per_gpu / report.peak;
    check_peak(report, "MFU", figures.model_flops, report.mfu);
    check_peak(report, "HFU", figures.hardware_flops, report.hfu);
  }
  report.exposed_communication_share =
      share_of(report, Cause::exposed_tensor) + share_of(report, Cause::exposed_pipeline) +
      share_of(report, Cause::exposed_data) + share_of(report, Cause::exposed_context) +
      share_of(report, Cause::exposed_expert) + share_of(report, Cause::exposed_other);
  report.bubble_share = share_of(report, Cause::bubble);
}

std::string json_text(const Result& result) { return result_json(result).dump(2); }

std::string timeline_json(const Result& result) {
  ensure(result.step.has_value(), "a timeline without a step");
  const StepReport& report = *result.step;
  Json events = Json::array();
  for (std::size_t i = 0; i < report.step.rank_classes.size(); ++i) {
    const RankClass& rank_class = report.step.rank_classes[i];
    const std::string title = fmt::format("rank {} (one of {} alike)", rank_class.representative, rank_class.count);
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", i}, {"args", {{"name", title}}}});
  }
  for (const TimelineInterval& interval : report.step.timeline) {
    events.push_back({{"name", report.labels.at(interval.label)},
                      {"cat", name(interval.cause)},
                      {"ph", "X"},
                      {"pid", interval.rank_class},
                      {"tid", interval.stream},
                      {"ts", static_cast<double>(interval.start.count()) / 1e6},
                      {"dur", static_cast<double>((interval.end - interval.start).count()) / 1e6}});
  }
  const Json json = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return json.dump();
}

}  // namespace clustersim
