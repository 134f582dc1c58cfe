// In-switch reduction: NVSwitches reduce and multicast (NVLS); between nodes a double binary tree per rail (NVLSTree).
#include <algorithm>

#include "models/collectives/rounds.hpp"

namespace clustersim {
namespace {

bool switches_reduce(const Group& group, std::uint32_t member) {
  const Cluster& cluster = group.cluster;
  const NodeTemplate& node = cluster.node(cluster.node_of(group.members[member]));
  return node.shape().in_network_reduction && !node.gpu_to_switch(0).empty();
}

// NCCL leaves groups of up to four GPUs of a node to the ring.
constexpr std::size_t kFewestMembers = 5;

bool supports_node(Collective collective, const Group& group) {
  if (collective != Collective::all_reduce && collective != Collective::all_gather &&
      collective != Collective::reduce_scatter) {
    return false;
  }
  if (group.members.size() < kFewestMembers) return false;
  const std::uint32_t node = group.cluster.node_of(group.members[0]);
  return switches_reduce(group, 0) && std::all_of(group.members.begin(), group.members.end(),
                                                  [&](GpuId gpu) { return group.cluster.node_of(gpu) == node; });
}

bool supports_tree(Collective collective, const Group& group) {
  if (collective != Collective::all_reduce || group.members.size() < 2 * kFewestMembers) return false;
  const GroupLayout layout(group, {});
  if (layout.nodes() < 2 || !layout.uniform() || layout.members(0).size() < kFewestMembers) return false;
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    if (!switches_reduce(group, layout.members(node)[0])) return false;
    if (layout.slots(node).size() != layout.slots(0).size()) return false;
  }
  return true;
}

// Every member owns 1/m of the data. Reduction: the owner reads its part through the switch, which fetches it from all
// m members, so each link up carries m parts and each link down one. Multicast is the mirror: one up, all m down.
Schedule in_node(Collective collective, const Group& group, const CommunicationModel& model) {
  const GroupLayout layout(group, model);
  const double part = 1.0 / static_cast<double>(group.size());
  Schedule result;
  result.short_protocols = false;
  if (collective != Collective::all_gather) {
    result.rounds.push_back(switch_round(layout, true, 1.0));
    result.rounds.push_back(switch_round(layout, false, part));
  }
  if (collective != Collective::reduce_scatter) {
    result.rounds.push_back(switch_round(layout, true, part));
    result.rounds.push_back(switch_round(layout, false, 1.0));
  }
  return result;
}

Schedule with_tree(Collective, const Group& group, const CommunicationModel& model) {
  const GroupLayout layout(group, model);
  const double part = 1.0 / static_cast<double>(layout.members(0).size());
  const auto rails = static_cast<std::uint32_t>(layout.slots(0).size());
  Schedule result;
  result.short_protocols = false;
  result.efficiency = model.nvls_network_efficiency;
  result.rounds.push_back(switch_round(layout, true, 1.0));
  result.rounds.push_back(switch_round(layout, false, part));
  TreeRounds trees = double_tree_rounds(layout, rails, 1.0 / rails);
  for (auto* rounds : {&trees.up, &trees.down}) {
    for (Round& round : *rounds) result.rounds.push_back(std::move(round));
  }
  result.rounds.push_back(switch_round(layout, true, part));
  result.rounds.push_back(switch_round(layout, false, 1.0));
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kNvls;
const CollectiveAlgorithm kNvls{"nvls", "reduction and multicast in the NVSwitches of one node", supports_node,
                                in_node};

extern const CollectiveAlgorithm kNvlsTree;
const CollectiveAlgorithm kNvlsTree{
    "nvls-tree", "NVSwitch reduction in nodes, double binary trees between (all-reduce)", supports_tree, with_tree};

}  // namespace clustersim
