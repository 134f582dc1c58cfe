// What a run found out: one struct, and its forms for people (summary), programs (JSON) and viewers (timeline).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/collective.hpp"
#include "models/collectives/nccl_test.hpp"
#include "models/programs/execute.hpp"
#include "models/workloads/workload.hpp"
#include "sim/units.hpp"

namespace clustersim {

/// The program's version, "0.1.0".
std::string_view program_version();

/// Share of the step that goes to one cause: averaged over GPUs, and over classes of ranks that behave alike.
struct CauseShare {
  double mean = 0;
  double minimum = 0;
  double maximum = 0;
};

/// A ResourceUsage with its name.
struct NamedUsage {
  std::string name;
  ResourceUsage usage;
};

/// One simulated training step and the figures that follow from it. The job's steps are alike, so the whole job is a
/// multiple of the one.
struct StepReport {
  std::string workload;
  std::string job;
  std::int64_t ranks = 0;
  std::int64_t steps = 1;  // of the whole job
  StepResult step;
  WorkloadFigures figures;
  std::vector<std::string> labels;  // of timeline intervals
  FlopRate peak{0};                 // dense, of one GPU, of the type that MFU is measured against
  double step_time_s = 0;
  double tokens_per_s = 0;
  double samples_per_s = 0;
  double total_time_s = 0;  // of the whole job, like the next two
  double total_tokens = 0;
  double gpu_hours = 0;
  // NaN (null in JSON) for a workload of given times, whose operations nobody counted.
  FlopRate model_rate_per_gpu{std::numeric_limits<double>::quiet_NaN()};
  FlopRate hardware_rate_per_gpu{std::numeric_limits<double>::quiet_NaN()};
  double mfu = std::numeric_limits<double>::quiet_NaN();
  double hfu = std::numeric_limits<double>::quiet_NaN();
  double exposed_communication_share = 0;  // sum of the exposed_* causes
  double bubble_share = 0;
  std::array<CauseShare, kCauses> ledger{};
  std::optional<double> scaling_efficiency;  // throughput per GPU over that of one model replica alone
  std::int64_t replica_ranks = 0;
  std::vector<NamedUsage> resources;  // busiest first
};

/// "pipelined", as scenarios write it.
std::string_view form_name(NcclTestForm form);

struct NcclReport {
  Collective operation = Collective::all_reduce;
  std::int64_t ranks = 0;
  NcclTestForm form = NcclTestForm::pipelined;
  std::vector<NcclTestRow> rows;
};

struct Result {
  std::string scenario;
  std::string description;
  std::string label;  // of a study point
  std::string scenario_hash;
  std::string resolved_text;
  std::string version;
  std::uint64_t seed = 0;

  std::int64_t cluster_gpus = 0;
  std::int64_t cluster_nodes = 0;
  std::string cluster_text;  // "2 x dgx-h100 (16 x NVIDIA H100 SXM), fat-tree, ..."

  std::optional<StepReport> step;
  std::optional<NcclReport> nccl;
  std::vector<Result> points;  // of a study; then step and nccl are empty

  std::vector<std::string> assumptions;
  double wall_s = 0;  // wall-clock time of the simulation; not part of what was found out
  double peak_rss_mib = 0;
};

/// Fills in rates, shares and efficiencies from step and figures, and checks them against physics: throws
/// BrokenContract when the ledger does not sum to the step or when more than the peak was computed.
void derive_figures(StepReport& report);

/// For people: aligned lines, every figure with its unit.
std::string readable_summary(const Result& result);
/// How ranks, communicators and resources were put into classes.
std::string explain_lumping(const Result& result);
/// For programs: one JSON object.
std::string json_text(const Result& result);
/// Chrome trace events (chrome://tracing, Perfetto) of one rank per class.
std::string timeline_json(const Result& result);

}  // namespace clustersim
