// Parallel layouts: which rank does what, which GPU it sits on, and who talks to whom.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/programs/program.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {

/// Degrees of parallelism. `data` counts the replicas that share a global batch; expert groups lie inside the data
/// dimension (as in Megatron-Core), so `expert` divides `data` and does not multiply the number of ranks.
struct ParallelLayout {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t virtual_stages = 1;
  [[nodiscard]] std::int64_t ranks() const { return tensor * pipeline * data * context; }
};

enum class Axis : std::uint8_t { tensor, context, expert, data, pipeline };
inline constexpr std::size_t kAxes = 5;
/// A permutation of the axes, innermost (fastest) first.
using RankOrder = std::array<Axis, kAxes>;
/// "tensor-context-expert-data-pipeline" and its permutations; throws BadInput.
RankOrder parse_rank_order(std::string_view text);

/// Numbers ranks by mixed radix over the axes; along the data axis there are data / expert positions.
class RankGrid {
 public:
  RankGrid(const ParallelLayout& layout, const RankOrder& order);
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t extent(Axis axis) const { return extent_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::uint32_t coordinate(RankId rank, Axis axis) const;
  /// The rank with one coordinate replaced.
  [[nodiscard]] RankId moved(RankId rank, Axis axis, std::uint32_t to) const;
  /// All ranks that agree outside the given axes, once per group, members in rank order of the given axes (first axis
  /// fastest). Calls `visit(members)`.
  template <class Visit>
  void for_each_group(std::span<const Axis> axes, Visit visit) const;

 private:
  std::array<std::uint32_t, kAxes> extent_{};
  std::array<std::uint32_t, kAxes> stride_{};
  std::uint32_t ranks_ = 1;
};

template <class Visit>
void RankGrid::for_each_group(std::span<const Axis> axes, Visit visit) const {
  std::vector<std::uint32_t> offsets{0};
  for (const Axis axis : axes) {
    const std::size_t inner = offsets.size();
    for (std::uint32_t i = 1; i < extent(axis); ++i) {
      for (std::size_t k = 0; k < inner; ++k) {
        offsets.push_back(offsets[k] + i * stride_[static_cast<std::size_t>(axis)]);
      }
    }
  }
  std::vector<RankId> members(offsets.size());
  for (std::uint32_t first = 0; first < ranks_; ++first) {
    bool leads = true;
    for (const Axis axis : axes) leads = leads && coordinate(RankId(first), axis) == 0;
    if (!leads) continue;
    for (std::size_t i = 0; i < offsets.size(); ++i) members[i] = RankId(first + offsets[i]);
    visit(std::span<const RankId>(members));
  }
}

enum class Placement : std::uint8_t {
  packed,       // ranks fill the nodes in order
  round_robin,  // one rank per node in turn, as Slurm's cyclic distribution
  random,       // packed into nodes handed out in random order
};
std::string_view name(Placement placement);

/// The GPU of each rank, from `first_gpu` (packed) or from its node (the others) onwards. The cluster must have room.
std::vector<GpuId> place_ranks(const Cluster& cluster, std::uint32_t ranks, Placement placement,
                               std::uint32_t first_gpu, std::uint64_t seed);

}  // namespace clustersim
