// Rings along the sides of a torus: every side's links, in both directions, carry their share all the time.
#include <algorithm>
#include <array>
#include <numeric>

#include "models/collectives/collective.hpp"

namespace clustersim {
namespace {

/// The members as a box of torus coordinates: member(coordinates) for every position of the box.
struct Box {
  std::vector<std::uint32_t> sides;    // of more than one position, in the torus's order
  std::vector<std::uint32_t> members;  // by position, first side fastest
};

std::uint32_t endpoint_of(const Cluster& cluster, GpuId gpu) {
  const std::uint32_t node = cluster.node_of(gpu);
  const NodeTemplate& shape = cluster.node(node);
  const std::uint32_t local = cluster.local_index(gpu);
  const std::uint32_t rail = shape.shape().nics == 0 ? local : shape.nearest_nic(local);
  const auto all = cluster.endpoints();
  const auto found = std::lower_bound(all.begin(), all.end(), std::pair{node, rail},
                                      [](const Endpoint& a, const auto& b) { return std::pair{a.node, a.rail} < b; });
  return static_cast<std::uint32_t>(found - all.begin());
}

// Empty when the members do not fill a box of the torus (all combinations of some coordinates along each side).
Box find_box(const Group& group) {
  const Fabric* fabric = group.cluster.fabric();
  const std::span<const std::uint32_t> sides =
      fabric == nullptr ? std::span<const std::uint32_t>() : fabric->torus_sides();
  if (sides.empty() || group.size() < 2) return {};
  std::vector<std::vector<std::uint32_t>> used(sides.size());  // coordinates that occur, per side
  std::vector<std::pair<std::uint32_t, std::uint32_t>> placed;
  for (std::uint32_t member = 0; member < group.members.size(); ++member) {
    const std::uint32_t endpoint = endpoint_of(group.cluster, group.members[member]);
    placed.emplace_back(endpoint, member);
    std::uint32_t rest = endpoint;
    for (std::size_t i = 0; i < sides.size(); ++i, rest /= sides[i - 1]) used[i].push_back(rest % sides[i]);
  }
  Box box;
  std::size_t positions = 1;
  for (std::vector<std::uint32_t>& coordinates : used) {
    std::sort(coordinates.begin(), coordinates.end());
    coordinates.erase(std::unique(coordinates.begin(), coordinates.end()), coordinates.end());
    positions *= coordinates.size();
    if (coordinates.size() > 1) box.sides.push_back(static_cast<std::uint32_t>(coordinates.size()));
  }
  std::sort(placed.begin(), placed.end());
  const bool doubled = std::adjacent_find(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
                         return a.first == b.first;
                       }) != placed.end();
  if (doubled || positions != placed.size()) return {};
  // Endpoint numbers count the first side fastest, so members in endpoint order are in box order.
  for (const auto& [endpoint, member] : placed) box.members.push_back(member);
  return box;
}

bool supports(Collective collective, const Group& group) {
  if (collective != Collective::all_reduce && collective != Collective::all_gather &&
      collective != Collective::reduce_scatter) {
    return false;
  }
  return !find_box(group).members.empty();
}

// Rings along one side through every position of the others, forward with half and backward with half of what each
// member holds at this stage: side - 1 steps of held / side.
void add_rings(const Box& box, std::size_t side, double held, Round& round) {
  const std::uint32_t length = box.sides[side];
  std::uint32_t stride = 1;
  for (std::size_t i = 0; i < side; ++i) stride *= box.sides[i];
  for (const bool forward : {true, false}) {
    for (std::uint32_t base = 0; base < box.members.size(); ++base) {
      if (base / stride % length != 0) continue;
      for (std::uint32_t i = 0; i < length; ++i) {
        const std::uint32_t a = forward ? i : length - i;
        const std::uint32_t b = forward ? i + 1 : length - i - 1;
        round.transfers.push_back(
            {box.members[base + a % length * stride], box.members[base + b % length * stride], held / 2 / length});
      }
    }
  }
  round.repeats = length - 1;
  round.ring = length;
}

// With d sides the data is cut in d parts. Part i is reduce-scattered along side i, then i+1, ... (cyclically), so that
// in each stage the parts keep all sides' links busy: 2 (p-1)/p n / (2d) per link for all-reduce. The all-gather goes
// the same way back. (Bucket algorithm, rotated: Jain and Sabharwal, ICS 2010.) Parts on sides of unequal length form
// rounds of their own, which the pipelined form overlaps.
void add_pass(const Box& box, bool scatter, Schedule& schedule) {
  const std::size_t dimensions = box.sides.size();
  std::vector<double> held(dimensions, 1.0 / static_cast<double>(dimensions));
  std::vector<std::vector<Round>> stages(dimensions);
  for (std::size_t stage = 0; stage < dimensions; ++stage) {
    for (std::size_t part = 0; part < dimensions; ++part) {
      const std::size_t side = (part + stage) % dimensions;
      std::vector<Round>& rounds = stages[stage];
      auto same =
          std::find_if(rounds.begin(), rounds.end(), [&](const Round& round) { return round.ring == box.sides[side]; });
      if (same == rounds.end()) same = rounds.emplace(rounds.end());
      add_rings(box, side, held[part], *same);
      held[part] /= box.sides[side];
    }
  }
  if (!scatter) std::reverse(stages.begin(), stages.end());
  for (std::vector<Round>& stage : stages) {
    for (Round& round : stage) schedule.rounds.push_back(std::move(round));
  }
}

Schedule schedule(Collective collective, const Group& group, const CommunicationModel&) {
  const Box box = find_box(group);
  Schedule result;
  if (collective != Collective::all_gather) add_pass(box, true, result);
  if (collective != Collective::reduce_scatter) add_pass(box, false, result);
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kTorusRing;
const CollectiveAlgorithm kTorusRing{"torus-ring", "rings in both directions along all sides of a torus at once",
                                     supports, schedule};

}  // namespace clustersim
