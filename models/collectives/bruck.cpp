// Bruck's all-to-all: ceil(log2 p) rounds in which each member forwards half of its blocks, for short messages.
#include "models/collectives/collective.hpp"

namespace clustersim {
namespace {

bool supports(Collective collective, const Group& group) {
  return collective == Collective::all_to_all && group.size() >= 2;
}

// In round k the blocks whose distance to their owner has bit k set go 2^k members on (Bruck et al., IEEE TPDS 8,
// 1997).
Schedule schedule(Collective, const Group& group, const CommunicationModel&) {
  const auto members = static_cast<std::uint32_t>(group.size());
  Schedule result;
  result.pipelined = false;
  for (std::uint32_t bit = 1; bit < members; bit *= 2) {
    std::uint32_t blocks = 0;
    for (std::uint32_t distance = 0; distance < members; ++distance) blocks += (distance & bit) != 0 ? 1U : 0U;
    Round& round = result.rounds.emplace_back();
    for (std::uint32_t from = 0; from < members; ++from) {
      round.transfers.push_back({from, (from + bit) % members, static_cast<double>(blocks) / members});
    }
  }
  return result;
}

}  // namespace

extern const CollectiveAlgorithm kBruck;
const CollectiveAlgorithm kBruck{"bruck", "log2 p rounds of half the blocks each (all-to-all)", supports, schedule,
                                 false};

}  // namespace clustersim
