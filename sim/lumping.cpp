// Colour refinement with a worklist of splitters.
//
// For a splitter class S, every vertex v next to S gets the signature sum of hash(label) over its edges into S, and
// each class is split by signature; untouched members have the empty sum. Classes are numbered in order of creation and
// used as splitters in that order. When a class splits, its largest part keeps the number and only the others are new.
// So a class waiting its turn stays in line, all its parts with it, and of a class already used all parts but the
// largest are used again (Hopcroft). Leaving the largest out is valid for multisets because signatures form a group:
// members of one class agree on the sum into the whole old class, and on the sums into all parts but one, so they agree
// on the difference, which is the sum into the part left out.
//
// Two different multisets have equal sums with probability 2^-128 for random label hashes.
#include "sim/lumping.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/errors.hpp"
#include "sim/random.hpp"

namespace clustersim {
namespace {

struct Signature {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Signature&) const = default;
  auto operator<=>(const Signature&) const = default;
  Signature& operator+=(const Signature& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
};

/// The sum of `count` equal signatures, by binary doubling.
Signature times(Signature one, std::uint64_t count) {
  Signature sum;
  for (; count > 0; count >>= 1U) {
    if ((count & 1U) != 0) sum += one;
    one += Signature(one);
  }
  return sum;
}

/// Neighbours in one array, and the hashes of labels.
class Adjacency {
 public:
  struct Neighbour {
    std::uint32_t vertex;
    std::uint32_t label;  // what the neighbour has towards this vertex
  };

  explicit Adjacency(const ColouredGraph& graph) : first_(graph.vertices() + 1, 0) {
    ensure(graph.edges().size() < std::numeric_limits<std::uint32_t>::max() / 2, "too many edges to lump");
    for (const ColouredGraph::Edge& edge : graph.edges()) {
      ensure(edge.a < graph.vertices() && edge.b < graph.vertices(), "edge {} - {} outside the graph", edge.a, edge.b);
      ++first_[edge.a + 1];
      if (edge.a != edge.b) ++first_[edge.b + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    neighbours_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const ColouredGraph::Edge& edge : graph.edges()) {
      if (edge.a == edge.b) {
        neighbours_[next[edge.a]++] = {edge.a, edge.at_a.value()};
        continue;
      }
      neighbours_[next[edge.a]++] = {edge.b, edge.at_b.value()};
      neighbours_[next[edge.b]++] = {edge.a, edge.at_a.value()};
    }
    hashes_.reserve(graph.labels().size());
    for (const auto& [label, count] : graph.labels()) {
      hashes_.push_back(times({mix64(label, 1), mix64(label, 2)}, count));
    }
  }

  [[nodiscard]] const Neighbour* begin(std::uint32_t vertex) const { return neighbours_.data() + first_[vertex]; }
  [[nodiscard]] const Neighbour* end(std::uint32_t vertex) const { return neighbours_.data() + first_[vertex + 1]; }
  [[nodiscard]] const Signature& hash(std::uint32_t label) const { return hashes_[label]; }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<Neighbour> neighbours_;
  std::vector<Signature> hashes_;  // per label
};

class Refinement {
 public:
  explicit Refinement(const ColouredGraph& graph)
      : adjacency_(graph), vertices_(graph.vertices()), order_(graph.vertices()) {
    split_by_colour(graph.colours());
  }

  Partition run() {
    // Once every vertex is alone nothing can split any more.
    for (std::uint32_t splitter = 0; splitter < classes_.size() && classes_.size() < vertices_.size(); ++splitter) {
      add_signatures(splitter);
      gather_touched();
      for (const std::uint32_t number : touched_classes_) split(number);
      for (const std::uint32_t vertex : touched_) {
        vertices_[vertex].signature = {};
        vertices_[vertex].touched = false;
      }
    }
    return result();
  }

 private:
  static constexpr std::uint32_t kMostVertices = 1U << 30U;

  struct Vertex {
    Signature signature;
    std::uint32_t class_number = 0;
    std::uint32_t position : 30 = 0;  // in order_
    std::uint32_t touched : 1 = 0;
    std::uint32_t alone : 1 = 0;  // the only member of its class, which nothing can split
  };
  /// Members are order_[begin, begin + size); while a splitter is at work, the touched ones stand first.
  struct Class {
    std::uint32_t begin;
    std::uint32_t size;
    std::uint32_t touched;
  };
  struct Signed {
    Signature signature;
    std::uint32_t vertex;
  };

  void split_by_colour(const std::vector<std::uint64_t>& colours) {
    ensure(colours.size() < kMostVertices, "too many vertices to lump");
    std::iota(order_.begin(), order_.end(), 0U);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return colours[a] != colours[b] ? colours[a] < colours[b] : a < b;
    });
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      if (i == 0 || colours[order_[i]] != colours[order_[i - 1]]) classes_.push_back({i, 0, 0});
      ++classes_.back().size;
      vertices_[order_[i]].class_number = static_cast<std::uint32_t>(classes_.size() - 1);
      place(order_[i], i);
    }
    for (const Class& its_class : classes_) vertices_[order_[its_class.begin]].alone = its_class.size == 1;
  }

  void place(std::uint32_t vertex, std::uint32_t position) {
    order_[position] = vertex;
    vertices_[vertex].position = position & (kMostVertices - 1);
  }

