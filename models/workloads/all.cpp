// The table of workloads: a workload is its file and its lines here.
#include <string>
#include <vector>

#include "models/workloads/workload.hpp"
#include "sim/errors.hpp"

namespace clustersim {

extern const WorkloadEntry kTransformerTraining;
extern const WorkloadEntry kPipeline;

std::span<const WorkloadEntry> workloads() {
  static const WorkloadEntry entries[] = {kTransformerTraining, kPipeline};
  return entries;
}

const WorkloadEntry& find_workload(std::string_view name, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const WorkloadEntry& entry : workloads()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  const std::string place = where.text();
  bad_input("{}{}\"{}\" is not a workload{}; there are: {}", place, place.empty() ? "" : ": ", name,
            did_you_mean(name, names), fmt::join(names, ", "));
}

}  // namespace clustersim
