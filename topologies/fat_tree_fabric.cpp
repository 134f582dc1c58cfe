// A fat tree laid into the network: who sits on which leaf, routing, in-network reduction, figures.
#include <algorithm>
#include <numeric>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "topologies/fat_tree_plan.hpp"

namespace clustersim {
namespace {

/// One tier of switches with its cables to the tier above. Switches, subtrees and cables are numbered over all planes.
struct Tier {
  std::uint32_t switches = 0;
  std::uint32_t subtrees = 0;
  std::uint32_t ports_down = 0;
  std::uint32_t ports_up = 0;
  std::uint32_t distinct_parents = 0;
  Rate up_rate{0};
  Picoseconds up_latency{0};
  std::vector<std::uint32_t> subtree;         // per switch
  std::vector<std::uint32_t> parent_subtree;  // per subtree
  std::vector<std::uint32_t> parent;          // per cable = switch x ports_up + port
  // The same cables by parent: those of switch p of the tier above are down_cable[down_first[p] .. down_first[p + 1]),
  // in rising order and therefore grouped by child subtree.
  std::vector<std::uint32_t> down_first;
  std::vector<std::uint32_t> down_cable;
  std::uint32_t first_link = 0;    // cable c is link first_link + 2c up and the next one down
  std::uint32_t first_bundle = 0;  // resource number; subtree s: first_bundle + 2s up and the next one down
  [[nodiscard]] std::uint32_t up_link(std::uint32_t cable) const { return first_link + 2 * cable; }
  [[nodiscard]] std::uint32_t down_link(std::uint32_t cable) const { return first_link + 2 * cable + 1; }
  [[nodiscard]] std::uint32_t child(std::uint32_t cable) const { return cable / ports_up; }
};

/// Where each endpoint is attached.
struct Seats {
  std::vector<std::uint32_t> leaf;          // per endpoint, over all planes
  std::vector<std::uint32_t> slot;          // per endpoint: leaf within the plane x ports + port, the digits of D-mod-k
  std::vector<std::uint32_t> plane_leaves;  // leaves of each plane
};

class FatTree final : public Fabric {
 public:
  FatTree(const FabricContext& context, const FatTreeSpec& spec);
  void route(std::uint32_t from, std::uint32_t to, const Routing& routing, Route& out) const override;
  bool reduction_tree(std::span<const std::uint32_t> endpoints, Route& out) const override;
  [[nodiscard]] FabricFigures figures() const override;
  [[nodiscard]] FabricGroups groups(const Routing& routing) const override;

 private:
  void append_plane(const std::vector<WiredTier>& wired);
  void index_down_cables();
  void lay(const FabricContext& context);
  void add_bundles(Network& network);

  [[nodiscard]] std::uint32_t leaf_of(std::uint32_t endpoint) const { return seats_.leaf[endpoint]; }
  [[nodiscard]] std::uint32_t up_link(std::uint32_t endpoint) const { return first_link_ + 2 * endpoint; }
  [[nodiscard]] std::uint32_t down_link(std::uint32_t endpoint) const { return first_link_ + 2 * endpoint + 1; }
  [[nodiscard]] std::uint32_t subtree_at(std::uint32_t leaf, std::size_t tier) const;
  [[nodiscard]] std::size_t meeting_tier(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] std::span<const std::uint32_t> cables_down(std::uint32_t parent, std::size_t tier,
                                                           std::uint32_t child_subtree) const;
  [[nodiscard]] bool leads(std::uint32_t here, std::size_t tier, std::size_t top, std::uint32_t to) const;
  [[nodiscard]] bool climbs(std::uint32_t here, std::size_t tier, std::uint32_t target, std::size_t top) const;

