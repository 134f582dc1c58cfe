// The network between nodes: what every topology provides, and the table of topologies.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/settings.hpp"
#include "topologies/network.hpp"
#include "topologies/routing.hpp"

namespace clustersim {

/// A device of a node that the fabric connects: a NIC, or the GPU itself where there are no NICs (TPU).
struct Endpoint {
  DeviceId device;
  std::uint32_t node = 0;
  std::uint32_t rail = 0;  // index of the NIC within its node
  Rate rate{0};            // most that the device itself can do, per direction; 0 = whatever the fabric's link does
};

/// One row of a bill of materials.
struct SwitchTier {
  std::string name;  // "leaf", "spine", "core"
  std::int64_t switches = 0;
  std::int64_t ports_down = 0;  // per switch
  std::int64_t ports_up = 0;
  std::int64_t cables_down = 0;  // cables between this tier and the one below, all together
  double oversubscription = 1;   // down capacity / up capacity of this tier; 1 at the top
};

/// Closed forms of a regular fabric. Hops count links between endpoints; negative = not known in closed form.
struct FabricFigures {
  std::vector<SwitchTier> tiers;
  std::int64_t cables = 0;
  Rate bisection{-1};  // smallest capacity, one direction, across a balanced cut
  std::int64_t bisection_links = -1;
  double diameter_hops = -1;
  double mean_hops = -1;  // over ordered pairs of distinct endpoints
};

/// A fabric as groups within groups: leaves in pods in a whole. It offers this view when ways are relative: the way
/// between two endpoints is decided by the lowest level on which one group holds both, and crosses nothing but the two
/// endpoints' own links and the resources of the groups that it leaves and enters below that level. Links of one level
/// differ in capacity at most.
struct FabricGroups {
  struct Level {
    std::uint32_t groups = 0;
    std::span<const std::uint32_t> parent;  // per group: its group on the next level; empty on the last
    std::uint32_t first_resource = 0;       // group g: first_resource + 2g out and the next one in; none on the last
  };
  std::span<const std::uint32_t> group_of;  // per endpoint: its group on the first level
  std::uint32_t first_link = 0;             // endpoint e: resources first_link + 2e out and the next one in
  std::vector<Level> levels;                // empty: ways depend on where endpoints are, everywhere
  bool relative_throughout = true;          // false: also between groups of the last level
};

/// Knows the links it added and how transfers find their way over them. Routes are computed, not stored.
class Fabric {
 public:
  virtual ~Fabric() = default;
  /// Appends the way from one endpoint to another (indices into the endpoints the fabric was built on; from != to).
  /// Throws Infeasible when there is none (rail-only fabrics between rails).
  virtual void route(std::uint32_t from, std::uint32_t to, const Routing& routing, Route& out) const = 0;
  /// Links of an in-network reduction tree over `endpoints`, up with share 1 and down with share 1 per unit of data.
  /// False when the fabric cannot (no tree, or its switches do not reduce).
  virtual bool reduction_tree(std::span<const std::uint32_t> endpoints, Route& out) const;
  [[nodiscard]] virtual FabricFigures figures() const = 0;
  /// Side lengths when the fabric joins its endpoints as a torus, the first side varying fastest with the endpoint's
  /// number; empty for every other fabric. Algorithms that follow the wiring ask for it.
  [[nodiscard]] virtual std::span<const std::uint32_t> torus_sides() const { return {}; }
  /// What decides ways under the given routing, as long as the fabric lives; see FabricGroups.
  [[nodiscard]] virtual FabricGroups groups(const Routing& routing) const;
};

/// What every topology gets besides its own parameters.
struct FabricContext {
  Network& network;
  std::span<const Endpoint> endpoints;
  std::uint32_t nodes = 0;
  Rate link_rate{0};            // per direction, of every fabric link unless the parameters say otherwise
  Picoseconds link_latency{0};  // cable plus the switch it enters
  LinkKind link_kind = LinkKind::infiniband;
  bool in_network_reduction = false;
  /// Rate of an endpoint's own cable: the slower of its two ends.
  [[nodiscard]] Rate endpoint_rate(const Endpoint& endpoint) const {
    return endpoint.rate > Rate(0) && endpoint.rate < link_rate ? endpoint.rate : link_rate;
  }
};

/// More cables than this are refused before anything is allocated (two links each, 32 bytes a link).
inline constexpr std::int64_t kMostCables = 50'000'000;

struct FabricEntry {
  std::string_view name;
  std::string_view help;
  std::span<const Parameter> schema;
  std::unique_ptr<Fabric> (*build)(const FabricContext& context, const Settings& settings);
};

/// fat-tree, torus, single-switch, ...: the whole registry (topologies/all.cpp).
std::span<const FabricEntry> fabrics();
/// Throws BadInput with the nearest name.
const FabricEntry& find_fabric(std::string_view name, const SourceLocation& where = {});

}  // namespace clustersim
