// The earliest of many times that keep changing: a tournament in which each round compares sixteen at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace clustersim {

/// Changes are written to the leaves at once and carried upwards together when somebody asks, so many changes between
/// two questions cost little more than one.
class Earliest {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Adds one entry, at kNever.
  void grow() {
    const std::size_t entries = ++entries_;
    std::size_t needed = (entries + kFan - 1) / kFan * kFan;
    for (std::size_t round = 0;; ++round) {
      if (round == rounds_.size()) {
        rounds_.emplace_back();
        changed_.emplace_back();
      }
      if (rounds_[round].size() < needed) {
        rounds_[round].resize(needed, kNever);
        // A new round starts from what is below it.
        if (round > 0) lift_all(round - 1);
      }
      if (needed == kFan) break;
      needed = (needed / kFan + kFan - 1) / kFan * kFan;
    }
  }

  void set(std::size_t entry, std::int64_t time) {
    if (rounds_[0][entry] == time) return;
    rounds_[0][entry] = time;
    mark(0, entry / kFan);
  }

  /// kNever when there is none.
  std::int64_t first() {
    if (entries_ == 0) return kNever;
    lift();
    return *std::min_element(rounds_.back().begin(), rounds_.back().end());
  }

  /// Calls visit(entry) for every entry whose time is not after `until`, in order of entries. `visit` may set times.
  template <class Visit>
  void for_each_until(std::int64_t until, const Visit& visit) {
    if (first() > until) return;
    descend(rounds_.size() - 1, 0, until, visit);
  }

 private:
  static constexpr std::size_t kFan = 16;

  struct Changed {
    std::vector<std::uint32_t> groups;
    std::vector<std::uint8_t> listed;  // per group
  };

  void mark(std::size_t round, std::size_t group) {
    if (round + 1 == rounds_.size()) return;
    Changed& changed = changed_[round];
    if (changed.listed.size() <= group) changed.listed.resize(rounds_[round].size() / kFan, 0);
    if (changed.listed[group] != 0) return;
    changed.listed[group] = 1;
    changed.groups.push_back(static_cast<std::uint32_t>(group));
  }

  [[nodiscard]] std::int64_t best(std::size_t round, std::size_t group) const {
    const std::int64_t* const times = rounds_[round].data() + group * kFan;
    std::int64_t result = times[0];
    for (std::size_t i = 1; i < kFan; ++i) result = std::min(result, times[i]);
    return result;
  }

  void lift() {
    for (std::size_t round = 0; round + 1 < rounds_.size(); ++round) {
      Changed& changed = changed_[round];
      for (const std::uint32_t group : changed.groups) {
        changed.listed[group] = 0;
        const std::int64_t time = best(round, group);
        if (rounds_[round + 1][group] == time) continue;
        rounds_[round + 1][group] = time;
        mark(round + 1, group / kFan);
      }
      changed.groups.clear();
    }
  }

  void lift_all(std::size_t round) {
    for (std::size_t group = 0; group < rounds_[round].size() / kFan; ++group) {
      rounds_[round + 1][group] = best(round, group);
      mark(round + 1, group / kFan);
    }
  }

  template <class Visit>
  void descend(std::size_t round, std::size_t group, std::int64_t until, const Visit& visit) {
    for (std::size_t i = group * kFan; i < (group + 1) * kFan; ++i) {
      if (rounds_[round][i] > until) continue;
      if (round == 0) {
        visit(i);
      } else {
        descend(round - 1, i, until, visit);
      }
    }
  }

  std::size_t entries_ = 0;
  std::vector<std::vector<std::int64_t>> rounds_;  // [0]: the times; [r + 1]: the best of each group of [r]
  std::vector<Changed> changed_;                   // per round: groups whose best may have changed
};

}  // namespace clustersim