  void route_spread(std::uint32_t from, std::uint32_t to, std::size_t top, Route& out) const;
  void route_deterministic(std::uint32_t from, std::uint32_t to, std::size_t top, Route& out) const;
  void route_hashed(std::uint32_t from, std::uint32_t to, std::size_t top, std::uint64_t hash, double share,
                    Route& out) const;
  [[nodiscard]] std::uint32_t pick_up(std::uint32_t here, std::size_t tier, std::size_t top, std::uint32_t to,
                                      std::uint64_t hash) const;
  void add_latency(std::size_t top, Route& out) const;
  [[nodiscard]] std::vector<std::vector<std::int64_t>> endpoints_by_subtree() const;

  std::vector<Tier> tiers_;
  Seats seats_;
  std::vector<std::uint32_t> rail_;
  bool in_network_reduction_ = false;
  Rate link_rate_{0};
  Picoseconds link_latency_{0};
  std::uint32_t first_link_ = 0;  // endpoint e: first_link_ + 2e up and the next one down
};

/// In node order, or rail by rail within each group of nodes that shares its leaves.
Seats seat(const FabricContext& context, Rails rails, std::int64_t ports) {
  const std::size_t count = context.endpoints.size();
  Seats seats{.leaf = std::vector<std::uint32_t>(count), .slot = std::vector<std::uint32_t>(count), .plane_leaves = {}};
  std::uint32_t planes = 0;
  for (const Endpoint& endpoint : context.endpoints) planes = std::max(planes, endpoint.rail + 1);
  if (rails == Rails::none) {
    for (std::size_t e = 0; e < count; ++e) seats.slot[e] = static_cast<std::uint32_t>(e);
    seats.plane_leaves = {static_cast<std::uint32_t>((static_cast<std::int64_t>(count) + ports - 1) / ports)};
  } else {
    // Place within the rail: how many earlier endpoints are on the same rail.
    std::vector<std::int64_t> used(planes, 0);
    std::vector<std::int64_t> place(count);
    for (std::size_t e = 0; e < count; ++e) place[e] = used[context.endpoints[e].rail]++;
    std::vector<std::int64_t> leaves(planes);
    for (std::uint32_t rail = 0; rail < planes; ++rail) leaves[rail] = (used[rail] + ports - 1) / ports;
    // Leaf g of a rail comes after all leaves below g of every rail (optimized), or straight after its own (only).
    const auto leaf_number = [&](std::uint32_t rail, std::int64_t group) {
      std::int64_t number = group;
      for (std::uint32_t other = 0; other < planes && rails == Rails::optimized; ++other) {
        if (other != rail) number += std::min(leaves[other], group + (other < rail ? 1 : 0));
      }
      return number;
    };
    for (std::size_t e = 0; e < count; ++e) {
      const std::int64_t leaf = leaf_number(context.endpoints[e].rail, place[e] / ports);
      seats.slot[e] = static_cast<std::uint32_t>(leaf * ports + place[e] % ports);
    }
    if (rails == Rails::optimized) {
      seats.plane_leaves = {static_cast<std::uint32_t>(std::accumulate(leaves.begin(), leaves.end(), std::int64_t{0}))};
    } else {
      for (const std::int64_t each : leaves) seats.plane_leaves.push_back(static_cast<std::uint32_t>(each));
    }
  }
  std::vector<std::uint32_t> first_leaf(planes + 1, 0);
  if (rails == Rails::only) {
    std::partial_sum(seats.plane_leaves.begin(), seats.plane_leaves.end(), first_leaf.begin() + 1);
  }
  for (std::size_t e = 0; e < count; ++e) {
    seats.leaf[e] = first_leaf[context.endpoints[e].rail] + static_cast<std::uint32_t>(seats.slot[e] / ports);
  }
  return seats;
}

std::int64_t largest_plane(const FabricContext& context, Rails rails) {
  if (rails != Rails::only) return static_cast<std::int64_t>(context.endpoints.size());
  std::vector<std::int64_t> used;
  for (const Endpoint& endpoint : context.endpoints) {
    if (endpoint.rail >= used.size()) used.resize(endpoint.rail + 1, 0);
    ++used[endpoint.rail];
  }
  return *std::max_element(used.begin(), used.end());
}

FatTree::FatTree(const FabricContext& context, const FatTreeSpec& spec)
    : in_network_reduction_(context.in_network_reduction),
      link_rate_(context.link_rate),
      link_latency_(context.link_latency) {
  const FatTreePlan plan(spec, largest_plane(context, spec.rails), [&](std::int64_t ports) {
    const Seats seats = seat(context, spec.rails, ports);
    return std::int64_t{*std::max_element(seats.plane_leaves.begin(), seats.plane_leaves.end())};
  });
  seats_ = seat(context, spec.rails, plan.leaf_ports());
  for (const std::uint32_t leaves : seats_.plane_leaves) append_plane(plan.wire(leaves));
  for (const Endpoint& endpoint : context.endpoints) rail_.push_back(endpoint.rail);
  index_down_cables();
  lay(context);
}

void FatTree::append_plane(const std::vector<WiredTier>& wired) {
  tiers_.resize(wired.size());
  std::vector<std::uint32_t> switches_before;
  std::vector<std::uint32_t> subtrees_before;
  for (const Tier& tier : tiers_) {
    switches_before.push_back(tier.switches);
    subtrees_before.push_back(tier.subtrees);
  }
  for (std::size_t t = 0; t < wired.size(); ++t) {
    const WiredTier& from = wired[t];
    Tier& to = tiers_[t];
    to.switches += from.switches;
    to.subtrees += from.subtrees;
    to.ports_down = std::max(to.ports_down, from.ports_down);
    to.ports_up = from.ports_up;
    to.distinct_parents = std::max(to.distinct_parents, from.distinct_parents);
    to.up_rate = from.up_rate;
    to.up_latency = from.up_latency;
    for (const std::uint32_t subtree : from.subtree) to.subtree.push_back(subtrees_before[t] + subtree);
    if (t + 1 == wired.size()) continue;
    for (const std::uint32_t subtree : from.parent_subtree)
      to.parent_subtree.push_back(subtrees_before[t + 1] + subtree);
    for (const std::uint32_t parent : from.parent) to.parent.push_back(switches_before[t + 1] + parent);
  }
}

void FatTree::index_down_cables() {
  for (std::size_t t = 0; t + 1 < tiers_.size(); ++t) {
    Tier& tier = tiers_[t];
    tier.down_first.assign(tiers_[t + 1].switches + 1, 0);
    for (const std::uint32_t parent : tier.parent) ++tier.down_first[parent + 1];
    std::partial_sum(tier.down_first.begin(), tier.down_first.end(), tier.down_first.begin());
    std::vector<std::uint32_t> next(tier.down_first.begin(), tier.down_first.end() - 1);
    tier.down_cable.resize(tier.parent.size());
    for (std::uint32_t cable = 0; cable < tier.parent.size(); ++cable) {
      tier.down_cable[next[tier.parent[cable]]++] = cable;
    }
  }
}

void FatTree::lay(const FabricContext& context) {
  Network& network = context.network;
  std::vector<std::size_t> first_device;
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    first_device.push_back(network.devices().size());
    for (std::uint32_t i = 0; i < tiers_[t].switches; ++i) {
      network.add_device(
          {.kind = DeviceKind::network_switch, .tier = static_cast<std::uint8_t>(t + 1), .node = ~0U, .index = i});
    }
  }
  first_link_ = static_cast<std::uint32_t>(network.links().size());
  for (std::size_t e = 0; e < context.endpoints.size(); ++e) {
    network.add_cable(context.endpoints[e].device, DeviceId(first_device[0] + seats_.leaf[e]),
                      context.endpoint_rate(context.endpoints[e]), context.link_latency, context.link_kind);
  }
  for (std::size_t t = 0; t + 1 < tiers_.size(); ++t) {
    Tier& tier = tiers_[t];
    tier.first_link = static_cast<std::uint32_t>(network.links().size());
    for (std::uint32_t cable = 0; cable < tier.parent.size(); ++cable) {
      network.add_cable(DeviceId(first_device[t] + tier.child(cable)),
                        DeviceId(first_device[t + 1] + tier.parent[cable]), tier.up_rate, tier.up_latency,
                        context.link_kind);
    }
  }
  add_bundles(network);
}

std::string subtree_name(std::size_t tier, std::uint32_t subtree) {
  if (tier == 0) return fmt::format("leaf{}", subtree);
  if (tier == 1) return fmt::format("pod {}", subtree);
  return fmt::format("tier-{} group {}", tier + 1, subtree);
}

/// For each subtree below the top, all cables that leave it as one bundle up and one bundle down. A transfer that is
/// spread evenly over all its shortest paths puts the same share on every cable of the bundles it crosses (each switch
/// of a subtree sees the same part of it), so that a bundle of n cables acts as one resource of n times the slowest
/// cable: the even split is limited by its slowest member. Exact where every switch of a subtree has equally many
/// cables to each of its parents; where numbers do not divide and a few pairs have one cable more than others, it
/// stands for routing that levels those differences out, and is an upper bound.
void FatTree::add_bundles(Network& network) {
  for (std::size_t t = 0; t + 1 < tiers_.size(); ++t) {
    Tier& tier = tiers_[t];
    tier.first_bundle = network.resources();
    std::uint32_t next = 0;  // switch; those of a subtree stand together
    for (std::uint32_t subtree = 0; subtree < tier.subtrees; ++subtree) {
      std::vector<LinkId> up;
      std::vector<LinkId> down;
      for (; next < tier.switches && tier.subtree[next] == subtree; ++next) {
        for (std::uint32_t cable = next * tier.ports_up; cable < (next + 1) * tier.ports_up; ++cable) {
          up.emplace_back(tier.up_link(cable));
          down.emplace_back(tier.down_link(cable));
        }
      }
      network.add_bundle(subtree_name(t, subtree) + " uplinks", std::move(up));
      network.add_bundle(subtree_name(t, subtree) + " downlinks", std::move(down));
    }
  }
}

std::uint32_t FatTree::subtree_at(std::uint32_t leaf, std::size_t tier) const {
  std::uint32_t subtree = leaf;
  for (std::size_t t = 0; t < tier; ++t) subtree = tiers_[t].parent_subtree[subtree];
  return subtree;
}

/// The lowest tier (0 = leaf) whose switches have both leaves below them.
std::size_t FatTree::meeting_tier(std::uint32_t from, std::uint32_t to) const {
  std::uint32_t a = leaf_of(from);
  std::uint32_t b = leaf_of(to);
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    if (a == b) return tier;
    if (tier + 1 == tiers_.size()) break;
    a = tiers_[tier].parent_subtree[a];
    b = tiers_[tier].parent_subtree[b];
  }
  infeasible(
      "no way from endpoint {} on rail {} to endpoint {} on rail {}: each rail is a fabric of its own; move the "
      "data to the right GPU over NVLink first, or take rails = \"optimized\"",
      from, rail_[from], to, rail_[to]);
}

