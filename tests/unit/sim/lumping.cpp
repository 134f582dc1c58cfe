// Lumping: graphs whose coarsest equitable partition is known, and random graphs against a plain refinement.
#include "sim/lumping.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

/// Rounds of refinement with exact multisets until nothing changes, numbered by smallest member.
std::vector<std::uint32_t> plain_refinement(const ColouredGraph& graph) {
  const std::size_t n = graph.vertices();
  std::vector<std::uint32_t> number(n, 0);
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> neighbours(n);
  for (const ColouredGraph::Edge& edge : graph.edges()) {
    neighbours[edge.a].emplace_back(edge.at_a.value(), edge.b);
    if (edge.a != edge.b) neighbours[edge.b].emplace_back(edge.at_b.value(), edge.a);
  }
  std::size_t classes = 0;
  for (;;) {
    using Key = std::tuple<std::uint64_t, std::uint32_t, std::vector<std::pair<std::uint64_t, std::uint32_t>>>;
    std::map<Key, std::uint32_t> keys;
    std::vector<std::uint32_t> next(n);
    for (std::size_t v = 0; v < n; ++v) {
      std::vector<std::pair<std::uint64_t, std::uint32_t>> around;
      for (const auto& [label, u] : neighbours[v]) around.emplace_back(label, number[u]);
      std::sort(around.begin(), around.end());
      next[v] = keys.try_emplace({graph.colours()[v], number[v], around}, keys.size()).first->second;
    }
    number = next;
    if (keys.size() == classes) return number;
    classes = keys.size();
  }
}

ColouredGraph cycle(std::uint32_t n) {
  ColouredGraph graph(n);
  for (std::uint32_t v = 0; v < n; ++v) graph.add_edge(v, (v + 1) % n, 0);
  return graph;
}

void check_consistent(const ColouredGraph& graph, const Partition& partition) {
  REQUIRE(partition.class_of.size() == graph.vertices());
  std::vector<std::uint32_t> size(partition.classes(), 0);
  std::uint32_t seen = 0;
  for (std::uint32_t v = 0; v < graph.vertices(); ++v) {
    const std::uint32_t c = partition.class_of[v];
    REQUIRE(c <= seen);  // numbered by smallest member
    if (c == seen) {
      REQUIRE(partition.representative[c] == v);
      ++seen;
    }
    ++size[c];
  }
  REQUIRE(seen == partition.classes());
  REQUIRE(size == partition.size);
}

}  // namespace

TEST_CASE("a cycle is one class; one marked vertex folds it in half") {
  ColouredGraph graph = cycle(10);
  CHECK(coarsest_equitable_partition(graph).classes() == 1);
  graph.set_colour(3, 7);
  const Partition partition = coarsest_equitable_partition(graph);
  CHECK(partition.classes() == 6);  // distances 0..5 from the marked vertex
  CHECK(partition.class_of[2] == partition.class_of[4]);
  CHECK(partition.class_of[8] != partition.class_of[3]);
  check_consistent(graph, partition);
}

TEST_CASE("a path of n vertices has ceil(n / 2) classes") {
  for (std::uint32_t n = 1; n < 30; ++n) {
    ColouredGraph graph(n);
    for (std::uint32_t v = 0; v + 1 < n; ++v) graph.add_edge(v, v + 1, 0);
    const Partition partition = coarsest_equitable_partition(graph);
    CHECK(partition.classes() == (n + 1) / 2);
    for (std::uint32_t v = 0; v < n; ++v) CHECK(partition.class_of[v] == std::min(v, n - 1 - v));
  }
}

