// Broadcast of long messages: binomial scatter of p parts, then a ring all-gather (van de Geijn).
#include <algorithm>
#include <bit>

#include "models/collectives/collective.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return collective == Collective::broadcast && group.size() >= 2;
}

// A member that holds the parts of members [first, first + width) sends the upper half of them to the member there.
void add_scatter(std::uint32_t members, Schedule& schedule) {
  for (std::uint32_t width = std::bit_ceil(members); width > 1; width /= 2) {
    Round& round = schedule.rounds.emplace_back();
    for (std::uint32_t first = 0; first + width / 2 < members; first += width) {
      const std::uint32_t to = first + width / 2;
      const std::uint32_t parts = std::min(width / 2, members - to);
      round.transfers.push_back({first, to, static_cast<double>(parts) / members});
    }
  }
}

Schedule schedule(Collective, const Group& group, const CommunicationModel&) {
  const auto members = static_cast<std::uint32_t>(group.size());
  Schedule result;
  result.pipelined = false;
  add_scatter(members, result);
  Round& ring = result.rounds.emplace_back();
  for (std::uint32_t member = 0; member < members; ++member) {
    ring.transfers.push_back({member, (member + 1) % members, 1.0 / members});
  }
  ring.repeats = members - 1;
  ring.ring = members;
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kScatterAllGather;
const CollectiveAlgorithm kScatterAllGather{"scatter-allgather", "binomial scatter, then ring all-gather (broadcast)",
                                            supports, schedule, false};

}  // namespace clustersim
