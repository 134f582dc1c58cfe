// Recursive doubling all-reduce: in round k partners 2^k apart exchange everything; log2 p rounds, for short messages.
#include "models/collectives/powers.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return collective == Collective::all_reduce && group.size() >= 2;
}

Schedule schedule(Collective, const Group& group, const CommunicationModel&) {
  const PowerOfTwoCore core(static_cast<std::uint32_t>(group.size()));
  Schedule result;
  result.pipelined = false;
  core.fold(1.0, result);
  for (std::uint32_t distance = 1; distance < core.size(); distance *= 2) {
    Round& round = result.rounds.emplace_back();
    for (std::uint32_t rank = 0; rank < core.size(); ++rank) {
      round.transfers.push_back({core.member(rank), core.member(rank ^ distance), 1.0});
    }
  }
  core.unfold(1.0, result);
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kRecursiveDoubling;
const CollectiveAlgorithm kRecursiveDoubling{
    "recursive-doubling", "exchange everything with partners 2^k away (all-reduce)", supports, schedule, false};

}  // namespace clustersim
