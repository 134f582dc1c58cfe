// Workloads: what every generator of jobs provides, and the table of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/programs/program.hpp"
#include "sim/settings.hpp"

namespace clustersim {

/// One line of the GPU memory account of the fullest rank.
struct MemoryItem {
  std::string name;  // "weights", "gradients", "optimizer state", "activations", "workspace"
  double bytes = 0;
};

struct MemoryReport {
  std::vector<MemoryItem> items;
  Bytes capacity{0};
  [[nodiscard]] double total_bytes() const;
};

/// What a job accomplishes in one step, for rates and efficiencies.
struct WorkloadFigures {
  double tokens_per_step = 0;
  double samples_per_step = 0;
  double parameters = 0;
  Flops model_flops{0};     // the arithmetic the mathematics needs
  Flops hardware_flops{0};  // with recomputation
  struct FlopTerm {
    std::string name;  // "linear layers", "attention", "logits", "recompute"
    Flops flops{0};
  };
  std::vector<FlopTerm> flop_terms;
  DataType peak_type = DataType::bf16;  // whose dense peak is MFU's denominator
  MemoryReport memory;
};

struct WorkloadContext {
  const Cluster& cluster;
  const Catalog& catalog;
  const CommunicationModel& communication;
  const GpuSpec& gpu;                    // of the nodes the job runs on
  std::span<const double> gpu_slowdown;  // per GPU of the cluster; empty = all nominal
};

struct BuiltWorkload {
  Job job;
  WorkloadFigures figures;
  std::vector<std::string> notes;  // assumptions used, worth telling the user
};

struct WorkloadEntry {
  std::string_view name;  // "transformer-training"
  std::string_view help;
  std::span<const Parameter> schema;
  BuiltWorkload (*build)(const Settings& settings, const WorkloadContext& context);
  /// The same job reduced to one model replica (data = 1, the same work per replica) for scaling efficiency;
  /// null when the workload has no such notion.
  BuiltWorkload (*build_one_replica)(const Settings& settings, const WorkloadContext& context);
};
std::span<const WorkloadEntry> workloads();  // models/workloads/all.cpp
const WorkloadEntry& find_workload(std::string_view name, const SourceLocation& where = {});

}  // namespace clustersim
