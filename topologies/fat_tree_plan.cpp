// Counting the switches of a fat tree and wiring their up-ports, for a given number of leaves.
#include "topologies/fat_tree_plan.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void check_cables(std::int64_t cables) {
  if (cables > kMostCables) {
    infeasible(
        "the fat tree needs more than {} cables between its switches; take fewer endpoints, or fewer up-links "
        "(a higher oversubscription)",
        kMostCables);
  }
}

/// Deals the up-ports of `children` in one run over parents first, first + 1, ..., so that no parent gets more than one
/// cable more than another, even where the numbers do not divide.
void deal(WiredTier& tier, std::span<const std::uint32_t> children, std::uint32_t first, std::uint32_t parents) {
  std::uint64_t dealt = 0;
  for (const std::uint32_t child : children) {
    for (std::uint32_t port = 0; port < tier.ports_up; ++port) {
      tier.parent[std::size_t{child} * tier.ports_up + port] = first + static_cast<std::uint32_t>(dealt++ % parents);
    }
  }
}

std::vector<std::uint32_t> run_of(std::uint32_t first, std::uint32_t count, std::uint32_t stride = 1) {
  std::vector<std::uint32_t> run(count);
  for (std::uint32_t i = 0; i < count; ++i) run[i] = first + i * stride;
  return run;
}

}  // namespace

std::int64_t FatTreePlan::tier_ports_up(std::int64_t tier) const {
  if (tier == levels_) return 0;
  const std::size_t index = static_cast<std::size_t>(tier - 1);
  const double ratio = index < spec_.oversubscription.size() ? spec_.oversubscription[index] : 1.0;
  // Halves go down, so that an odd radix gives the spare port to the endpoints.
  const double up = std::ceil(static_cast<double>(spec_.radix) / (1.0 + ratio) - 0.5);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(up));
}

std::int64_t FatTreePlan::tier_ports_down(std::int64_t tier) const { return spec_.radix - tier_ports_up(tier); }

std::int64_t FatTreePlan::most_leaves(std::int64_t levels) const {
  // A top switch has a cable to every leaf (two levels) or to every pod of tier_ports_down(2) leaves (three levels).
  if (levels == 1) return 1;
  return levels == 2 ? spec_.radix : spec_.radix * tier_ports_down(2);
}

void FatTreePlan::refuse_size() const {
  const double most = static_cast<double>(most_leaves(levels_) * tier_ports_down(1));
  infeasible(
      "a fat tree of {} level(s) of {}-port switches holds at most {} endpoints, not {}{}; take a larger radix{}",
      levels_, spec_.radix, most, endpoints_, spec_.rails == Rails::optimized ? " grouped by rail" : "",
      levels_ < kMostLevels ? " or one more level" : "");
}

std::vector<WiredTier> FatTreePlan::wire(std::int64_t leaves) const {
  return spec_.sized_by_radix() ? wire_by_radix(leaves) : wire_explicit(leaves);
}

std::vector<WiredTier> FatTreePlan::wire_explicit(std::int64_t leaves) const {
  std::vector<WiredTier> wired;
  std::int64_t subtrees = leaves;
  std::int64_t width = 1;  // switches of this tier in one subtree
  for (std::size_t t = 0; t < spec_.tiers.size(); ++t) {
    const FatTreeTier& tier = spec_.tiers[t];
    const bool top = t + 1 == spec_.tiers.size();
    check_cables(width);
    check_cables(subtrees * width);
    const std::int64_t ports_up = tier.ports_up();
    check_cables(ports_up > kMostCables ? ports_up : subtrees * width * ports_up);
    const std::int64_t below = t == 0 ? 1 : spec_.tiers[t - 1].parallel;
    const std::int64_t as_many_as_needed = t == 0 ? leaves : std::int64_t{wired.back().subtrees};
    WiredTier out{
        .switches = static_cast<std::uint32_t>(subtrees * width),
        .subtrees = static_cast<std::uint32_t>(subtrees),
        .ports_down = static_cast<std::uint32_t>((top && tier.down == 0 ? as_many_as_needed : tier.down) * below),
        .ports_up = static_cast<std::uint32_t>(ports_up),
        .distinct_parents = static_cast<std::uint32_t>(tier.parents),
        .up_rate = tier.up_rate,
        .up_latency = tier.up_latency};
    if (top && subtrees > 1) {
      infeasible(
          "the fat tree's tiers hold fewer than the {} endpoints asked for: its top tier would split into {} "
          "unconnected parts; raise down of the last tier {}-fold or leave it out",
          endpoints_, subtrees, subtrees);
    }
    const std::int64_t down_above = top ? 1 : spec_.tiers[t + 1].down > 0 ? spec_.tiers[t + 1].down : subtrees;
    for (std::int64_t s = 0; s < subtrees; ++s) {
      if (!top) out.parent_subtree.push_back(static_cast<std::uint32_t>(s / down_above));
      for (std::int64_t j = 0; j < width; ++j) {
        out.subtree.push_back(static_cast<std::uint32_t>(s));
        const std::int64_t first = (s / down_above * width + j) * tier.parents;
        for (std::int64_t q = 0; q < ports_up; ++q) {
          out.parent.push_back(static_cast<std::uint32_t>(first + q % tier.parents));
        }
      }
    }
    wired.push_back(std::move(out));
    subtrees = divide_up(subtrees, down_above);
    width *= std::max<std::int64_t>(1, tier.parents);
  }
  return wired;
}

