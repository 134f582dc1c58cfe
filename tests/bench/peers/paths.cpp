// The numbering of links and the routing rules; SimGrid's results for the same flows confirm them.
#include "tests/bench/peers/paths.hpp"

#include "sim/errors.hpp"

namespace clustersim::peers {
namespace {

/// Links come in six blocks of one per host: host to edge, edge to aggregation, aggregation to core, and back down.
/// The way up depends on the destination alone: port destination mod m at the edge, (destination / m) mod m above.
class FatTree final : public Paths {
 public:
  explicit FatTree(std::uint32_t hosts) : hosts_(hosts), m_(fat_tree_half_radix(hosts)) {}

  [[nodiscard]] std::size_t links() const override { return std::size_t{6} * hosts_; }

  void find(std::uint32_t source, std::uint32_t destination, Path& path) const override {
    const std::uint32_t aggregation = destination % m_;  // the one of the pod that is crossed
    const std::uint32_t core = destination / m_ % m_;    // among the m above that aggregation switch
    path.assign(1, source);
    if (source / m_ != destination / m_) {
      path.push_back(hosts_ + source / m_ * m_ + aggregation);
      const std::uint32_t source_pod = source / (m_ * m_);
      const std::uint32_t destination_pod = destination / (m_ * m_);
      if (source_pod != destination_pod) {
        path.push_back(2 * hosts_ + (source_pod * m_ + aggregation) * m_ + core);
        path.push_back(3 * hosts_ + (destination_pod * m_ + aggregation) * m_ + core);
      }
      path.push_back(4 * hosts_ + destination / m_ * m_ + aggregation);
    }
    path.push_back(5 * hosts_ + destination);
  }

 private:
  std::uint32_t hosts_;
  std::uint32_t m_;
};

/// A host is a node of the torus and owns, per dimension, the cable to its next neighbour: link 2c ascends, 2c + 1
/// descends. Dimension by dimension, the shorter way round; of two equal ways the ascending one, except towards
/// coordinate 0.
class Torus final : public Paths {
 public:
  explicit Torus(std::uint32_t hosts) : hosts_(hosts), dimensions_(torus_dimensions(hosts)) {}

  [[nodiscard]] std::size_t links() const override { return std::size_t{2} * hosts_ * dimensions_.size(); }

  void find(std::uint32_t source, std::uint32_t destination, Path& path) const override {
    const auto cables = static_cast<std::uint32_t>(dimensions_.size());
    path.clear();
    std::uint32_t node = source;
    std::uint32_t stride = 1;
    for (std::uint32_t dimension = 0; dimension < cables; ++dimension) {
      const std::uint32_t size = dimensions_[dimension];
      const std::uint32_t to = destination / stride % size;
      std::uint32_t at = node / stride % size;
      const std::uint32_t ascent = (to + size - at) % size;
      const bool ascends = 2 * ascent < size || (2 * ascent == size && to != 0);
      while (at != to) {
        const std::uint32_t beside = ascends ? (at + 1) % size : (at + size - 1) % size;
        const std::uint32_t next = node - at * stride + beside * stride;
        const std::uint32_t owner = ascends ? node : next;
        path.push_back(2 * (owner * cables + dimension) + (ascends ? 0 : 1));
        node = next;
        at = beside;
      }
      stride *= size;
    }
  }

 private:
  std::uint32_t hosts_;
  std::span<const std::uint32_t> dimensions_;
};

}  // namespace

std::unique_ptr<Paths> make_paths(std::string_view topology, std::uint32_t hosts) {
  if (topology == "fat-tree") return std::make_unique<FatTree>(hosts);
  if (topology == "torus") return std::make_unique<Torus>(hosts);
  bad_input("unknown topology \"{}\"; there are: fat-tree, torus", topology);
}

std::uint32_t fat_tree_half_radix(std::uint32_t hosts) {
  std::uint32_t m = 2;
  while (m < 64 && 2 * m * m * m < hosts) m *= 2;
  const std::uint32_t pods = hosts / (m * m);
  if (pods * m * m != hosts || pods < 2 || pods > 2 * m) {
    bad_input("a fat tree of {} hosts; what fits are 16, 64, 128, 256, 512, 1024, ..., 65536", hosts);
  }
  return m;
}

std::span<const std::uint32_t> torus_dimensions(std::uint32_t hosts) {
  static constexpr std::uint32_t kDimensions[][3] = {{4, 4, 1},  {4, 4, 4},    {8, 4, 4},    {8, 8, 4},
                                                     {16, 8, 8}, {16, 16, 16}, {32, 16, 16}, {64, 32, 32}};
  for (const auto& sizes : kDimensions) {
    if (sizes[0] * sizes[1] * sizes[2] == hosts) return std::span(sizes, sizes[2] > 1 ? 3 : 2);
  }
  bad_input("a torus of {} hosts; there are 16, 64, 128, 256, 1024, 4096, 8192 and 65536", hosts);
}

}  // namespace clustersim::peers
