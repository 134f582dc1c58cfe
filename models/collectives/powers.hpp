// Algorithms for powers of two on groups of any size: the members beyond the largest power of two are folded in.
#pragma once

#include <bit>
#include <cstdint>

#include "models/collectives/collective.hpp"

namespace clustersim {

/// With p = 2^k + r members, each of the first 2r members at an odd place hands its data to its left neighbour before
/// the rounds and gets the result back after them (Thakur, Rabenseifner, Gropp, IJHPCA 19, 2005, section 4.5).
class PowerOfTwoCore {
 public:
  explicit PowerOfTwoCore(std::uint32_t members) : size_(std::bit_floor(members)), extra_(members - size_) {}
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t member(std::uint32_t rank) const { return rank < extra_ ? 2 * rank : rank + extra_; }

  void fold(double bytes_per_byte, Schedule& schedule) const { add(bytes_per_byte, true, schedule); }
  void unfold(double bytes_per_byte, Schedule& schedule) const { add(bytes_per_byte, false, schedule); }

 private:
  void add(double bytes_per_byte, bool inward, Schedule& schedule) const {
    if (extra_ == 0) return;
    Round& round = schedule.rounds.emplace_back();
    for (std::uint32_t i = 0; i < extra_; ++i) {
      const std::uint32_t outside = 2 * i + 1;
      round.transfers.push_back({inward ? outside : outside - 1, inward ? outside - 1 : outside, bytes_per_byte});
    }
  }
  std::uint32_t size_;
  std::uint32_t extra_;
};

}  // namespace clustersim
