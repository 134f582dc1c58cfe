// A cluster on which communication takes no time, and short ways to build and run a workload, for tests.
#pragma once

#include <string>
#include <string_view>

#include "models/programs/execute.hpp"
#include "models/workloads/workload.hpp"

namespace clustersim {

/// One node of `gpus` GPUs behind a switch of the given rate without latency.
inline Cluster one_node(std::uint32_t gpus, Rate link = gigabytes_per_second(450)) {
  NodeShape shape;
  shape.name = "test-node";
  shape.gpus = gpus;
  shape.gpu_link = link;
  shape.nics = 1;
  shape.nic_rate = link;
  shape.pcie_rate = link;
  shape.cpu_link = link;
  ClusterSpec spec;
  spec.nodes = {{shape, 1}};
  return Cluster(spec);
}

/// No software cost and no protocol overhead: transfers take bytes over line rate.
inline CommunicationModel free_communication() {
  CommunicationModel model;
  model.scale_up_efficiency = model.pcie_efficiency = model.network_efficiency = 1;
  model.scale_up_step = model.network_step = model.launch = Picoseconds(0);
  return model;
}

struct Workbench {
  Catalog catalog = Catalog::built_in();
  Cluster cluster;
  CommunicationModel communication = free_communication();
  std::string gpu = "h100-sxm";

  [[nodiscard]] WorkloadContext context() const { return {cluster, catalog, communication, catalog.gpu(gpu), {}}; }
  [[nodiscard]] BuiltWorkload build(std::string_view workload, std::string_view toml) const {
    const WorkloadEntry& entry = find_workload(workload);
    return entry.build(check_settings(parse_toml(toml, "test.toml"), entry.schema, "jobs[0]"), context());
  }
  [[nodiscard]] StepResult run(const BuiltWorkload& built) const {
    return execute(built.job, cluster, communication, {});
  }
};

}  // namespace clustersim
