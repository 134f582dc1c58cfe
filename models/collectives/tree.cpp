// Double binary tree all-reduce: each of two trees over the nodes carries half; inside a node, a chain of its members.
#include <algorithm>

#include "models/collectives/rounds.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  if (collective != Collective::all_reduce || group.size() < 2) return false;
  return group.cluster.node_of(group.members.front()) != group.cluster.node_of(group.members.back()) ||
         GroupLayout(group, {}).nodes() > 1;
}

// Adds the chain edges of every node and channel, the far end's edge in the first round, and the reverse on the way
// down.
void add_chains(const GroupLayout& layout, double bytes_per_byte, std::vector<Round>& up, std::vector<Round>& down) {
  std::size_t longest = 0;
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) longest = std::max(longest, layout.members(node).size());
  up.resize(longest - 1);
  down.resize(longest - 1);
  std::vector<std::uint32_t> chain;
  for (std::uint32_t channel = 0; channel < layout.channels(); ++channel) {
    for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
      chain.clear();
      layout.chain_from(node, layout.slot(node, channel).enter, chain);
      for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
        up[longest - 2 - i].transfers.push_back({chain[i + 1], chain[i], bytes_per_byte});
        down[i].transfers.push_back({chain[i], chain[i + 1], bytes_per_byte});
      }
    }
  }
}

Schedule schedule(Collective, const Group& group, const CommunicationModel& model) {
  const GroupLayout layout(group, model);
  const double per_channel = 1.0 / layout.channels();
  std::vector<Round> chain_up;
  std::vector<Round> chain_down;
  add_chains(layout, per_channel, chain_up, chain_down);

  TreeRounds trees = double_tree_rounds(layout, layout.channels(), per_channel);
  Schedule result;
  result.shared_channels = true;
  // NCCL's cost model counts 2 S per node for trees over more than two nodes. Over three it is 1.5 S, and NCCL's choice
  // remains the ring.
  if (layout.nodes() == 3) result.handicap = 4.0 / 3;
  for (auto* part : {&chain_up, &trees.up, &trees.down, &chain_down}) {
    for (Round& round : *part) result.rounds.push_back(std::move(round));
  }
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kTree;
const CollectiveAlgorithm kTree{"tree", "double binary tree over nodes, chains inside them (all-reduce)", supports,
                                schedule};

}  // namespace clustersim
