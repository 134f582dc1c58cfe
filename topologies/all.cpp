// The tables of topologies and node interconnects: a new one is its file and a line here.
#include <array>

#include "sim/errors.hpp"
#include "topologies/fabric.hpp"
#include "topologies/node.hpp"

namespace clustersim {

extern const FabricEntry kSingleSwitch;
extern const FabricEntry kFatTree;
extern const FabricEntry kTorus;

extern const NodeInterconnect kNvswitch;
extern const NodeInterconnect kFullMesh;
extern const NodeInterconnect kHybridCubeMesh;
extern const NodeInterconnect kPcie;

std::span<const FabricEntry> fabrics() {
  static const std::array table{kSingleSwitch, kFatTree, kTorus};
  return table;
}

std::span<const NodeInterconnect> node_interconnects() {
  static const std::array table{kNvswitch, kFullMesh, kHybridCubeMesh, kPcie};
  return table;
}

const FabricEntry& find_fabric(std::string_view name, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const FabricEntry& entry : fabrics()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  const std::string place = where.text();
  bad_input("{}{}topology = \"{}\": expected one of {}{}", place, place.empty() ? "" : " ", name,
            fmt::join(names, ", "), did_you_mean(name, names));
}

bool Fabric::reduction_tree(std::span<const std::uint32_t>, Route&) const { return false; }
FabricGroups Fabric::groups(const Routing&) const { return {}; }

}  // namespace clustersim
