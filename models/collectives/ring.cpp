// Ring algorithms: bandwidth-optimal, one step per member and pass; several rings side by side, one per NIC.
#include "models/collectives/rounds.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return group.size() >= 2 && collective != Collective::all_to_all && collective != Collective::send_receive;
}

// Broadcast and reduce run down one chain: the ring without the edge into the root. Each edge carries everything once,
// chunks stream through, and the last member has its first chunk after p-1 steps.
Schedule chains(Collective collective, const GroupLayout& layout, std::int64_t members) {
  const double bytes_per_byte = 1.0 / layout.channels();
  const Round ring = ring_round(layout, bytes_per_byte, 1);
  const auto length = static_cast<std::size_t>(members);
  Schedule schedule;
  schedule.shared_channels = true;
  schedule.rounds.resize(length - 1);
  for (std::uint32_t channel = 0; channel < layout.channels(); ++channel) {
    const std::size_t begin = channel * length;
    // The root is member 0; broadcast starts behind it, reduce ends at it.
    std::size_t root = 0;
    while (ring.transfers[begin + root].from != 0) ++root;
    const std::size_t skip = collective == Collective::broadcast ? 0 : 1;
    for (std::size_t step = 0; step + 1 < length; ++step) {
      schedule.rounds[step].transfers.push_back(ring.transfers[begin + (root + skip + step) % length]);
    }
  }
  return schedule;
}

Schedule schedule(Collective collective, const Group& group, const CommunicationModel& model) {
  const GroupLayout layout(group, model);
  if (collective == Collective::broadcast || collective == Collective::reduce) {
    return chains(collective, layout, group.size());
  }
  const std::int64_t passes = collective == Collective::all_reduce ? 2 : 1;
  const auto members = static_cast<double>(group.size());
  Schedule result;
  result.shared_channels = true;
  result.rounds.push_back(ring_round(layout, 1.0 / (members * layout.channels()), passes * (group.size() - 1)));
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kRing;
const CollectiveAlgorithm kRing{"ring", "rings over all members, one per NIC; broadcast and reduce as chains", supports,
                                schedule};

}  // namespace clustersim
