// Parallel layouts: rank order, placement on GPUs, pipeline neighbours.
#include "models/workloads/parallel.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/errors.hpp"
#include "sim/random.hpp"

namespace clustersim {
namespace {

constexpr std::array<std::string_view, kAxes> kAxisNames{"tensor", "context", "expert", "data", "pipeline"};

/// The nodes from that of `first_gpu` on, as few as hold the ranks.
std::vector<std::uint32_t> nodes_for(const Cluster& cluster, std::uint32_t ranks, std::uint32_t first_gpu) {
  std::vector<std::uint32_t> nodes;
  std::uint32_t room = 0;
  for (std::uint32_t node = cluster.node_of(GpuId(first_gpu)); node < cluster.nodes() && room < ranks; ++node) {
    nodes.push_back(node);
    room += cluster.node(node).shape().gpus;
  }
  ensure(room >= ranks, "{} ranks do not fit on {} GPUs from GPU {}", ranks, cluster.gpus(), first_gpu);
  return nodes;
}

std::vector<GpuId> place_packed(const Cluster& cluster, const std::vector<std::uint32_t>& nodes, std::uint32_t ranks) {
  std::vector<GpuId> gpus;
  for (const std::uint32_t node : nodes) {
    for (std::uint32_t local = 0; local < cluster.node(node).shape().gpus && gpus.size() < ranks; ++local) {
      gpus.push_back(cluster.gpu(node, local));
    }
  }
  return gpus;
}

std::vector<GpuId> place_round_robin(const Cluster& cluster, const std::vector<std::uint32_t>& nodes,
                                     std::uint32_t ranks) {
  std::vector<GpuId> gpus;
  for (std::uint32_t local = 0; gpus.size() < ranks; ++local) {
    for (const std::uint32_t node : nodes) {
      if (local < cluster.node(node).shape().gpus && gpus.size() < ranks) gpus.push_back(cluster.gpu(node, local));
    }
  }
  return gpus;
}

}  // namespace

RankOrder parse_rank_order(std::string_view text) {
  RankOrder order{};
  std::size_t found = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t dash = std::min(rest.find('-'), rest.size());
    const std::string_view word = rest.substr(0, dash);
    rest = rest.substr(std::min(dash + 1, rest.size()));
    const auto axis = std::find(kAxisNames.begin(), kAxisNames.end(), word);
    if (axis == kAxisNames.end()) {
      const std::vector<std::string> names(kAxisNames.begin(), kAxisNames.end());
      bad_input("\"{}\": \"{}\" is not one of tensor, context, expert, data, pipeline{}", text, word,
                did_you_mean(word, names));
    }
    const auto value = static_cast<Axis>(axis - kAxisNames.begin());
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(found);
    if (std::find(order.begin(), end, value) != end) bad_input("\"{}\" names {} twice", text, word);
    order[found++] = value;
  }
  if (found != kAxes) {
    bad_input("\"{}\" names {} of the 5 axes; write all, innermost first: \"tensor-context-expert-data-pipeline\"",
              text, found);
  }
  return order;
}

RankGrid::RankGrid(const ParallelLayout& layout, const RankOrder& order) {
  ensure(layout.data % layout.expert == 0, "expert = {} does not divide data = {}", layout.expert, layout.data);
  const std::array<std::int64_t, kAxes> extents{layout.tensor, layout.context, layout.expert,
                                                layout.data / layout.expert, layout.pipeline};
  for (const Axis axis : order) {
    const auto i = static_cast<std::size_t>(axis);
    extent_[i] = static_cast<std::uint32_t>(extents[i]);
    stride_[i] = ranks_;
    ranks_ *= extent_[i];
  }
}

std::uint32_t RankGrid::coordinate(RankId rank, Axis axis) const {
  const auto i = static_cast<std::size_t>(axis);
  return rank.value() / stride_[i] % extent_[i];
}

RankId RankGrid::moved(RankId rank, Axis axis, std::uint32_t to) const {
  const std::uint32_t stride = stride_[static_cast<std::size_t>(axis)];
  return RankId(rank.value() - coordinate(rank, axis) * stride + to * stride);
}

std::string_view name(Placement placement) {
  constexpr std::array<std::string_view, 3> kNames{"packed", "round-robin", "random"};
  return kNames[static_cast<std::size_t>(placement)];
}

std::vector<GpuId> place_ranks(const Cluster& cluster, std::uint32_t ranks, Placement placement,
                               std::uint32_t first_gpu, std::uint64_t seed) {
  if (placement == Placement::packed) {
    ensure(std::uint64_t{first_gpu} + ranks <= cluster.gpus(), "{} ranks do not fit on {} GPUs from GPU {}", ranks,
           cluster.gpus(), first_gpu);
    std::vector<GpuId> gpus(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) gpus[rank] = GpuId(first_gpu + rank);
    return gpus;
  }
  if (placement == Placement::round_robin) {
    return place_round_robin(cluster, nodes_for(cluster, ranks, first_gpu), ranks);
  }
  std::vector<std::uint32_t> nodes(cluster.nodes() - cluster.node_of(GpuId(first_gpu)));
  std::iota(nodes.begin(), nodes.end(), cluster.node_of(GpuId(first_gpu)));
  RandomStream random(seed, "placement");
  // Fisher-Yates by hand: std::shuffle differs between standard libraries.
  for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.below(i)]);
  std::vector<GpuId> gpus = place_packed(cluster, nodes, ranks);
  ensure(gpus.size() == ranks, "{} ranks do not fit on {} GPUs from GPU {}", ranks, cluster.gpus(), first_gpu);
  return gpus;
}

}  // namespace clustersim
