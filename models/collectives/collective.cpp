// Collective operations and algorithms by name, the ways of transfers, and the time of a plan.
#include "models/collectives/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/collectives/plan_basis.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr std::array<std::string_view, 7> kCollectiveNames{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                           "reduce",     "all_to_all", "send_receive"};

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names{"auto"};
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

}  // namespace

std::string_view name(Collective collective) { return kCollectiveNames[static_cast<std::size_t>(collective)]; }

Collective parse_collective(std::string_view text) {
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), text);
  if (found != kCollectiveNames.end()) return static_cast<Collective>(found - kCollectiveNames.begin());
  const std::vector<std::string> names(kCollectiveNames.begin(), kCollectiveNames.end());
  bad_input("collective \"{}\" is not known: expected one of {}{}", text, fmt::join(names, ", "),
            did_you_mean(text, names));
}

double bus_bandwidth_factor(Collective collective, std::int64_t ranks) {
  const auto p = static_cast<double>(ranks);
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (p - 1) / p;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (p - 1) / p;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_receive:
      return 1;
  }
  throw BrokenContract("unknown collective");
}

double CommunicationModel::efficiency(LinkKind kind) const {
  switch (kind) {
    case LinkKind::nvlink:
      return scale_up_efficiency;
    case LinkKind::pcie:
    case LinkKind::cpu_interconnect:
      return pcie_efficiency;
    case LinkKind::infiniband:
    case LinkKind::ethernet:
    case LinkKind::torus_link:
      return network_efficiency;
  }
  throw BrokenContract("unknown link kind");
}

double CommunicationModel::usable_capacity(const Network& network, std::uint32_t resource) const {
  return network.resource_capacity(resource).value() * efficiency(network.resource_kind(resource));
}

const CollectiveAlgorithm& find_algorithm(std::string_view name, const SourceLocation& where) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    if (algorithm.name == name) return algorithm;
  }
  const std::vector<std::string> names = algorithm_names();
  bad_input("{}{}collective algorithm \"{}\" is not known: expected one of {}{}", where.text(),
            where.text().empty() ? "" : ": ", name, fmt::join(names, ", "), did_you_mean(name, names));
}

namespace {

// A GPU of the sender's node whose nearest NIC is on the receiver's rail, for fabrics without a way between rails.
GpuId relay_on_rail(const Group& group, const Transfer& transfer) {
  const Cluster& cluster = group.cluster;
  const GpuId from = group.members[transfer.from];
  const GpuId to = group.members[transfer.to];
  const std::uint32_t node = cluster.node_of(from);
  const NodeTemplate& here = cluster.node(node);
  if (node == cluster.node_of(to) || here.shape().nics == 0) return {};
  const std::uint32_t rail = transfer.to_nic != Cluster::kNearest
                                 ? transfer.to_nic
                                 : cluster.node(cluster.node_of(to)).nearest_nic(cluster.local_index(to));
  for (std::uint32_t gpu = 0; gpu < here.shape().gpus; ++gpu) {
    if (here.nearest_nic(gpu) == rail && cluster.gpu(node, gpu) != from) return cluster.gpu(node, gpu);
  }
  return {};
}

void append_relayed(const Group& group, const Transfer& transfer, GpuId relay, Route& out) {
  group.cluster.route(group.members[transfer.from], relay, out);
  group.cluster.route(relay, group.members[transfer.to], out, Cluster::kNearest, transfer.to_nic);
}

}  // namespace

void append_route(const Group& group, const Transfer& transfer, Route& out) {
  const Cluster& cluster = group.cluster;
  if (transfer.via == Transfer::Via::nvswitch_reduce) {
    const bool found = transfer.to == Transfer::kSwitch ? cluster.route_to_nvswitch(group.members[transfer.from], out)
                                                        : cluster.route_from_nvswitch(group.members[transfer.to], out);
    ensure(found, "in-switch reduction planned in a node without NVSwitches");
    return;
  }
  ensure(transfer.via == Transfer::Via::point_to_point, "a network reduction has no route of its own");
  if (transfer.relay.valid()) {
    append_relayed(group, transfer, transfer.relay, out);
    return;
  }
  const Route before = out;
  try {
    cluster.route(group.members[transfer.from], group.members[transfer.to], out, transfer.from_nic, transfer.to_nic);
  } catch (const Infeasible&) {
    const GpuId relay = relay_on_rail(group, transfer);
    if (!relay.valid()) throw;
    out = before;
    append_relayed(group, transfer, relay, out);
  }
}

CollectivePlan plan_schedule(const Group& group, const CommunicationModel& model, const Schedule& schedule, Bytes bytes,
                             bool pipelined) {
  return lay_schedule(group, model, schedule, pipelined).plan(bytes);
}

Picoseconds uncontended_time(const CollectivePlan& plan, const Network& network, const CommunicationModel& model) {
  if (plan.amount <= 0) return plan.latency;
  double rate = plan.rate_cap;
  for (const PlanUse& use : plan.uses) {
    const double capacity = model.usable_capacity(network, use.resource);
    if (!(capacity > 0)) {
      infeasible("{} has no capacity left, and {} needs it; repair the link or leave its GPUs out",
                 network.resource_name(use.resource), plan.algorithm);
    }
    rate = std::min(rate, capacity / use.coefficient);
  }
  ensure(std::isfinite(rate), "a plan that moves bytes without using anything");
  return plan.latency + from_seconds<Picoseconds>(plan.amount / rate);
}

}  // namespace clustersim
