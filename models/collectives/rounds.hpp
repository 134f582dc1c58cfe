// Rounds that several algorithms are made of: rings, in-switch reductions, double binary trees.
#pragma once

#include <cstdint>
#include <vector>

#include "models/collectives/layout.hpp"

namespace clustersim {

/// The rings of all channels over the whole group, each edge carrying `bytes_per_byte`.
Round ring_round(const GroupLayout& layout, double bytes_per_byte, std::int64_t repeats);

/// One ring inside every node over its m members (the same number everywhere): m-1 steps of 1/m of the data.
/// Reduce-scatter and all-gather look the same.
Round rings_in_nodes(const GroupLayout& layout);

/// All members send to (`up`) or receive from their node's NVSwitches.
Round switch_round(const GroupLayout& layout, bool up, double bytes_per_byte);

/// Rank r's parent in a binary tree over `ranks` ranks, and how deep it hangs.
struct BinaryTree {
  static constexpr std::uint32_t kRoot = ~0U;
  std::vector<std::uint32_t> parent;
  std::vector<std::uint32_t> depth;
  std::uint32_t height = 0;
};
/// The first or second of two trees whose inner ranks complement each other, so that no rank has more than four edges
/// in both (Sanders, Speck, Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
/// Computing 35, 2009).
BinaryTree binary_tree(std::uint32_t ranks, bool second);

/// Reduction up two trees over the nodes and broadcast down, half of `bytes_per_rail` each, on rails 0 .. rails-1.
/// One round per level.
struct TreeRounds {
  std::vector<Round> up;
  std::vector<Round> down;
};
TreeRounds double_tree_rounds(const GroupLayout& layout, std::uint32_t rails, double bytes_per_rail);

}  // namespace clustersim
