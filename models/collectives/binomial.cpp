// Binomial trees: broadcast and reduce in ceil(log2 p) rounds of everything; all-reduce as reduce, then broadcast.
#include <algorithm>

#include "models/collectives/collective.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return group.size() >= 2 && (collective == Collective::broadcast || collective == Collective::reduce ||
                               collective == Collective::all_reduce);
}

// In round k of a broadcast from member 0, members 0 .. 2^k - 1 have the data and send it 2^k further.
void add_broadcast(std::uint32_t members, std::vector<Round>& rounds) {
  for (std::uint32_t distance = 1; distance < members; distance *= 2) {
    Round& round = rounds.emplace_back();
    for (std::uint32_t from = 0; from < distance && from + distance < members; ++from) {
      round.transfers.push_back({from, from + distance, 1.0});
    }
  }
}

// A reduce is a broadcast run backwards.
void add_reduce(std::uint32_t members, std::vector<Round>& rounds) {
  std::vector<Round> forward;
  add_broadcast(members, forward);
  std::reverse(forward.begin(), forward.end());
  for (Round& round : forward) {
    for (Transfer& transfer : round.transfers) std::swap(transfer.from, transfer.to);
    rounds.push_back(std::move(round));
  }
}

Schedule schedule(Collective collective, const Group& group, const CommunicationModel&) {
  const auto members = static_cast<std::uint32_t>(group.size());
  Schedule result;
  result.pipelined = false;
  if (collective != Collective::broadcast) add_reduce(members, result.rounds);
  if (collective != Collective::reduce) add_broadcast(members, result.rounds);
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kBinomial;
const CollectiveAlgorithm kBinomial{"binomial", "binomial trees (broadcast, reduce, all-reduce)", supports, schedule,
                                    false};

}  // namespace clustersim
