// Equal things are simulated once: the coarsest equitable partition of a coloured graph with labelled edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/ids.hpp"

namespace clustersim {

/// Vertices with an initial colour and undirected edges with a 64-bit label. Parallel edges count separately.
/// A vertex may stand for a block of vertices that are alike: an edge then says how many edges of its label each member
/// at one end has to the other end's block.
class ColouredGraph {
 public:
  /// Numbers a label and a count of edges with it, so that equal pairs have equal numbers.
  using Label = Id<struct LabelTag>;
  struct Labelled {
    std::uint64_t label;
    std::uint64_t count;
    bool operator==(const Labelled&) const = default;
  };

  explicit ColouredGraph(std::size_t vertices) : colour_(vertices, 0) {}
  void set_colour(std::uint32_t vertex, std::uint64_t colour) { colour_[vertex] = colour; }
  Label label(std::uint64_t label, std::uint64_t count = 1);
  void add_edge(std::uint32_t a, std::uint32_t b, std::uint64_t label_of_both) {
    const Label number = label(label_of_both);
    edges_.push_back({a, b, number, number});
  }
  /// What a member of `a` has towards `b`, and a member of `b` towards `a`.
  void add_edge(std::uint32_t a, std::uint32_t b, Label at_a, Label at_b) { edges_.push_back({a, b, at_a, at_b}); }
  void reserve_edges(std::size_t count) { edges_.reserve(count); }

  struct Edge {
    std::uint32_t a;
    std::uint32_t b;
    Label at_a;
    Label at_b;
  };
  [[nodiscard]] std::size_t vertices() const { return colour_.size(); }
  [[nodiscard]] const std::vector<std::uint64_t>& colours() const { return colour_; }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }
  [[nodiscard]] const std::vector<Labelled>& labels() const { return labels_; }

 private:
  struct Hash {
    std::size_t operator()(const Labelled& labelled) const;
  };
  std::vector<std::uint64_t> colour_;
  std::vector<Edge> edges_;
  std::vector<Labelled> labels_;
  std::unordered_map<Labelled, Label, Hash> numbers_;  // looked up only, never walked
};

/// class_of[v] is the class of vertex v. Classes are numbered by their smallest member, which is the representative.
struct Partition {
  std::vector<std::uint32_t> class_of;
  std::vector<std::uint32_t> representative;  // per class: smallest vertex
  std::vector<std::uint32_t> size;            // per class: number of vertices
  [[nodiscard]] std::size_t classes() const { return representative.size(); }
};

/// The coarsest partition that refines the initial colours and in which any two vertices of a class have the same
/// multiset of (label, neighbour class); a self loop makes a vertex its own neighbour once, with the label of its first
/// end. Worklist of splitters, all but the largest part re-queued (Paige and Tarjan, SIAM J. Comput. 16, 1987; Grohe et
/// al., ESA 2014): O(edges x log vertices). Multisets are compared by 128-bit additive hashes.
Partition coarsest_equitable_partition(const ColouredGraph& graph);

/// Every vertex on its own: what "lumping off" means.
Partition discrete_partition(std::size_t vertices);

}  // namespace clustersim
