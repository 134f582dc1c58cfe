// Point to point: member 0 sends to member 1; in larger groups every member sends to the next, as nccl-tests' sendrecv.
#include "models/collectives/collective.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return collective == Collective::send_receive && group.size() >= 2;
}

Schedule schedule(Collective, const Group& group, const CommunicationModel&) {
  const auto members = static_cast<std::uint32_t>(group.size());
  Schedule result;
  Round& round = result.rounds.emplace_back();
  if (members == 2) {
    round.transfers.push_back({0, 1, 1.0});
    return result;
  }
  for (std::uint32_t member = 0; member < members; ++member) {
    round.transfers.push_back({member, (member + 1) % members, 1.0});
  }
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kPointToPoint;
const CollectiveAlgorithm kPointToPoint{"point-to-point", "one message from each sender to its receiver", supports,
                                        schedule};

}  // namespace clustersim