TEST_CASE("a torus is one class; a broken link on an 8 x 8 torus leaves mirror images") {
  const auto torus = [](std::uint32_t k, bool broken) {
    ColouredGraph graph(k * k);
    for (std::uint32_t x = 0; x < k; ++x) {
      for (std::uint32_t y = 0; y < k; ++y) {
        if (!(broken && x == 0 && y == 0)) graph.add_edge(x * k + y, x * k + (y + 1) % k, 0);
        graph.add_edge(x * k + y, ((x + 1) % k) * k + y, 0);
      }
    }
    return graph;
  };
  CHECK(coarsest_equitable_partition(torus(8, false)).classes() == 1);
  // Mirrors: y <-> 1 - y and x <-> -x, so 4 columns x 5 rows of classes.
  CHECK(coarsest_equitable_partition(torus(8, true)).classes() == 20);
}

TEST_CASE("a star has a centre and leaves; labels and colours tell leaves apart") {
  ColouredGraph graph(7);
  for (std::uint32_t leaf = 1; leaf < 7; ++leaf) graph.add_edge(0, leaf, leaf <= 2 ? 100 : 200);
  graph.set_colour(6, 1);
  const Partition partition = coarsest_equitable_partition(graph);
  CHECK(partition.class_of == std::vector<std::uint32_t>{0, 1, 1, 2, 2, 2, 3});
  CHECK(partition.representative == std::vector<std::uint32_t>{0, 1, 3, 6});
  CHECK(partition.size == std::vector<std::uint32_t>{1, 2, 3, 1});
}

TEST_CASE("parallel edges and self loops count") {
  ColouredGraph graph(6);
  graph.add_edge(0, 1, 0);
  graph.add_edge(2, 3, 0);
  graph.add_edge(2, 3, 0);
  graph.add_edge(4, 4, 0);
  // 0 and 1 have one neighbour of their own kind, and so has 4 (itself); 2 and 3 have two; 5 has none.
  CHECK(coarsest_equitable_partition(graph).class_of == std::vector<std::uint32_t>{0, 0, 1, 1, 0, 2});
}

TEST_CASE("a double cover is not told apart: two triangles and a hexagon") {
  ColouredGraph graph(12);
  for (std::uint32_t v = 0; v < 3; ++v) {
    graph.add_edge(v, (v + 1) % 3, 0);
    graph.add_edge(3 + v, 3 + (v + 1) % 3, 0);
  }
  for (std::uint32_t v = 0; v < 6; ++v) graph.add_edge(6 + v, 6 + (v + 1) % 6, 0);
  CHECK(coarsest_equitable_partition(graph).classes() == 1);
}

