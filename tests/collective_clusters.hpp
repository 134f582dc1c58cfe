// Small clusters built by hand, and idealized communication constants, for the tests of collectives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/collectives/collective.hpp"
#include "topologies/cluster.hpp"

namespace clustersim::testing {

/// One GPU and one NIC per node; the way to the NIC is wide and free.
inline NodeShape one_gpu_node(Rate nic_rate) {
  NodeShape shape;
  shape.name = "one-gpu";
  shape.gpus = 1;
  shape.interconnect = "pcie";
  shape.nics = 1;
  shape.nic_rate = nic_rate;
  shape.cpus = 1;
  shape.pcie_rate = nic_rate * 1000.0;
  return shape;
}

/// GPUs on an NVSwitch, NICs spread evenly over them; the way to the NICs is wide and free.
inline NodeShape switched_node(std::uint32_t gpus, Rate gpu_link, std::uint32_t nics, Rate nic_rate) {
  NodeShape shape;
  shape.name = "switched";
  shape.gpus = gpus;
  shape.interconnect = "nvswitch";
  shape.gpu_link = gpu_link;
  shape.nics = nics;
  shape.nic_rate = nic_rate;
  shape.cpus = 2;
  shape.pcie_rate = Rate(1e15);
  shape.cpu_link = Rate(1e15);
  return shape;
}

inline Value table(std::vector<std::pair<std::string, Value>> items) {
  return Value{Value::Table(std::move(items)), {}};
}
inline Value integers(const std::vector<std::int64_t>& numbers) {
  Value::Array array;
  for (const std::int64_t number : numbers) array.push_back(Value{number, {}});
  return Value{std::move(array), {}};
}

/// `nodes` equal nodes on the named fabric.
inline std::unique_ptr<Cluster> make_cluster(const NodeShape& shape, std::int64_t nodes,
                                             const std::string& fabric = "single-switch",
                                             const Value& parameters = table({}), const Routing& routing = {},
                                             Picoseconds link_latency = Picoseconds{0}, bool reduces = false) {
  const FabricEntry& entry = find_fabric(fabric);
  const Settings settings = check_settings(parameters, entry.schema, "network");
  ClusterSpec spec;
  spec.nodes = {{shape, nodes}};
  spec.fabric = &entry;
  spec.fabric_settings = &settings;
  spec.link_rate = shape.nic_rate;
  spec.link_latency = link_latency;
  spec.in_network_reduction = reduces;
  spec.routing = routing;
  return std::make_unique<Cluster>(spec);
}

inline std::vector<GpuId> all_gpus(const Cluster& cluster) {
  std::vector<GpuId> gpus;
  for (std::uint32_t gpu = 0; gpu < cluster.gpus(); ++gpu) gpus.emplace_back(gpu);
  return gpus;
}

/// Only `alpha` per step: no launch, links at line rate.
inline CommunicationModel alpha_only(Picoseconds alpha, std::string algorithm) {
  CommunicationModel model;
  model.scale_up_efficiency = model.pcie_efficiency = model.network_efficiency = 1;
  model.nvls_efficiency = model.nvls_network_efficiency = 1;
  model.scale_up_step = model.network_step = model.nvls_step = alpha;
  model.protocols.clear();
  model.pipeline_chunk = Bytes(0);
  model.launch = Picoseconds{0};
  model.algorithm = std::move(algorithm);
  return model;
}

inline double planned_seconds(const Group& group, const CommunicationModel& model, Collective collective, Bytes bytes) {
  return to_seconds(uncontended_time(plan_collective(group, model, collective, bytes), group.cluster.network(), model));
}

}  // namespace clustersim::testing
