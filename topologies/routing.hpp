// Which links a transfer takes, and which share of its bytes each carries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/units.hpp"

namespace clustersim {

/// deterministic: one path (D-mod-k on fat trees, dimension order on tori).
/// ecmp: each of queue_pairs sub-flows of a connection is hashed onto one shortest path, seeded.
/// spread: bytes are spread evenly over all shortest paths (adaptive routing, packet spraying).
enum class RoutingPolicy : std::uint8_t { deterministic, ecmp, spread };

struct Routing {
  RoutingPolicy policy = RoutingPolicy::spread;
  std::uint64_t seed = 0;
  std::uint32_t queue_pairs = 1;  // ecmp only; >= 1
};

/// `share` of the transfer's bytes cross `resource` (a Network resource number); 0 < share <= 1.
struct PathShare {
  std::uint32_t resource;
  double share;
};

/// The way of one transfer. A resource may appear more than once (shares add up).
struct Route {
  std::vector<PathShare> shares;
  Picoseconds latency{0};  // one way, of the longest path taken
  std::uint32_t hops = 0;  // links on the longest path taken
  void clear() {
    shares.clear();
    latency = Picoseconds{0};
    hops = 0;
  }
  void add(std::uint32_t resource, double share) { shares.push_back({resource, share}); }
  /// One link in series with what is there already.
  void add_hop(std::uint32_t resource, Picoseconds link_latency) {
    shares.push_back({resource, 1.0});
    latency += link_latency;
    ++hops;
  }
};

}  // namespace clustersim