  void add_signatures(std::uint32_t splitter) {
    touched_.clear();
    const Class& members = classes_[splitter];
    for (std::uint32_t i = members.begin; i < members.begin + members.size; ++i) {
      const std::uint32_t member = order_[i];
      const auto* const end = adjacency_.end(member);
      // Neighbours are anywhere in memory: ask for all of them before waiting for the first.
      for (const auto* neighbour = adjacency_.begin(member); neighbour != end; ++neighbour) {
        __builtin_prefetch(&vertices_[neighbour->vertex], 1);
      }
      for (const auto* neighbour = adjacency_.begin(member); neighbour != end; ++neighbour) {
        Vertex& vertex = vertices_[neighbour->vertex];
        if (vertex.alone) continue;
        vertex.signature += adjacency_.hash(neighbour->label);
        if (vertex.touched) continue;
        vertex.touched = true;
        touched_.push_back(neighbour->vertex);
      }
    }
  }

  /// Moves the touched members of each class to its front.
  void gather_touched() {
    touched_classes_.clear();
    for (const std::uint32_t vertex : touched_) {
      Class& its_class = classes_[vertices_[vertex].class_number];
      if (its_class.touched == 0) touched_classes_.push_back(vertices_[vertex].class_number);
      const std::uint32_t from = vertices_[vertex].position;
      const std::uint32_t to = its_class.begin + its_class.touched++;
      const std::uint32_t displaced = order_[to];
      place(displaced, from);
      place(vertex, to);
    }
  }

  void split(std::uint32_t number) {
    const Class old = classes_[number];
    classes_[number].touched = 0;
    sort_touched(old);
    // Ends of the parts within order_: runs of equal signature, then the untouched rest.
    part_ends_.clear();
    for (std::uint32_t i = old.begin + 1; i < old.begin + old.touched; ++i) {
      if (vertices_[order_[i]].signature != vertices_[order_[i - 1]].signature) part_ends_.push_back(i);
    }
    part_ends_.push_back(old.begin + old.touched);
    if (old.touched < old.size) part_ends_.push_back(old.begin + old.size);
    if (part_ends_.size() == 1) return;

    std::size_t largest = 0;
    std::uint32_t largest_size = 0;
    for (std::size_t part = 0; part < part_ends_.size(); ++part) {
      const std::uint32_t size = part_ends_[part] - (part == 0 ? old.begin : part_ends_[part - 1]);
      if (size > largest_size) {
        largest = part;
        largest_size = size;
      }
    }
    std::uint32_t begin = old.begin;
    for (std::size_t part = 0; part < part_ends_.size(); ++part) {
      const Class now{begin, part_ends_[part] - begin, 0};
      begin = part_ends_[part];
      if (now.size == 1) vertices_[order_[now.begin]].alone = true;
      if (part == largest) {
        classes_[number] = now;
        continue;
      }
      for (std::uint32_t i = now.begin; i < now.begin + now.size; ++i) {
        vertices_[order_[i]].class_number = static_cast<std::uint32_t>(classes_.size());
      }
      classes_.push_back(now);
    }
  }

  void sort_touched(const Class& old) {
    const std::uint32_t end = old.begin + old.touched;
    const Signature first = vertices_[order_[old.begin]].signature;
    const bool uniform = std::all_of(order_.begin() + old.begin + 1, order_.begin() + end,
                                     [&](std::uint32_t vertex) { return vertices_[vertex].signature == first; });
    if (uniform) return;
    sorted_.clear();
    for (std::uint32_t i = old.begin; i < end; ++i) sorted_.push_back({vertices_[order_[i]].signature, order_[i]});
    std::sort(sorted_.begin(), sorted_.end(),
              [](const Signed& a, const Signed& b) { return a.signature < b.signature; });
    for (std::uint32_t i = 0; i < sorted_.size(); ++i) place(sorted_[i].vertex, old.begin + i);
  }

  [[nodiscard]] Partition result() const {
    constexpr std::uint32_t kUnnumbered = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> number(classes_.size(), kUnnumbered);
    Partition partition;
    partition.class_of.resize(vertices_.size());
    for (std::uint32_t vertex = 0; vertex < vertices_.size(); ++vertex) {
      std::uint32_t& its_number = number[vertices_[vertex].class_number];
      if (its_number == kUnnumbered) {
        its_number = static_cast<std::uint32_t>(partition.representative.size());
        partition.representative.push_back(vertex);
        partition.size.push_back(0);
      }
      partition.class_of[vertex] = its_number;
      ++partition.size[its_number];
    }
    return partition;
  }

  Adjacency adjacency_;
  std::vector<Vertex> vertices_;
  std::vector<std::uint32_t> order_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> touched_classes_;
  std::vector<std::uint32_t> part_ends_;
  std::vector<Signed> sorted_;
};

}  // namespace

std::size_t ColouredGraph::Hash::operator()(const Labelled& labelled) const {
  return mix64(labelled.label, labelled.count);
}

ColouredGraph::Label ColouredGraph::label(std::uint64_t label, std::uint64_t count) {
  const auto [entry, added] = numbers_.try_emplace({label, count}, Label(labels_.size()));
  if (added) labels_.push_back({label, count});
  return entry->second;
}

Partition coarsest_equitable_partition(const ColouredGraph& graph) { return Refinement(graph).run(); }

Partition discrete_partition(std::size_t vertices) {
  Partition partition;
  partition.class_of.resize(vertices);
  std::iota(partition.class_of.begin(), partition.class_of.end(), 0U);
  partition.representative = partition.class_of;
  partition.size.assign(vertices, 1);
  return partition;
}

}  // namespace clustersim
