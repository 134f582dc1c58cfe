// Small clusters and jobs on which the answers can be worked out by hand.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <vector>

#include "models/programs/execute.hpp"
#include "models/programs/program.hpp"
#include "topologies/cluster.hpp"

namespace clustersim::testing {

inline Settings defaults_of(const FabricEntry& fabric) {
  return check_settings(Value{Value::Table{}, {}}, fabric.schema, "network");
}

/// 400 Gb/s NICs, 450 GB/s NVLink; no latency anywhere.
inline NodeShape node_of(std::uint32_t gpus, std::uint32_t nics) {
  NodeShape shape;
  shape.name = fmt::format("gpus-{}", gpus);
  shape.gpus = gpus;
  shape.nics = nics;
  shape.cpus = nics;
  shape.gpu_link = gigabytes_per_second(450);
  shape.nic_rate = gigabits_per_second(400);
  shape.pcie_rate = gigabytes_per_second(64);
  shape.cpu_link = gigabytes_per_second(64);
  return shape;
}

/// `nodes` nodes of one GPU and one 400 Gb/s NIC on a single switch; no latency anywhere.
inline std::unique_ptr<Cluster> single_switch(std::int64_t nodes) {
  const FabricEntry& fabric = find_fabric("single-switch");
  const Settings settings = defaults_of(fabric);
  ClusterSpec spec;
  spec.nodes.push_back({node_of(1, 1), nodes});
  spec.fabric = &fabric;
  spec.fabric_settings = &settings;
  return std::make_unique<Cluster>(spec);
}

/// A communication model without fixed costs, so that times are bytes over rates.
inline CommunicationModel without_latency() {
  CommunicationModel model;
  model.scale_up_step = model.network_step = model.launch = Picoseconds(0);
  return model;
}

/// Rank i on GPU i, all with program 0 until the test says otherwise.
inline Job job_on(const Cluster& cluster, std::uint32_t ranks, std::uint32_t slots) {
  Job job;
  job.name = "test";
  job.slots = slots;
  job.program_of.assign(ranks, 0);
  for (std::uint32_t r = 0; r < ranks; ++r) job.gpu_of.push_back(GpuId(r % cluster.gpus()));
  return job;
}

inline CommunicatorId join(Job& job, std::initializer_list<std::uint32_t> ranks, std::vector<std::uint16_t> slots) {
  std::vector<RankId> ids;
  for (const std::uint32_t rank : ranks) ids.emplace_back(rank);
  return job.add_communicator(ids, slots);
}

/// All ranks in one communicator under one slot.
inline CommunicatorId join_all(Job& job, std::uint16_t slot) {
  std::vector<RankId> ids;
  for (std::uint32_t r = 0; r < job.ranks(); ++r) ids.emplace_back(r);
  return job.add_communicator(ids, std::vector<std::uint16_t>(ids.size(), slot));
}

inline Picoseconds booked(const RankClass& rank, Cause cause) { return rank.ledger[static_cast<std::size_t>(cause)]; }

inline Picoseconds ledger_sum(const RankClass& rank) {
  return std::accumulate(rank.ledger.begin(), rank.ledger.end(), Picoseconds(0));
}

/// Equal up to the rounding of a few transfers to whole picoseconds (the network ends each on the next tick, a closed
/// form rounds to the nearest).
inline bool near(Picoseconds a, Picoseconds b) { return std::abs((a - b).count()) <= 4; }

/// Time of one operation on an otherwise empty cluster, from its plan.
inline Picoseconds alone(const Cluster& cluster, const CommunicationModel& model, const std::vector<GpuId>& gpus,
                         const Operation& operation) {
  const CollectivePlan plan = plan_collective({cluster, gpus}, model, operation.collective, operation.bytes);
  return uncontended_time(plan, cluster.network(), model);
}

}  // namespace clustersim::testing