/// The cables from a switch of tier + 1 down into one subtree of `tier`.
std::span<const std::uint32_t> FatTree::cables_down(std::uint32_t parent, std::size_t tier,
                                                    std::uint32_t child_subtree) const {
  const Tier& below = tiers_[tier];
  const auto begin = below.down_cable.begin() + below.down_first[parent];
  const auto end = below.down_cable.begin() + below.down_first[parent + 1];
  const auto subtree = [&](std::uint32_t cable) { return below.subtree[below.child(cable)]; };
  const auto first =
      std::partition_point(begin, end, [&](std::uint32_t cable) { return subtree(cable) < child_subtree; });
  const auto last =
      std::partition_point(first, end, [&](std::uint32_t cable) { return subtree(cable) == child_subtree; });
  return {first, last};
}

/// Whether some switch of the top tier above `here` has a cable towards `to`. Always so in regular trees.
bool FatTree::leads(std::uint32_t here, std::size_t tier, std::size_t top, std::uint32_t to) const {
  if (tier == top) return !cables_down(here, top - 1, subtree_at(leaf_of(to), top - 1)).empty();
  for (std::uint32_t port = 0; port < tiers_[tier].ports_up; ++port) {
    if (leads(tiers_[tier].parent[here * tiers_[tier].ports_up + port], tier + 1, top, to)) return true;
  }
  return false;
}

