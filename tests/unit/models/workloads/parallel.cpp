// Rank order, groups and placement.
#include <algorithm>
#include <array>

#include "models/workloads/parallel.hpp"
#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "topologies/cluster.hpp"

using namespace clustersim;

namespace {

std::vector<std::uint32_t> values(std::span<const RankId> ranks) {
  std::vector<std::uint32_t> result;
  for (const RankId rank : ranks) result.push_back(rank.value());
  return result;
}

std::vector<std::vector<std::uint32_t>> groups(const RankGrid& grid, std::vector<Axis> axes) {
  std::vector<std::vector<std::uint32_t>> result;
  grid.for_each_group(axes, [&](std::span<const RankId> members) { result.push_back(values(members)); });
  return result;
}

Cluster nodes_of(std::uint32_t gpus, std::int64_t nodes) {
  NodeShape shape;
  shape.gpus = gpus;
  shape.nics = 1;
  shape.gpu_link = shape.nic_rate = shape.pcie_rate = shape.cpu_link = gigabytes_per_second(100);
  ClusterSpec spec;
  spec.nodes = {{shape, nodes}};
  static const Settings kSettings = check_settings(Value{Value::Table{}, {}}, find_fabric("single-switch").schema, "");
  spec.fabric = &find_fabric("single-switch");
  spec.fabric_settings = &kSettings;
  return Cluster(spec);
}

}  // namespace

TEST_CASE("Megatron-LM's documented example: tensor 2, pipeline 4, 16 GPUs") {
  // parallel_state.py: tensor groups [g0, g1], [g2, g3] ...; data groups [g0, g2], [g1, g3] ...; pipeline groups
  // [g0, g4, g8, g12] ...
  const RankGrid grid({.tensor = 2, .pipeline = 4, .data = 2}, parse_rank_order("tensor-context-expert-data-pipeline"));
  CHECK(grid.ranks() == 16);
  CHECK(groups(grid, {Axis::tensor})[1] == std::vector<std::uint32_t>{2, 3});
  CHECK(groups(grid, {Axis::data})[0] == std::vector<std::uint32_t>{0, 2});
  CHECK(groups(grid, {Axis::data})[1] == std::vector<std::uint32_t>{1, 3});
  CHECK(groups(grid, {Axis::pipeline})[0] == std::vector<std::uint32_t>{0, 4, 8, 12});
  CHECK(groups(grid, {Axis::tensor, Axis::pipeline})[0] == std::vector<std::uint32_t>{0, 1, 4, 5, 8, 9, 12, 13});
}

TEST_CASE("Llama 3's order puts data outermost") {
  const RankGrid grid({.tensor = 2, .pipeline = 2, .data = 2, .context = 2},
                      parse_rank_order("tensor-context-expert-pipeline-data"));
  CHECK(groups(grid, {Axis::context})[0] == std::vector<std::uint32_t>{0, 2});
  CHECK(groups(grid, {Axis::pipeline})[0] == std::vector<std::uint32_t>{0, 4});
  CHECK(groups(grid, {Axis::data})[0] == std::vector<std::uint32_t>{0, 8});
  CHECK(groups(grid, {Axis::context, Axis::data})[0] == std::vector<std::uint32_t>{0, 2, 8, 10});
}

TEST_CASE("Expert groups lie inside the data-parallel ranks") {
  const RankGrid grid({.data = 8, .expert = 4}, parse_rank_order("tensor-context-expert-data-pipeline"));
  CHECK(grid.ranks() == 8);
  CHECK(groups(grid, {Axis::expert})[0] == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(groups(grid, {Axis::data})[0] == std::vector<std::uint32_t>{0, 4});
}

TEST_CASE("Coordinates and moves agree for every order") {
  std::array<std::string, 5> names{"context", "data", "expert", "pipeline", "tensor"};  // sorted: the first permutation
  do {
    const RankGrid grid({.tensor = 2, .pipeline = 3, .data = 4, .context = 2, .expert = 2},
                        parse_rank_order(fmt::format("{}", fmt::join(names, "-"))));
    REQUIRE(grid.ranks() == 48);
    for (std::uint32_t r = 0; r < grid.ranks(); ++r) {
      RankId rebuilt(0U);
      for (const Axis axis : {Axis::tensor, Axis::context, Axis::expert, Axis::data, Axis::pipeline}) {
        rebuilt = grid.moved(rebuilt, axis, grid.coordinate(RankId(r), axis));
      }
      if (rebuilt != RankId(r)) FAIL("rank " << r);
    }
  } while (std::next_permutation(names.begin(), names.end()));
}

TEST_CASE("A rank order that is not a permutation is refused") {
  CHECK_THROWS_AS(parse_rank_order("tensor-data-pipeline"), BadInput);
  CHECK_THROWS_AS(parse_rank_order("tensor-tensor-expert-data-pipeline"), BadInput);
  try {
    (void)parse_rank_order("tensor-contxt-expert-data-pipeline");
    FAIL("accepted");
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()).find("did you mean \"context\"") != std::string::npos);
  }
}

TEST_CASE("Placements: packed, one per node in turn, and packed in seeded random nodes") {
  const Cluster cluster = nodes_of(2, 3);
  const auto gpus = [&](std::uint32_t ranks, Placement placement, std::uint32_t first = 0, std::uint64_t seed = 0) {
    std::vector<std::uint32_t> result;
    for (const GpuId gpu : place_ranks(cluster, ranks, placement, first, seed)) result.push_back(gpu.value());
    return result;
  };
  using List = std::vector<std::uint32_t>;
  CHECK(gpus(4, Placement::packed) == List{0, 1, 2, 3});
  CHECK(gpus(4, Placement::packed, 1) == List{1, 2, 3, 4});
  CHECK(gpus(6, Placement::round_robin) == List{0, 2, 4, 1, 3, 5});
  CHECK(gpus(4, Placement::round_robin) == List{0, 2, 1, 3});  // on as few nodes as hold the ranks
  const List random = gpus(6, Placement::random, 0, 7);
  CHECK(random == gpus(6, Placement::random, 0, 7));
  List sorted = random;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == List{0, 1, 2, 3, 4, 5});
  bool differs = false;
  for (std::uint64_t seed = 0; seed < 8; ++seed) differs = differs || gpus(6, Placement::random, 0, seed) != random;
  CHECK(differs);
  CHECK_THROWS_AS(gpus(7, Placement::packed), BrokenContract);
}
