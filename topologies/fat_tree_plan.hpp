// From fat-tree parameters to numbers: how many switches each tier has and which up-port meets which parent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topologies/fabric.hpp"

namespace clustersim {

enum class Rails : std::uint8_t {
  none,       // endpoints meet the leaves in node order
  optimized,  // a leaf serves one rail of a group of nodes; the tiers above are shared
  only,       // each rail is a fabric of its own
};

/// One tier as the user wrote it. An extended generalized fat tree (XGFT; Ohring et al., "On generalized fat trees",
/// IPPS 1995), with parallel cables (Zahavi, "Fat-trees routing and node ordering providing contention free traffic for
/// MPI global collectives", JPDC 72(11), 2012).
struct FatTreeTier {
  std::int64_t down = 0;      // children per switch; 0 = as many as needed (last tier only)
  std::int64_t parents = 0;   // distinct parents per switch; 0 at the top
  std::int64_t parallel = 1;  // cables to each parent
  Rate up_rate{0};            // of the cables to the tier above
  Picoseconds up_latency{0};
  [[nodiscard]] std::int64_t ports_up() const { return parents * parallel; }
};

/// The checked parameters. Either `tiers` is filled, or the counts are worked out from `radix`.
struct FatTreeSpec {
  Rails rails = Rails::none;
  std::vector<FatTreeTier> tiers;
  std::int64_t radix = 0;
  std::int64_t levels = 0;               // 0 = as few as possible
  std::vector<double> oversubscription;  // per tier, leaf first
  Rate link_rate{0};
  Picoseconds link_latency{0};
  [[nodiscard]] bool sized_by_radix() const { return tiers.empty(); }
};

/// Lays the tree into the context's network (fat_tree_fabric.cpp).
std::unique_ptr<Fabric> make_fat_tree(const FabricContext& context, const FatTreeSpec& spec);

/// Tiers wired for a given number of leaves. Switches of one subtree are numbered one after another.
struct WiredTier {
  std::uint32_t switches = 0;
  std::uint32_t subtrees = 0;
  std::uint32_t ports_down = 0;        // by design, per switch
  std::uint32_t ports_up = 0;          // per switch; 0 at the top
  std::uint32_t distinct_parents = 0;  // of a switch in a complete subtree
  Rate up_rate{0};
  Picoseconds up_latency{0};
  std::vector<std::uint32_t> subtree{};         // per switch
  std::vector<std::uint32_t> parent_subtree{};  // per subtree; empty at the top
  std::vector<std::uint32_t> parent{};          // per cable (switch x ports_up + port): switch of the tier above
};

/// The shape that serves the given number of endpoints: leaf size first, because it decides who shares a leaf.
class FatTreePlan {
 public:
  /// `leaves_for(down)` says how many leaves are needed when a leaf has `down` ports for endpoints.
  template <class LeavesFor>
  FatTreePlan(const FatTreeSpec& spec, std::int64_t endpoints, LeavesFor leaves_for)
      : spec_(spec), endpoints_(endpoints) {
    if (!spec.sized_by_radix()) {
      leaf_ports_ = spec.tiers.front().down > 0 ? spec.tiers.front().down : endpoints;
      return;
    }
    const auto named = static_cast<std::int64_t>(spec.oversubscription.size());  // tiers that have something above them
    for (levels_ = spec.levels > 0 ? spec.levels : named + 1;; ++levels_) {
      leaf_ports_ = tier_ports_down(1);
      if (leaves_for(leaf_ports_) <= most_leaves(levels_)) return;
      if (spec.levels > 0 || levels_ == kMostLevels) refuse_size();
    }
  }

  [[nodiscard]] std::int64_t leaf_ports() const { return leaf_ports_; }
  /// Tiers from the leaves up, for one plane.
  [[nodiscard]] std::vector<WiredTier> wire(std::int64_t leaves) const;

 private:
  static constexpr std::int64_t kMostLevels = 3;
  [[nodiscard]] std::int64_t tier_ports_down(std::int64_t tier) const;
  [[nodiscard]] std::int64_t tier_ports_up(std::int64_t tier) const;
  [[nodiscard]] std::int64_t most_leaves(std::int64_t levels) const;
  [[noreturn]] void refuse_size() const;
  [[nodiscard]] std::vector<WiredTier> wire_explicit(std::int64_t leaves) const;
  [[nodiscard]] std::vector<WiredTier> wire_by_radix(std::int64_t leaves) const;
  void wire_pods(std::vector<WiredTier>& wired) const;

  FatTreeSpec spec_;
  std::int64_t endpoints_ = 0;
  std::int64_t levels_ = 0;
  std::int64_t leaf_ports_ = 0;
};

}  // namespace clustersim
