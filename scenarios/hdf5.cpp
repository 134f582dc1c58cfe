// The result as one self-describing file: HDF5 that is also valid netCDF-4.
#include "scenarios/hdf5.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/netcdf_writer.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

template <class Item, class Get>
auto column(const std::vector<Item>& items, const Get& get) {
  std::vector<std::decay_t<decltype(get(items.front()))>> values;
  values.reserve(items.size());
  for (const Item& item : items) values.push_back(get(item));
  return values;
}

std::vector<std::int64_t> count_up(std::size_t size) {
  std::vector<std::int64_t> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<std::int64_t>(i);
  return values;
}

std::vector<std::string> cause_names() {
  std::vector<std::string> names;
  names.reserve(kCauses);
  for (std::size_t i = 0; i < kCauses; ++i) names.emplace_back(name(static_cast<Cause>(i)));
  return names;
}

/// One number per step, with its unit.
struct Scalar {
  std::string_view name;
  std::string_view units;
  std::string_view description;
  double (*get)(const StepReport& report);
};

constexpr Scalar kScalars[] = {
    {"gpus", "1", "GPUs that the job runs on", [](const StepReport& r) { return static_cast<double>(r.ranks); }},
    {"step_time", "s", "Time of one optimizer step", [](const StepReport& r) { return r.step_time_s; }},
    {"tokens_per_second", "s-1", "Tokens trained on per second, all GPUs",
     [](const StepReport& r) { return r.tokens_per_s; }},
    {"samples_per_second", "s-1", "Samples (sequences) per second, all GPUs",
     [](const StepReport& r) { return r.samples_per_s; }},
    {"steps", "1", "Optimizer steps of the whole job, all like the simulated one",
     [](const StepReport& r) { return static_cast<double>(r.steps); }},
    {"total_time", "s", "Time of the whole job", [](const StepReport& r) { return r.total_time_s; }},
    {"total_tokens", "1", "Tokens of the whole job", [](const StepReport& r) { return r.total_tokens; }},
    {"gpu_hours", "h", "Time of the whole job, summed over GPUs", [](const StepReport& r) { return r.gpu_hours; }},
    {"model_flop_rate", "s-1", "Floating-point operations of the model per second and GPU",
     [](const StepReport& r) { return r.model_rate_per_gpu.value(); }},
    {"hardware_flop_rate", "s-1", "Executed floating-point operations, with recomputation, per second and GPU",
     [](const StepReport& r) { return r.hardware_rate_per_gpu.value(); }},
    {"peak_flop_rate", "s-1", "Dense peak of one GPU that MFU is measured against",
     [](const StepReport& r) { return r.peak.value(); }},
    {"mfu", "1", "Model FLOP/s utilization", [](const StepReport& r) { return r.mfu; }},
    {"hfu", "1", "Hardware FLOP/s utilization", [](const StepReport& r) { return r.hfu; }},
    {"exposed_communication_share", "1", "Share of GPU time spent waiting for communication",
     [](const StepReport& r) { return r.exposed_communication_share; }},
    {"bubble_share", "1", "Share of GPU time spent waiting for other pipeline stages",
     [](const StepReport& r) { return r.bubble_share; }},
    {"scaling_efficiency", "1", "Throughput per GPU over that of one model replica alone; NaN where not defined",
     [](const StepReport& r) { return r.scaling_efficiency.value_or(std::numeric_limits<double>::quiet_NaN()); }},
    {"memory_used", "byte", "Memory of the fullest GPU",
     [](const StepReport& r) { return r.figures.memory.total_bytes(); }},
    {"memory_capacity", "byte", "Memory of one GPU",
     [](const StepReport& r) { return static_cast<double>(r.figures.memory.capacity.value()); }},
    {"parameters", "1", "Parameters of the model", [](const StepReport& r) { return r.figures.parameters; }},
    {"tokens_per_step", "1", "Tokens of one step", [](const StepReport& r) { return r.figures.tokens_per_step; }},
    {"bytes_sent", "byte", "Bytes that all GPUs sent", [](const StepReport& r) { return r.step.bytes_sent; }},
    {"events", "1", "Simulated events", [](const StepReport& r) { return static_cast<double>(r.step.events); }},
    {"flow_events", "1", "Starts, ends and capacity changes of flows",
     [](const StepReport& r) { return static_cast<double>(r.step.flow_events); }},
};

