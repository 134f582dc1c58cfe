// Sums coefficients by resource: an open-addressing table that keeps the order of first appearance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/collectives/collective.hpp"
#include "sim/random.hpp"

namespace clustersim {

/// A communicator touches few resources, and many of its transfers the same ones: sums are found in O(1), and sorting
/// is left to whoever needs it, over distinct resources only.
class UseAccumulator {
 public:
  void add(std::uint32_t resource, double coefficient) {
    if (2 * (uses_.size() + 1) > table_.size()) grow();
    std::size_t slot = place(resource);
    while (table_[slot] != kFree && uses_[table_[slot]].resource != resource) slot = (slot + 1) & (table_.size() - 1);
    if (table_[slot] == kFree) {
      table_[slot] = static_cast<std::uint32_t>(uses_.size());
      uses_.push_back({resource, 0.0});
    }
    uses_[table_[slot]].coefficient += coefficient;
  }
  [[nodiscard]] std::span<const PlanUse> uses() const { return uses_; }
  void clear() {
    for (const PlanUse& use : uses_) {
      std::size_t slot = place(use.resource);
      while (table_[slot] != kFree && uses_[table_[slot]].resource != use.resource) {
        slot = (slot + 1) & (table_.size() - 1);
      }
      cleared_.push_back(static_cast<std::uint32_t>(slot));
    }
    for (const std::uint32_t slot : cleared_) table_[slot] = kFree;
    cleared_.clear();
    uses_.clear();
  }

 private:
  static constexpr std::uint32_t kFree = ~0U;
  [[nodiscard]] std::size_t place(std::uint32_t resource) const { return mix64(resource) & (table_.size() - 1); }
  void grow() {
    table_.assign(table_.empty() ? 32 : 2 * table_.size(), kFree);
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      std::size_t slot = place(uses_[i].resource);
      while (table_[slot] != kFree) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = static_cast<std::uint32_t>(i);
    }
  }
  std::vector<PlanUse> uses_;
  std::vector<std::uint32_t> table_;
  std::vector<std::uint32_t> cleared_;
};

}  // namespace clustersim
