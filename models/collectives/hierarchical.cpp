// Hierarchical all-reduce: reduce-scatter inside nodes, all-reduce of each rail between them, all-gather inside.
#include "models/collectives/rounds.hpp"

namespace clustersim {
namespace {

// Needs the same number of members, at least two, on each of at least two nodes.
bool supports(Collective collective, const Group& group) {
  if (collective != Collective::all_reduce || group.size() < 4) return false;
  const GroupLayout layout(group, {});
  return layout.nodes() >= 2 && layout.uniform() && layout.members(0).size() >= 2;
}

// The i-th members of all nodes form ring i, which reduces the m-th part that its members hold: 2(N-1) steps of 1/(mN).
Round rings_between_nodes(const GroupLayout& layout) {
  Round round;
  const auto members = static_cast<std::uint32_t>(layout.members(0).size());
  const std::uint32_t nodes = layout.nodes();
  for (std::uint32_t i = 0; i < members; ++i) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      round.transfers.push_back({layout.members(node)[i], layout.members((node + 1) % nodes)[i],
                                 1.0 / (static_cast<double>(members) * nodes)});
    }
  }
  round.repeats = 2 * (static_cast<std::int64_t>(nodes) - 1);
  round.ring = nodes;
  return round;
}

Schedule schedule(Collective, const Group& group, const CommunicationModel& model) {
  const GroupLayout layout(group, model);
  Schedule result;
  result.rounds.push_back(rings_in_nodes(layout));
  result.rounds.push_back(rings_between_nodes(layout));
  result.rounds.push_back(rings_in_nodes(layout));
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kHierarchical;
const CollectiveAlgorithm kHierarchical{"hierarchical",
                                        "reduce-scatter in nodes, rings between them, all-gather in nodes (all-reduce)",
                                        supports, schedule, false};

}  // namespace clustersim
