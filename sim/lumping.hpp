// Equal things are simulated once: the coarsest equitable partition of a coloured graph with labelled edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clustersim {

/// Vertices with an initial colour and undirected edges with a 64-bit label. Parallel edges count separately.
class ColouredGraph {
 public:
  explicit ColouredGraph(std::size_t vertices) : colour_(vertices, 0) {}
  void set_colour(std::uint32_t vertex, std::uint64_t colour) { colour_[vertex] = colour; }
  void add_edge(std::uint32_t a, std::uint32_t b, std::uint64_t label) { edges_.push_back({a, b, label}); }
  void reserve_edges(std::size_t count) { edges_.reserve(count); }

  struct Edge {
    std::uint32_t a;
    std::uint32_t b;
    std::uint64_t label;
  };
  [[nodiscard]] std::size_t vertices() const { return colour_.size(); }
  [[nodiscard]] const std::vector<std::uint64_t>& colours() const { return colour_; }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }

 private:
  std::vector<std::uint64_t> colour_;
  std::vector<Edge> edges_;
};

/// class_of[v] is the class of vertex v. Classes are numbered by their smallest member, which is the representative.
struct Partition {
  std::vector<std::uint32_t> class_of;
  std::vector<std::uint32_t> representative;  // per class: smallest vertex
  std::vector<std::uint32_t> size;            // per class: number of vertices
  [[nodiscard]] std::size_t classes() const { return representative.size(); }
};

/// The coarsest partition that refines the initial colours and in which any two vertices of a class have the same
/// multiset of (label, neighbour class); a self loop makes a vertex its own neighbour once. Worklist of splitters, all
/// but the largest part re-queued (Paige and Tarjan, SIAM J. Comput. 16, 1987; Grohe et al., ESA 2014): O(edges x log
/// vertices). Multisets are compared by 128-bit additive hashes.
Partition coarsest_equitable_partition(const ColouredGraph& graph);

/// Every vertex on its own: what "lumping off" means.
Partition discrete_partition(std::size_t vertices);

}  // namespace clustersim
