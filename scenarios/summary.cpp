// The result for people: aligned lines, every figure with its unit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/result.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.1f} %", share * 100); }

/// "16,384"
std::string grouped(double count) {
  const std::string digits = fmt::format("{:.0f}", count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// "0.123", "16,384", "1.68e+10": at least three digits, and no more than can be taken in at a glance.
std::string readable(double number) {
  return number < 100 || number >= 1e9 ? fmt::format("{:.3g}", number) : grouped(number);
}

std::string gib(double bytes) { return fmt::format("{:.2f} GiB", bytes / 0x1p30); }

class Lines {
 public:
  void line(std::string_view text) { text_ += std::string(text) + "\n"; }
  void entry(std::string_view label, std::string_view value) { line(fmt::format("{:<26}{}", label, value)); }
  void text(std::string_view lines) { text_ += lines; }
  void blank() { text_ += "\n"; }
  [[nodiscard]] const std::string& all() const { return text_; }

 private:
  std::string text_;
};

void add_header(Lines& out, const Result& result) {
  out.line(fmt::format("{}{}{}", result.scenario, result.description.empty() ? "" : ": ", result.description));
  out.entry("cluster", result.cluster_text);
}

std::string memory_breakdown(const MemoryReport& memory) {
  std::string text;
  for (const MemoryItem& item : memory.items) {
    if (item.bytes > 0) text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", item.name, item.bytes / 0x1p30);
  }
  return text;
}

std::string job_text(const StepReport& report) {
  const WorkloadFigures& figures = report.figures;
  std::string text = fmt::format("{} ({}) on {} GPU{}", report.job, report.workload,
                                 grouped(static_cast<double>(report.ranks)), report.ranks == 1 ? "" : "s");
  if (figures.parameters > 0) text += fmt::format(", {:.4g} B parameters", figures.parameters / 1e9);
  if (figures.tokens_per_step > 0) text += fmt::format(", {} tokens a step", grouped(figures.tokens_per_step));
  return text;
}

/// In tokens where the job has tokens, else in samples.
std::string throughput_text(const StepReport& report) {
  const bool tokens = report.figures.tokens_per_step > 0;
  const std::string_view unit = tokens ? "tokens/s" : "samples/s";
  const double rate = tokens ? report.tokens_per_s : report.samples_per_s;
  return fmt::format("{} {}, {} {} per GPU", readable(rate), unit, readable(rate / static_cast<double>(report.ranks)),
                     unit);
}

std::string whole_job_text(const StepReport& report) {
  const WorkloadFigures& figures = report.figures;
  const bool tokens = figures.tokens_per_step > 0;
  const double done = tokens ? report.total_tokens : figures.samples_per_step * static_cast<double>(report.steps);
  return fmt::format("{} steps: {}, {} {}, {} GPU-hours", grouped(static_cast<double>(report.steps)),
                     format_duration(report.total_time_s), readable(done), tokens ? "tokens" : "samples",
                     readable(report.gpu_hours));
}

void add_figures(Lines& out, const StepReport& report) {
  const WorkloadFigures& figures = report.figures;
  out.entry("job", job_text(report));
  out.blank();
  out.entry("step time", format_duration(report.step_time_s));
  out.entry("throughput", throughput_text(report));
  if (report.steps > 1) out.entry("whole job", whole_job_text(report));
  if (figures.model_flops.value() > 0) {
    out.entry("model FLOP/s per GPU", fmt::format("{}, MFU {} of {} {} dense", format(report.model_rate_per_gpu),
                                                  percent(report.mfu), format(report.peak), name(figures.peak_type)));
    out.entry("hardware FLOP/s per GPU",
              fmt::format("{}, HFU {}", format(report.hardware_rate_per_gpu), percent(report.hfu)));
  }
  if (!figures.memory.items.empty()) {
    out.entry("memory per GPU",
              fmt::format("{} of {} ({})", gib(figures.memory.total_bytes()),
                          gib(static_cast<double>(figures.memory.capacity.value())), memory_breakdown(figures.memory)));
  }
  if (report.scaling_efficiency) {
    out.entry("scaling efficiency",
              fmt::format("{} of one model replica on {} GPU{}", percent(*report.scaling_efficiency),
                          report.replica_ranks, report.replica_ranks == 1 ? "" : "s"));
  }
  out.entry("exposed communication", percent(report.exposed_communication_share));
  out.entry("pipeline bubble", percent(report.bubble_share));
}

void add_ledger(Lines& out, const StepReport& report) {
  constexpr double kBarLength = 24;
  out.blank();
  out.line("where the time goes       share of the step           mean over GPUs   least and most busy class");
  for (std::size_t i = 0; i < kCauses; ++i) {
    const CauseShare& share = report.ledger[i];
    if (share.maximum <= 0) continue;
    const std::string bar(static_cast<std::size_t>(std::lround(share.mean * kBarLength)), '#');
    out.line(fmt::format("  {:<22}{:>8}  {:<24}  {:>12}   {} .. {}", name(static_cast<Cause>(i)), percent(share.mean),
                         bar, format_duration(share.mean * report.step_time_s), percent(share.minimum),
                         percent(share.maximum)));
  }
}

void add_communication(Lines& out, const StepReport& report) {
  if (report.step.communication.empty()) return;
  out.blank();
  out.line("communication             algorithm and why");
  for (const CommunicationSummary& item : report.step.communication) {
    const std::string title = fmt::format("{} ({})", name(item.collective), name(item.exposed_as));
    out.line(fmt::format("  {:<34}{}: {} operations, {} in all, busy {}{}{}", title, item.algorithm,
                         grouped(static_cast<double>(item.operations)), format(Bytes(std::llround(item.bytes))),
                         format_duration(to_seconds(item.busy)), item.reason.empty() ? "" : "; ", item.reason));
  }
}

void add_resources(Lines& out, const StepReport& report) {
  constexpr std::size_t kTop = 3;
  if (report.resources.empty()) return;
  out.blank();
  out.line("busiest resources         utilization over the step");
  for (std::size_t i = 0; i < std::min(kTop, report.resources.size()); ++i) {
    const NamedUsage& resource = report.resources[i];
    out.line(fmt::format(
        "  {:>8} of {:>10}  {}{}", percent(resource.usage.busy_share), format(resource.usage.capacity), resource.name,
        resource.usage.count > 1 ? fmt::format(" and {} like it", grouped(resource.usage.count - 1.0)) : ""));
  }
}

std::string lump_text(const LumpCounts& lumps) {
  const auto pair = [](std::string_view what, std::size_t all, std::size_t classes) {
    return fmt::format("{} {} in {} class{}", grouped(static_cast<double>(all)), what,
                       grouped(static_cast<double>(classes)), classes == 1 ? "" : "es");
  };
  return fmt::format("{}, {}, {}", pair("ranks", lumps.ranks, lumps.rank_classes),
                     pair("communicators", lumps.communicators, lumps.communicator_classes),
                     pair("resources", lumps.resources, lumps.resource_classes));
}

void add_step(Lines& out, const StepReport& report) {
  add_figures(out, report);
  add_ledger(out, report);
  add_communication(out, report);
  add_resources(out, report);
  out.blank();
  out.entry("simulated", lump_text(report.step.lumps));
  out.entry("events", fmt::format("{} events, {} flow events", grouped(static_cast<double>(report.step.events)),
                                  grouped(static_cast<double>(report.step.flow_events))));
}

void add_nccl(Lines& out, const NcclReport& report) {
  out.entry("test", fmt::format("{} over {} GPUs, {}", name(report.operation),
                                grouped(static_cast<double>(report.ranks)), form_name(report.form)));
  out.blank();
  out.text(nccl_test_table(report.rows));
}

std::string point_figures(const Result& point) {
  if (!point.step) return fmt::format("{:>8}", point.cluster_gpus);
  const StepReport& report = *point.step;
  return fmt::format("{:>8} {:>12} {:>14} {:>9} {:>9} {:>9} {:>9}", report.ranks, format_duration(report.step_time_s),
                     grouped(report.tokens_per_s), percent(report.mfu), percent(report.exposed_communication_share),
                     percent(report.bubble_share),
                     report.scaling_efficiency ? percent(*report.scaling_efficiency) : std::string("-"));
}

void add_points(Lines& out, const std::vector<Result>& points) {
  out.blank();
  out.line(fmt::format("{:>8} {:>12} {:>14} {:>9} {:>9} {:>9} {:>9}   {}", "GPUs", "step time", "tokens/s", "MFU",
                       "exposed", "bubble", "scaling", "point"));
  for (const Result& point : points) out.line(point_figures(point) + "   " + point.label);
  for (const Result& point : points) {
    if (!point.nccl) continue;
    out.blank();
    out.line(point.label);
    add_nccl(out, *point.nccl);
  }
}

void add_footer(Lines& out, const Result& result) {
  out.entry("wall time",
            fmt::format("{}, {:.0f} MiB of memory at most", format_duration(result.wall_s), result.peak_rss_mib));
  if (result.assumptions.empty()) return;
  out.blank();
  out.line("assumptions used (figures without a published source, and simplifications)");
  for (const std::string& text : result.assumptions) out.line("  " + text);
}

}  // namespace

std::string readable_summary(const Result& result) {
  Lines out;
  add_header(out, result);
  if (result.step) add_step(out, *result.step);
  if (result.nccl) add_nccl(out, *result.nccl);
  if (!result.points.empty()) add_points(out, result.points);
  if (result.nccl || !result.points.empty()) out.blank();
  add_footer(out, result);
  return out.all();
}

std::string explain_lumping(const Result& result) {
  Lines out;
  if (!result.step) {
    for (const Result& point : result.points) {
      out.line(point.label);
      out.line(explain_lumping(point));
    }
    return out.all();
  }
  const StepReport& report = *result.step;
  constexpr std::size_t kShown = 40;
  out.line("lumping: " + lump_text(report.step.lumps));
  out.line(
      "ranks of a class run the same program, sit alike in the network and talk to classes alike; one is simulated");
  out.line("   class       ranks   first rank  program     compute     waiting");
  const std::vector<RankClass>& classes = report.step.rank_classes;
  for (std::size_t i = 0; i < std::min(kShown, classes.size()); ++i) {
    const RankClass& item = classes[i];
    const double compute = to_seconds(item.ledger[static_cast<std::size_t>(Cause::compute)]) / report.step_time_s;
    const double waiting = to_seconds(item.ledger[static_cast<std::size_t>(Cause::bubble)] +
                                      item.ledger[static_cast<std::size_t>(Cause::straggler)]) /
                           report.step_time_s;
    out.line(fmt::format("{:>8} {:>11} {:>12} {:>8} {:>11} {:>11}", i, item.count, item.representative, item.program,
                         percent(compute), percent(waiting)));
  }
  if (classes.size() > kShown) out.line(fmt::format("     ... and {} more", classes.size() - kShown));
  return out.all();
}

}  // namespace clustersim