/// Whether `target` of tier `top` is above `here`.
bool FatTree::climbs(std::uint32_t here, std::size_t tier, std::uint32_t target, std::size_t top) const {
  if (tier == top) return here == target;
  for (std::uint32_t port = 0; port < tiers_[tier].ports_up; ++port) {
    if (climbs(tiers_[tier].parent[here * tiers_[tier].ports_up + port], tier + 1, target, top)) return true;
  }
  return false;
}

void FatTree::add_latency(std::size_t top, Route& out) const {
  Picoseconds one_way = link_latency_;
  for (std::size_t t = 0; t < top; ++t) one_way += tiers_[t].up_latency;
  out.latency += 2 * one_way;
  out.hops += static_cast<std::uint32_t>(2 * (top + 1));
}

void FatTree::route(std::uint32_t from, std::uint32_t to, const Routing& routing, Route& out) const {
  ensure(from != to && from < rail_.size() && to < rail_.size(), "no route from endpoint {} to endpoint {}", from, to);
  const std::size_t top = meeting_tier(from, to);
  out.add(up_link(from), 1.0);
  if (top > 0) {
    switch (routing.policy) {
      case RoutingPolicy::spread:
        route_spread(from, to, top, out);
        break;
      case RoutingPolicy::deterministic:
        route_deterministic(from, to, top, out);
        break;
      case RoutingPolicy::ecmp:
        ensure(routing.queue_pairs >= 1, "ecmp needs at least one queue pair");
        for (std::uint32_t pair = 0; pair < routing.queue_pairs; ++pair) {
          const std::uint64_t hash = mix64(mix64(mix64(routing.seed, from), to), pair);
          route_hashed(from, to, top, hash, 1.0 / routing.queue_pairs, out);
        }
        break;
    }
  }
  out.add(down_link(to), 1.0);
  add_latency(top, out);
}