std::vector<WiredTier> FatTreePlan::wire_by_radix(std::int64_t leaves) const {
  const std::int64_t radix = spec_.radix;
  std::vector<WiredTier> wired(static_cast<std::size_t>(levels_));
  for (std::int64_t t = 1; t <= levels_; ++t) {
    WiredTier& tier = wired[static_cast<std::size_t>(t - 1)];
    tier.ports_down = static_cast<std::uint32_t>(tier_ports_down(t));
    tier.ports_up = static_cast<std::uint32_t>(tier_ports_up(t));
    tier.up_rate = spec_.link_rate;
    tier.up_latency = spec_.link_latency;
  }
  const auto resize = [](WiredTier& tier, std::int64_t switches) {
    check_cables(switches * std::max<std::int64_t>(1, tier.ports_up));
    tier.switches = static_cast<std::uint32_t>(switches);
    tier.subtree.assign(tier.switches, 0);
    tier.subtrees = 1;
    tier.parent.assign(std::size_t{tier.switches} * tier.ports_up, 0);
  };
  WiredTier& leaf = wired.front();
  resize(leaf, leaves);
  leaf.subtree = run_of(0, leaf.switches);
  leaf.subtrees = leaf.switches;
  if (levels_ == 1) return wired;
  // Non-blocking: ceil(2E/R) leaves and ceil(E/R) switches on top, because ceil(ceil(2E/R) (R/2) / R) = ceil(E/R).
  if (levels_ == 2) {
    resize(wired[1], divide_up(leaves * leaf.ports_up, radix));
    leaf.parent_subtree.assign(leaf.switches, 0);
    leaf.distinct_parents = std::min(leaf.ports_up, wired[1].switches);
    deal(leaf, leaf.subtree, 0, wired[1].switches);
    return wired;
  }
  wire_pods(wired);
  return wired;
}

/// Three levels: pods of as many leaves as a spine has ports down. A pod that is not full has only the spines that its
/// leaves' up-links fill, so that leaf : spine : core stays at the non-blocking minimum for any number of endpoints.
void FatTreePlan::wire_pods(std::vector<WiredTier>& wired) const {
  WiredTier& leaf = wired[0];
  WiredTier& spine = wired[1];
  WiredTier& core = wired[2];
  spine.subtrees = static_cast<std::uint32_t>(divide_up(leaf.switches, spine.ports_down));
  leaf.distinct_parents = leaf.ports_up;
  for (std::uint32_t pod = 0; pod < spine.subtrees; ++pod) {
    const std::uint32_t first_leaf = pod * spine.ports_down;
    const std::uint32_t leaves = std::min(spine.ports_down, leaf.switches - first_leaf);
    const auto spines = static_cast<std::uint32_t>(divide_up(std::int64_t{leaves} * leaf.ports_up, spine.ports_down));
    leaf.parent_subtree.insert(leaf.parent_subtree.end(), leaves, pod);
    deal(leaf, run_of(first_leaf, leaves), spine.switches, spines);
    spine.subtree.insert(spine.subtree.end(), spines, pod);
    spine.switches += spines;
  }
  const std::int64_t uplinks = std::int64_t{spine.switches} * spine.ports_up;
  check_cables(uplinks);
  spine.parent.assign(static_cast<std::size_t>(uplinks), 0);
  spine.parent_subtree.assign(spine.subtrees, 0);
  core.switches = static_cast<std::uint32_t>(divide_up(uplinks, spec_.radix));
  core.subtree.assign(core.switches, 0);
  core.subtrees = 1;
  spine.distinct_parents = std::min(spine.ports_up, core.switches);
  // Where it comes out even, spine j of every pod meets the same cores (planes), as in the k-ary fat tree: then there
  // is one way down from a core. Otherwise all up-links are dealt over all cores in one run.
  const std::uint32_t per_pod = spine.switches / spine.subtrees;
  const bool planes = leaf.switches % spine.ports_down == 0 && core.switches % per_pod == 0;
  if (!planes) {
    deal(spine, run_of(0, spine.switches), 0, core.switches);
    return;
  }
  const std::uint32_t cores = core.switches / per_pod;
  spine.distinct_parents = std::min(spine.ports_up, cores);
  for (std::uint32_t plane = 0; plane < per_pod; ++plane) {
    deal(spine, run_of(plane, spine.subtrees, per_pod), plane * cores, cores);
  }
}

}  // namespace clustersim
