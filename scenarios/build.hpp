// From a checked scenario to the models that run it: cluster, GPU, workload.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/workloads/workload.hpp"
#include "scenarios/scenario.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {

/// A scenario's hardware, laid out. Keeps what it refers to alive.
struct BuiltCluster {
  std::shared_ptr<const Catalog> catalog;
  std::unique_ptr<Cluster> cluster;
  const NodeSpec* node = nullptr;    // of the first group
  const GpuSpec* gpu = nullptr;      // of the first group
  std::vector<double> gpu_slowdown;  // per GPU; empty = all nominal
};

enum class Health : std::uint8_t { as_described, nominal };

/// Lays out nodes and network. Throws BadInput for a degraded link or GPU that does not exist, Infeasible for a network
/// that cannot be built or that would not fit into this machine's memory.
BuiltCluster build_cluster(const Scenario& scenario, Health health = Health::as_described);

/// Throws Infeasible when the cluster would take more than a machine with so much memory can give; nothing is
/// allocated.
void require_memory(const Scenario& scenario, double machine_bytes);

/// The scenario's job on the cluster: programs, figures, memory account. Throws Infeasible when it does not fit.
BuiltWorkload build_workload(const Scenario& scenario, const BuiltCluster& built);
/// One model replica of it; `job.ranks()` is 0 when the workload has no such notion.
BuiltWorkload build_one_replica(const Scenario& scenario, const BuiltCluster& built);

/// Catalog figures that this scenario uses and that are recalled or guessed rather than read from a source.
std::vector<std::string> assumed_figures(const Scenario& scenario);

}  // namespace clustersim
