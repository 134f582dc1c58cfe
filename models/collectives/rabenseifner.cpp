// Rabenseifner's all-reduce: reduce-scatter by recursive halving, all-gather by recursive doubling.
#include "models/collectives/powers.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return collective == Collective::all_reduce && group.size() >= 2;
}

void add_exchange(const PowerOfTwoCore& core, std::uint32_t distance, double bytes_per_byte, Schedule& schedule) {
  Round& round = schedule.rounds.emplace_back();
  for (std::uint32_t rank = 0; rank < core.size(); ++rank) {
    round.transfers.push_back({core.member(rank), core.member(rank ^ distance), bytes_per_byte});
  }
}

// Halving starts with the farthest partner and half the data: n/2 + n/4 + ... = (p-1)/p n in each half.
Schedule schedule(Collective, const Group& group, const CommunicationModel&) {
  const PowerOfTwoCore core(static_cast<std::uint32_t>(group.size()));
  Schedule result;
  result.pipelined = false;
  core.fold(1.0, result);
  double share = 0.5;
  for (std::uint32_t distance = core.size() / 2; distance >= 1; distance /= 2, share /= 2) {
    add_exchange(core, distance, share, result);
  }
  for (std::uint32_t distance = 1; distance < core.size(); distance *= 2) {
    share *= 2;
    add_exchange(core, distance, share, result);
  }
  core.unfold(1.0, result);
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kRabenseifner;
const CollectiveAlgorithm kRabenseifner{"rabenseifner", "recursive halving, then doubling (all-reduce)", supports,
                                        schedule, false};

}  // namespace clustersim
