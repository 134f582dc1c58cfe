// Numbers things in the order in which they are first seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clustersim {

/// A sparse set (Briggs and Torczon, ACM LOPLAS 2, 1993): forgetting all that was seen costs nothing.
class FirstSeen {
 public:
  explicit FirstSeen(std::size_t universe = 0) : number_(universe, 0) {}
  /// Things 0 .. universe - 1 may be seen from now on.
  void grow(std::size_t universe) {
    if (universe > number_.size()) number_.resize(universe, 0);
  }
  std::uint32_t number(std::uint32_t thing) {
    std::uint32_t& number = number_[thing];
    if (number < seen_.size() && seen_[number] == thing) return number;
    number = static_cast<std::uint32_t>(seen_.size());
    seen_.push_back(thing);
    return number;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& seen() const { return seen_; }
  void clear() { seen_.clear(); }

 private:
  std::vector<std::uint32_t> number_;  // per thing; holds where seen_ agrees
  std::vector<std::uint32_t> seen_;
};

}  // namespace clustersim