void write_ledger(NetcdfWriter& file, const StepReport& report) {
  const std::vector<RankClass>& classes = report.step.rank_classes;
  file.text_dimension("cause", cause_names(), "What GPU time goes to");
  file.integer_dimension("rank_class", count_up(classes.size()), "1", "Classes of ranks that behave alike");
  std::vector<double> ledger;
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    for (const RankClass& item : classes) ledger.push_back(to_seconds(item.ledger[cause]));
  }
  file.numbers("ledger", {"cause", "rank_class"}, ledger, "s", "Time that one rank of each class spends on each cause");
  std::vector<double> shares;
  shares.reserve(kCauses);
  for (const CauseShare& share : report.ledger) shares.push_back(share.mean);
  file.numbers("ledger_share", {"cause"}, shares, "1", "Share of all GPU time that goes to each cause; sums to 1");
  file.integers("rank_class_size", {"rank_class"},
                column(classes, [](const RankClass& c) { return std::int64_t{c.count}; }), "1", "Ranks in the class");
  file.integers("rank_class_representative", {"rank_class"},
                column(classes, [](const RankClass& c) { return std::int64_t{c.representative}; }), "1",
                "First rank of the class");
  file.integers("rank_class_program", {"rank_class"},
                column(classes, [](const RankClass& c) { return std::int64_t{c.program}; }), "1",
                "Number of the program that its ranks run");
}

void write_resources(NetcdfWriter& file, const std::vector<NamedUsage>& resources) {
  if (resources.empty()) return;
  file.text_dimension("resource", column(resources, [](const NamedUsage& r) { return r.name; }),
                      "Links and bundles of links, one of each class of equal ones, busiest first");
  const std::vector<std::string> by_resource{"resource"};
  file.numbers("resource_bytes", by_resource, column(resources, [](const NamedUsage& r) { return r.usage.bytes; }),
               "byte", "Bytes that one of the class carried");
  file.numbers("resource_utilization", by_resource,
               column(resources, [](const NamedUsage& r) { return r.usage.busy_share; }), "1",
               "Bytes carried over usable capacity times step time");
  file.numbers("resource_capacity", by_resource,
               column(resources, [](const NamedUsage& r) { return r.usage.capacity.value(); }), "byte s-1",
               "Usable capacity, after protocol efficiency");
  file.integers("resource_count", by_resource,
                column(resources, [](const NamedUsage& r) { return std::int64_t{r.usage.count}; }), "1",
                "How many equal ones there are");
}

void write_communication(NetcdfWriter& file, const std::vector<CommunicationSummary>& items) {
  if (items.empty()) return;
  using Item = CommunicationSummary;
  const std::vector<std::string> by_item{"communication"};
  file.integer_dimension("communication", count_up(items.size()), "1", "Kinds of communication of the step");
  file.texts("communication_collective", by_item,
             column(items, [](const Item& c) { return std::string(name(c.collective)); }), "Collective operation");
  file.texts("communication_cause", by_item,
             column(items, [](const Item& c) { return std::string(name(c.exposed_as)); }),
             "Ledger cause that waiting for it is booked under");
  file.texts("communication_algorithm", by_item, column(items, [](const Item& c) { return std::string(c.algorithm); }),
             "Algorithm");
  file.texts("communication_reason", by_item, column(items, [](const Item& c) { return c.reason; }),
             "Why this algorithm");
  file.integers("communication_operations", by_item,
                column(items, [](const Item& c) { return static_cast<std::int64_t>(c.operations); }), "1",
                "Operations of all communicators");
  file.numbers("communication_bytes", by_item, column(items, [](const Item& c) { return c.bytes; }), "byte",
               "Bytes moved by all communicators");
  file.numbers("communication_busy", by_item, column(items, [](const Item& c) { return to_seconds(c.busy); }), "s",
               "Summed transfer time of one communicator, of the slowest class");
}

void write_accounts(NetcdfWriter& file, const WorkloadFigures& figures) {
  if (!figures.memory.items.empty()) {
    const auto& items = figures.memory.items;
    file.text_dimension("memory_item", column(items, [](const MemoryItem& i) { return i.name; }),
                        "What memory is used for");
    file.numbers("memory", {"memory_item"}, column(items, [](const MemoryItem& i) { return i.bytes; }), "byte",
                 "Memory account of the fullest GPU");
  }
  if (!figures.flop_terms.empty()) {
    using Term = WorkloadFigures::FlopTerm;
    const auto& terms = figures.flop_terms;
    file.text_dimension("flop_term", column(terms, [](const Term& t) { return t.name; }),
                        "What operations are done for");
    file.numbers("flop", {"flop_term"}, column(terms, [](const Term& t) { return t.flops.value(); }), "1",
                 "Floating-point operations of one step, all GPUs");
  }
}

