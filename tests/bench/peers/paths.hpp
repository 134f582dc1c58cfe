// Which links a flow crosses: a three-level fat tree and a torus with the routes that SimGrid 3.32 takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace clustersim::peers {

/// Directed links, each a number below links().
using Path = std::vector<std::uint32_t>;

class Paths {
 public:
  virtual ~Paths() = default;
  [[nodiscard]] virtual std::size_t links() const = 0;
  /// Replaces `path`. The two hosts differ.
  virtual void find(std::uint32_t source, std::uint32_t destination, Path& path) const = 0;
};

/// "fat-tree" or "torus". Throws BadInput for another name or a number of hosts that does not fit.
std::unique_ptr<Paths> make_paths(std::string_view topology, std::uint32_t hosts);

/// m of the fat tree of radix 2m: m hosts at an edge switch, m edge and m aggregation switches in each of the
/// hosts / m^2 pods (at most 2m), m^2 core switches, so no link is oversubscribed. Throws BadInput.
std::uint32_t fat_tree_half_radix(std::uint32_t hosts);

/// The dimension along which neighbours have consecutive numbers comes first. Throws BadInput.
std::span<const std::uint32_t> torus_dimensions(std::uint32_t hosts);

}  // namespace clustersim::peers