void FatTree::route_spread(std::uint32_t from, std::uint32_t to, std::size_t top, Route& out) const {
  std::uint32_t subtree = leaf_of(from);
  for (std::size_t t = 0; t < top; ++t) {
    out.add(tiers_[t].first_bundle + 2 * subtree, 1.0);
    subtree = tiers_[t].parent_subtree[subtree];
  }
  for (std::size_t t = top; t-- > 0;) {
    out.add(tiers_[t].first_bundle + 2 * subtree_at(leaf_of(to), t) + 1, 1.0);
  }
}

/// D-mod-k: the digits of the destination's seat choose the ports, so that everything bound for one endpoint comes down
/// one way and the endpoints of a subtree come down over different cables (Zahavi 2012). The way down is the
/// destination's own chain of up-ports in reverse; the way up takes the same digits where they lead there. In the trees
/// that do not divide evenly a top switch may lack a cable to the source's subtree: the next digits are tried.
void FatTree::route_deterministic(std::uint32_t from, std::uint32_t to, std::size_t top, Route& out) const {
  std::vector<std::uint32_t> down;
  std::uint32_t target = 0;
  for (std::uint32_t attempt = 0;; ++attempt) {
    down.clear();
    target = leaf_of(to);
    std::uint32_t digits = seats_.slot[to] + attempt;
    for (std::size_t t = 0; t < top; ++t) {
      const Tier& tier = tiers_[t];
      const std::uint32_t cable = target * tier.ports_up + digits % tier.ports_up;
      digits /= tier.distinct_parents;
      down.push_back(tier.down_link(cable));
      target = tier.parent[cable];
    }
    if (!cables_down(target, top - 1, subtree_at(leaf_of(from), top - 1)).empty()) break;
    ensure(attempt < tiers_[top].switches * tiers_[0].ports_up, "no deterministic way from {} to {}", from, to);
  }
  std::uint32_t here = leaf_of(from);
  std::uint32_t digits = seats_.slot[to];
  for (std::size_t t = 0; t < top; ++t) {
    const Tier& tier = tiers_[t];
    for (std::uint32_t i = 0;; ++i) {
      ensure(i < tier.ports_up, "the top switch chosen for {} to {} is out of reach", from, to);
      const std::uint32_t cable = here * tier.ports_up + (digits + i) % tier.ports_up;
      if (!climbs(tier.parent[cable], t + 1, target, top)) continue;
      out.add(tier.up_link(cable), 1.0);
      here = tier.parent[cable];
      break;
    }
    digits /= tier.distinct_parents;
  }
  for (std::size_t t = top; t-- > 0;) out.add(down[t], 1.0);
}