TEST_CASE("nothing, one vertex, and the discrete partition") {
  CHECK(coarsest_equitable_partition(ColouredGraph(0)).classes() == 0);
  CHECK(coarsest_equitable_partition(ColouredGraph(1)).classes() == 1);
  const Partition partition = discrete_partition(4);
  CHECK(partition.class_of == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(partition.representative == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(partition.size == std::vector<std::uint32_t>{1, 1, 1, 1});
  ColouredGraph graph(2);
  graph.add_edge(0, 2, 0);
  CHECK_THROWS_AS(coarsest_equitable_partition(graph), BrokenContract);
}

TEST_CASE("random graphs agree with a plain refinement") {
  RandomStream random(1, "lumping");
  std::size_t partly_lumped = 0;
  for (int i = 0; i < 600; ++i) {
    const auto n = static_cast<std::uint32_t>(1 + random.below(60));
    ColouredGraph graph(n);
    const std::uint64_t colours = 1 + random.below(3);
    const std::uint64_t labels = 1 + random.below(3);
    for (std::uint32_t v = 0; v < n; ++v) {
      if (random.below(4) == 0) graph.set_colour(v, random.below(colours) << 60U);
    }
    for (std::uint64_t edges = random.below(2 * n); edges > 0; --edges) {
      graph.add_edge(static_cast<std::uint32_t>(random.below(n)), static_cast<std::uint32_t>(random.below(n)),
                     random.below(labels) * 1'000'000'007);
    }
    const Partition partition = coarsest_equitable_partition(graph);
    INFO("instance " << i);
    check_consistent(graph, partition);
    REQUIRE(partition.class_of == plain_refinement(graph));
    partly_lumped += partition.classes() > 2 && partition.classes() < n ? 1 : 0;
  }
  CHECK(partly_lumped > 300);
}

TEST_CASE("a graph of blocks gives the partition of the graph of members") {
  RandomStream random(3, "lumping quotients");
  std::size_t smaller = 0;
  for (int i = 0; i < 300; ++i) {
    // Members in an equitable partition that is finer than need be: some vertices get colours of their own.
    const auto block = static_cast<std::uint32_t>(1 + random.below(5));
    const auto copies = static_cast<std::uint32_t>(1 + random.below(6));
    const std::uint32_t n = block * copies;
    ColouredGraph graph(n);
    for (std::uint64_t edges = random.below(3 * block); edges > 0; --edges) {
      const auto a = static_cast<std::uint32_t>(random.below(block));
      const auto b = static_cast<std::uint32_t>(random.below(block));
      const std::uint64_t label = random.below(2);
      const std::uint64_t shift = random.below(copies);
      if (a == b && 2 * shift % copies == 0) continue;  // would be a self loop, or an edge counted twice
      for (std::uint32_t copy = 0; copy < copies; ++copy) {
        graph.add_edge(copy * block + a, static_cast<std::uint32_t>((copy + shift) % copies) * block + b, label);
      }
    }
    ColouredGraph finer = graph;
    for (std::uint32_t v = 0; v < n; ++v) finer.set_colour(v, v % block);
    const Partition blocks = coarsest_equitable_partition(finer);
    ColouredGraph quotient(blocks.classes());
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint64_t> ends;  // per two blocks and label
    for (const ColouredGraph::Edge& edge : graph.edges()) {
      const auto [a, b] = std::minmax(blocks.class_of[edge.a], blocks.class_of[edge.b]);
      ends[{a, b, graph.labels()[edge.at_a.index()].label}] += a == b ? 2 : 1;
    }
    for (const auto& [key, count] : ends) {
      const auto [a, b, label] = key;
      quotient.add_edge(a, b, quotient.label(label, count / blocks.size[a]),
                        quotient.label(label, count / blocks.size[b]));
    }
    const Partition expected = coarsest_equitable_partition(graph);
    const Partition found = coarsest_equitable_partition(quotient);
    INFO("instance " << i);
    REQUIRE(found.classes() == expected.classes());
    for (std::uint32_t v = 0; v < n; ++v) REQUIRE(found.class_of[blocks.class_of[v]] == expected.class_of[v]);
    smaller += expected.classes() < blocks.classes() ? 1 : 0;
  }
  CHECK(smaller > 50);
}

TEST_CASE("random regular structures: copies of a random block, lightly damaged") {
  RandomStream random(2, "lumping blocks");
  for (int i = 0; i < 100; ++i) {
    const auto block = static_cast<std::uint32_t>(2 + random.below(8));
    const auto copies = static_cast<std::uint32_t>(2 + random.below(8));
    ColouredGraph graph(block * copies + 1);
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> inside;
    for (std::uint64_t edges = 1 + random.below(2 * block); edges > 0; --edges) {
      inside.emplace_back(random.below(block), random.below(block), random.below(2));
    }
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      for (const auto& [a, b, label] : inside) graph.add_edge(copy * block + a, copy * block + b, label);
      graph.add_edge(copy * block, block * copies, 5);  // a hub
    }
    const Partition healthy = coarsest_equitable_partition(graph);
    REQUIRE(healthy.classes() <= block + 1);
    REQUIRE(healthy.class_of == plain_refinement(graph));
    graph.set_colour(static_cast<std::uint32_t>(random.below(block * copies)), 1);
    const Partition damaged = coarsest_equitable_partition(graph);
    check_consistent(graph, damaged);
    REQUIRE(damaged.classes() <= 2 * block + 1);  // one copy differs from all the others
    REQUIRE(damaged.class_of == plain_refinement(graph));
  }
}
