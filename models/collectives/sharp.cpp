// In-network reduction (SHARP): each rail's switches reduce what the NICs send and send the result back.
#include "models/collectives/rounds.hpp"

namespace clustersim {
namespace {

bool switches_reduce(const Group& group, const GroupLayout& layout) {
  const Cluster& cluster = group.cluster;
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    const NodeTemplate& shape = cluster.node(cluster.node_of(group.members[layout.members(node)[0]]));
    if (!shape.shape().in_network_reduction || shape.gpu_to_switch(0).empty()) return false;
  }
  return true;
}

// The i-th members of all nodes reduce part i together; each part is one tree.
bool supports(Collective collective, const Group& group) {
  if (collective != Collective::all_reduce || group.size() < 2) return false;
  const GroupLayout layout(group, {});
  if (layout.nodes() < 2 || !layout.uniform()) return false;
  std::vector<GpuId> first_rail;
  first_rail.reserve(layout.nodes());
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    first_rail.push_back(group.members[layout.members(node)[0]]);
  }
  Route tree;
  return group.cluster.reduction_tree(first_rail, tree);
}

void add_network_round(const GroupLayout& layout, double bytes_per_byte, Schedule& schedule) {
  Round& round = schedule.rounds.emplace_back();
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    const auto here = layout.members(node);
    for (std::uint32_t i = 0; i < here.size(); ++i) {
      Transfer transfer{here[i], Transfer::kSwitch, bytes_per_byte};
      transfer.via = Transfer::Via::network_reduce;
      transfer.tree = i;
      round.transfers.push_back(transfer);
    }
  }
}

Schedule schedule(Collective, const Group& group, const CommunicationModel& model) {
  const GroupLayout layout(group, model);
  const std::size_t members = layout.members(0).size();
  const double part = 1.0 / static_cast<double>(members);
  const bool nvls = members > 1 && switches_reduce(group, layout);
  Schedule result;
  result.short_protocols = false;
  if (nvls) {
    result.efficiency = model.nvls_network_efficiency;
    result.rounds.push_back(switch_round(layout, true, 1.0));
    result.rounds.push_back(switch_round(layout, false, part));
  } else if (members > 1) {
    result.rounds.push_back(rings_in_nodes(layout));  // where NVSwitches cannot reduce
  }
  add_network_round(layout, part, result);
  if (nvls) {
    result.rounds.push_back(switch_round(layout, true, part));
    result.rounds.push_back(switch_round(layout, false, 1.0));
  } else if (members > 1) {
    result.rounds.push_back(rings_in_nodes(layout));
  }
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kSharp;
const CollectiveAlgorithm kSharp{
    "sharp", "reduction in the fabric's switches, NVSwitches or rings in nodes (all-reduce)", supports, schedule};

}  // namespace clustersim