void write_timeline(NetcdfWriter& file, const StepReport& report) {
  const std::vector<TimelineInterval>& timeline = report.step.timeline;
  if (timeline.empty()) return;
  using Interval = TimelineInterval;
  const std::vector<std::string> by_interval{"interval"};
  file.text_dimension("label", report.labels, "Names of instructions");
  file.integer_dimension("interval", count_up(timeline.size()), "1", "Intervals of one rank of each class");
  const auto integers = [&](std::string_view variable, std::string_view description, const auto& get) {
    file.integers(variable, by_interval, column(timeline, get), "1", description);
  };
  integers("timeline_rank_class", "Class of the rank", [](const Interval& i) { return std::int64_t{i.rank_class}; });
  integers("timeline_stream", "Stream: 0 computes", [](const Interval& i) { return std::int64_t{i.stream}; });
  integers("timeline_label", "Position along the dimension label",
           [](const Interval& i) { return std::int64_t{i.label}; });
  integers("timeline_cause", "Position along the dimension cause",
           [](const Interval& i) { return static_cast<std::int64_t>(i.cause); });
  file.numbers("timeline_start", by_interval, column(timeline, [](const Interval& i) { return to_seconds(i.start); }),
               "s", "Start of the interval");
  file.numbers("timeline_end", by_interval, column(timeline, [](const Interval& i) { return to_seconds(i.end); }), "s",
               "End of the interval");
}

void write_step(NetcdfWriter& file, const StepReport& report) {
  for (const Scalar& scalar : kScalars) {
    file.numbers(scalar.name, {}, {scalar.get(report)}, scalar.units, scalar.description);
  }
  write_ledger(file, report);
  write_resources(file, report.resources);
  write_communication(file, report.step.communication);
  write_accounts(file, report.figures);
  write_timeline(file, report);
}

void write_nccl(NetcdfWriter& file, const NcclReport& report) {
  if (report.rows.empty()) return;
  const std::vector<std::string> by_size{"size"};
  file.integer_dimension("size", column(report.rows, [](const NcclTestRow& r) { return r.size.value(); }), "byte",
                         fmt::format("Size of the {}, as nccl-tests counts it", name(report.operation)));
  file.numbers("gpus", {}, {static_cast<double>(report.ranks)}, "1", "GPUs that take part");
  file.numbers("time", by_size, column(report.rows, [](const NcclTestRow& r) { return to_seconds(r.time); }), "s",
               "Time of one operation");
  file.numbers("algorithm_bandwidth", by_size,
               column(report.rows, [](const NcclTestRow& r) { return r.algorithm_bandwidth.value(); }), "byte s-1",
               "Size over time (algbw)");
  file.numbers("bus_bandwidth", by_size,
               column(report.rows, [](const NcclTestRow& r) { return r.bus_bandwidth.value(); }), "byte s-1",
               "Algorithm bandwidth times the factor of nccl-tests (busbw)");
  file.texts("algorithm", by_size, column(report.rows, [](const NcclTestRow& r) { return r.algorithm; }), "Algorithm");
}

void write_attributes(NetcdfWriter& file, const Result& result) {
  file.attribute("schema_version", kResultSchemaVersion);
  file.attribute("program", "clustersim");
  file.attribute("version", result.version);
  file.attribute("scenario", result.scenario);
  file.attribute("description", result.description);
  if (!result.label.empty()) file.attribute("label", result.label);
  file.attribute("scenario_hash", result.scenario_hash);
  file.attribute("scenario_toml", result.resolved_text);
  file.attribute("seed", static_cast<std::int64_t>(result.seed));
  file.attribute("cluster", result.cluster_text);
  file.attribute("assumptions", fmt::format("{}", fmt::join(result.assumptions, "\n")));
}

void write_result(NetcdfWriter& file, const Result& result);

void write_points(NetcdfWriter& file, const std::vector<Result>& points) {
  file.integer_dimension("point", count_up(points.size()), "1", "Points of the study");
  file.texts("point_label", {"point"}, column(points, [](const Result& p) { return p.label; }), "What the point sets");
  const bool steps = std::all_of(points.begin(), points.end(), [](const Result& p) { return p.step.has_value(); });
  if (steps) {
    for (const Scalar& scalar : kScalars) {
      file.numbers(scalar.name, {"point"}, column(points, [&](const Result& p) { return scalar.get(*p.step); }),
                   scalar.units, scalar.description);
    }
    file.text_dimension("cause", cause_names(), "What GPU time goes to");
    std::vector<double> shares;
    for (const Result& point : points) {
      for (const CauseShare& share : point.step->ledger) shares.push_back(share.mean);
    }
    file.numbers("ledger_share", {"point", "cause"}, shares, "1", "Share of all GPU time that goes to each cause");
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    NetcdfWriter group = file.group(fmt::format("point_{}", i));
    write_result(group, points[i]);
  }
}

void write_result(NetcdfWriter& file, const Result& result) {
  write_attributes(file, result);
  if (result.step) write_step(file, *result.step);
  if (result.nccl) write_nccl(file, *result.nccl);
  if (!result.points.empty()) write_points(file, result.points);
  file.finish();
}

}  // namespace

std::vector<std::byte> hdf5_image(const Result& result) {
  NetcdfFile file;
  NetcdfWriter root = file.root();
  write_result(root, result);
  return file.image();
}

}  // namespace clustersim