/// An up-cable by hash among those that lead to `to`.
std::uint32_t FatTree::pick_up(std::uint32_t here, std::size_t tier, std::size_t top, std::uint32_t to,
                               std::uint64_t hash) const {
  const Tier& from = tiers_[tier];
  const std::uint32_t first = here * from.ports_up;
  const auto hashed = static_cast<std::uint32_t>(hash % from.ports_up);
  if (leads(from.parent[first + hashed], tier + 1, top, to)) return first + hashed;
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t port = 0; port < from.ports_up; ++port) {
    if (leads(from.parent[first + port], tier + 1, top, to)) candidates.push_back(first + port);
  }
  ensure(!candidates.empty(), "no up-link of a tier-{} switch leads to endpoint {}", tier + 1, to);
  return candidates[hash % candidates.size()];
}

void FatTree::route_hashed(std::uint32_t from, std::uint32_t to, std::size_t top, std::uint64_t hash, double share,
                           Route& out) const {
  std::uint32_t here = leaf_of(from);
  for (std::size_t t = 0; t < top; ++t) {
    const std::uint32_t cable = pick_up(here, t, top, to, mix64(hash, 2 * t));
    out.add(tiers_[t].up_link(cable), share);
    here = tiers_[t].parent[cable];
  }
  for (std::size_t t = top; t-- > 0;) {
    const auto candidates = cables_down(here, t, subtree_at(leaf_of(to), t));
    const std::uint32_t cable = candidates[mix64(hash, 2 * t + 1) % candidates.size()];
    out.add(tiers_[t].down_link(cable), share);
    here = tiers_[t].child(cable);
  }
}

/// Every endpoint sends its data up once; each switch passes one reduced stream up, and the result comes back the same
/// way. The streams of a subtree are dealt over all its up-links (many trees at once), hence the bundles.
bool FatTree::reduction_tree(std::span<const std::uint32_t> endpoints, Route& out) const {
  if (!in_network_reduction_ || endpoints.size() < 2) return false;
  std::vector<std::uint32_t> subtrees;
  for (const std::uint32_t endpoint : endpoints) subtrees.push_back(leaf_of(endpoint));
  const auto make_unique = [&] {
    std::sort(subtrees.begin(), subtrees.end());
    subtrees.erase(std::unique(subtrees.begin(), subtrees.end()), subtrees.end());
  };
  make_unique();
  std::vector<PathShare> shares;
  for (const std::uint32_t endpoint : endpoints) {
    shares.push_back({up_link(endpoint), 1.0});
    shares.push_back({down_link(endpoint), 1.0});
  }
  std::size_t top = 0;
  for (; subtrees.size() > 1; ++top) {
    const Tier& tier = tiers_[top];
    if (top + 1 == tiers_.size()) return false;  // separate rails have no common switch
    for (std::uint32_t& subtree : subtrees) {
      shares.push_back({tier.first_bundle + 2 * subtree, 1.0});
      shares.push_back({tier.first_bundle + 2 * subtree + 1, 1.0});
      subtree = tier.parent_subtree[subtree];
    }
    make_unique();
  }
  out.shares.insert(out.shares.end(), shares.begin(), shares.end());
  add_latency(top, out);
  return true;
}

