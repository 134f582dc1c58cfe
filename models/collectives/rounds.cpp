// Builds the rounds that several algorithms share.
#include "models/collectives/rounds.hpp"

#include <algorithm>

namespace clustersim {
namespace {

// The rails through which channel `channel` leaves and enters the node at `position`. Nodes at even places send on
// rail a and nodes at odd places on rail b, half the rails further on, so that with an even number of nodes every
// edge stays on one rail, and over all channels each NIC carries one ring out and one ring in. With an odd number the
// edge that closes the ring crosses rails.
struct Rails {
  std::uint32_t enter;
  std::uint32_t leave;
};
Rails rails_of(const GroupLayout& layout, std::uint32_t channel, std::uint32_t position) {
  const std::uint32_t a = channel % layout.rails();
  const std::uint32_t b = (a + layout.rails() / 2) % layout.rails();
  return position % 2 == 0 ? Rails{b, a} : Rails{a, b};
}

// Members of a node in ring order: `enter` first, `leave` last.
void append_node_path(const GroupLayout& layout, std::uint32_t node, std::uint32_t enter, std::uint32_t leave,
                      std::vector<std::uint32_t>& out) {
  const std::size_t first = out.size();
  layout.chain_from(node, enter, out);
  if (leave == enter || layout.members(node).size() == 1) return;  // one GPU for both: the chain's end leaves
  const auto place = std::find(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), leave);
  std::rotate(place, place + 1, out.end());
}

void append_channel(const GroupLayout& layout, std::uint32_t channel, double bytes_per_byte,
                    std::vector<Transfer>& out) {
  std::vector<std::uint32_t> path;
  std::uint32_t first = 0;
  std::uint32_t first_nic = Cluster::kNearest;
  std::uint32_t previous = Transfer::kSwitch;
  std::uint32_t previous_nic = Cluster::kNearest;
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    const Rails rails = rails_of(layout, channel, node);
    const NicSlot& enter = layout.slot(node, rails.enter);
    const NicSlot& leave = layout.slot(node, rails.leave);
    path.clear();
    append_node_path(layout, node, enter.enter, leave.leave, path);
    if (node == 0) {
      first = path.front();
      first_nic = enter.nic;
    } else {
      out.push_back({previous, path.front(), bytes_per_byte, previous_nic, enter.nic, Transfer::Via::point_to_point});
    }
    for (std::size_t i = 0; i + 1 < path.size(); ++i) out.push_back({path[i], path[i + 1], bytes_per_byte});
    previous = path.back();
    previous_nic = leave.nic;
  }
  if (layout.nodes() == 1) previous_nic = first_nic = Cluster::kNearest;
  out.push_back({previous, first, bytes_per_byte, previous_nic, first_nic, Transfer::Via::point_to_point});
}

}  // namespace

Round ring_round(const GroupLayout& layout, double bytes_per_byte, std::int64_t repeats) {
  Round round;
  round.repeats = repeats;
  for (std::uint32_t channel = 0; channel < layout.channels(); ++channel) {
    append_channel(layout, channel, bytes_per_byte, round.transfers);
    if (channel == 0) round.ring = static_cast<std::uint32_t>(round.transfers.size());  // all rings are alike
  }
  return round;
}

Round rings_in_nodes(const GroupLayout& layout) {
  Round round;
  const auto members = static_cast<std::uint32_t>(layout.members(0).size());
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    const auto here = layout.members(node);
    for (std::uint32_t i = 0; i < members; ++i) {
      round.transfers.push_back({here[i], here[(i + 1) % members], 1.0 / members});
    }
  }
  round.repeats = members - 1;
  round.ring = members;
  return round;
}

Round switch_round(const GroupLayout& layout, bool up, double bytes_per_byte) {
  Round round;
  for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
    for (const std::uint32_t member : layout.members(node)) {
      Transfer transfer{up ? member : Transfer::kSwitch, up ? Transfer::kSwitch : member, bytes_per_byte};
      transfer.via = Transfer::Via::nvswitch_reduce;
      round.transfers.push_back(transfer);
    }
  }
  return round;
}

// The first tree's rank r with lowest set bit b has the parent (r ^ b) | 2b, or r ^ b where that is out of range; rank
// 0 is the root above the largest power of two. The second tree is the first mirrored (even number of ranks) or shifted
// by one (odd), which makes inner ranks of the one leaves of the other.
BinaryTree binary_tree(std::uint32_t ranks, bool second) {
  const auto place = [&](std::uint32_t rank) {
    if (!second) return rank;
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + 1) % ranks;
  };
  BinaryTree tree{std::vector<std::uint32_t>(ranks, BinaryTree::kRoot), std::vector<std::uint32_t>(ranks, 0), 0};
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const std::uint32_t bit = rank & (~rank + 1);
    const std::uint32_t upper = (rank ^ bit) | (bit << 1U);
    tree.parent[place(rank)] = place(upper < ranks ? upper : rank ^ bit);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t at = rank; tree.parent[at] != BinaryTree::kRoot; at = tree.parent[at]) ++tree.depth[rank];
    tree.height = std::max(tree.height, tree.depth[rank]);
  }
  return tree;
}

TreeRounds double_tree_rounds(const GroupLayout& layout, std::uint32_t rails, double bytes_per_rail) {
  const BinaryTree trees[] = {binary_tree(layout.nodes(), false), binary_tree(layout.nodes(), true)};
  const std::uint32_t height = std::max(trees[0].height, trees[1].height);
  TreeRounds rounds{std::vector<Round>(height), std::vector<Round>(height)};
  for (std::uint32_t rail = 0; rail < rails; ++rail) {
    for (const BinaryTree& tree : trees) {
      for (std::uint32_t node = 0; node < layout.nodes(); ++node) {
        if (tree.parent[node] == BinaryTree::kRoot) continue;
        const NicSlot& child = layout.slot(node, rail);
        const NicSlot& parent = layout.slot(tree.parent[node], rail);
        const double half = bytes_per_rail / 2;
        const std::uint32_t level = tree.depth[node];
        rounds.up[height - level].transfers.push_back({child.enter, parent.enter, half, child.nic, parent.nic});
        rounds.down[level - 1].transfers.push_back({parent.enter, child.enter, half, parent.nic, child.nic});
      }
    }
  }
  return rounds;
}

}  // namespace clustersim