/// Spreading crosses the bundles of subtrees. Digits and hashes choose cables by the endpoints' own numbers, so that
/// with them only the ways below one leaf are relative.
FabricGroups FatTree::groups(const Routing& routing) const {
  FabricGroups result{.group_of = seats_.leaf, .first_link = first_link_, .levels = {}};
  if (routing.policy != RoutingPolicy::spread) {
    result.levels.push_back({.groups = tiers_.front().subtrees, .parent = {}});
    result.relative_throughout = false;
    return result;
  }
  for (const Tier& tier : tiers_) {
    result.levels.push_back(
        {.groups = tier.subtrees, .parent = tier.parent_subtree, .first_resource = tier.first_bundle});
  }
  return result;
}

/// Endpoints below each subtree, tier by tier.
std::vector<std::vector<std::int64_t>> FatTree::endpoints_by_subtree() const {
  std::vector<std::vector<std::int64_t>> count;
  count.reserve(tiers_.size());
  for (const Tier& tier : tiers_) count.emplace_back(tier.subtrees, 0);
  for (const std::uint32_t leaf : seats_.leaf) ++count[0][leaf];
  for (std::size_t t = 0; t + 1 < tiers_.size(); ++t) {
    for (std::uint32_t s = 0; s < tiers_[t].subtrees; ++s) count[t + 1][tiers_[t].parent_subtree[s]] += count[t][s];
  }
  return count;
}

constexpr std::string_view kTierNames[] = {"leaf", "spine", "core"};

FabricFigures FatTree::figures() const {
  FabricFigures result;
  const auto endpoints = static_cast<std::int64_t>(rail_.size());
  // Half of the nodes against the other half, every subtree's cables on one side: half the cables of the thinnest tier.
  result.cables = endpoints;
  result.bisection_links = endpoints / 2;
  result.bisection = link_rate_ * static_cast<double>(result.bisection_links);
  const std::vector<std::vector<std::int64_t>> count = endpoints_by_subtree();
  // Ordered pairs that meet at tier t: pairs under a common tier-t subtree less those that met below; 2(t + 1) hops.
  double met_before = 0;
  double hops = 0;
  double down_rate = link_rate_.value();
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    const Tier& tier = tiers_[t];
    const auto cables = static_cast<std::int64_t>(tier.parent.size());
    SwitchTier row{.name = t < std::size(kTierNames) ? std::string(kTierNames[t]) : fmt::format("tier{}", t + 1),
                   .switches = tier.switches,
                   .ports_down = tier.ports_down,
                   .ports_up = tier.ports_up,
                   .cables_down = t == 0 ? endpoints : static_cast<std::int64_t>(tiers_[t - 1].parent.size())};
    if (tier.ports_up > 0) {
      row.oversubscription = tier.ports_down * down_rate / (tier.ports_up * tier.up_rate.value());
      const std::int64_t half = cables / 2;
      const Rate across = tier.up_rate * static_cast<double>(half);
      if (tier.subtrees > tiers_[t + 1].subtrees && across < result.bisection) {
        result.bisection_links = half;
        result.bisection = across;
      }
    }
    down_rate = tier.up_rate.value();
    result.tiers.push_back(row);
    result.cables += cables;
    double met = 0;
    for (const std::int64_t n : count[t]) met += static_cast<double>(n) * static_cast<double>(n - 1);
    if (met > met_before) result.diameter_hops = static_cast<double>(2 * (t + 1));
    hops += static_cast<double>(2 * (t + 1)) * (met - met_before);
    met_before = met;
  }
  result.mean_hops = met_before > 0 ? hops / met_before : 0.0;
  if (met_before == 0) result.diameter_hops = 0;
  return result;
}

}  // namespace

std::unique_ptr<Fabric> make_fat_tree(const FabricContext& context, const FatTreeSpec& spec) {
  return std::make_unique<FatTree>(context, spec);
}

}  // namespace clustersim
