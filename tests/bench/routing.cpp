// Routes per second on a fat tree and a torus, and the time to lay a large cluster.
#include <benchmark/benchmark.h>

#include "sim/random.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {
namespace {

NodeShape dgx_like() {
  NodeShape shape;
  shape.name = "bench-node";
  shape.gpu_link = gigabytes_per_second(450);
  shape.nic_rate = gigabits_per_second(400);
  shape.pcie_switches = 4;
  shape.pcie_rate = gigabytes_per_second(64);
  shape.cpu_link = gigabytes_per_second(60);
  return shape;
}

Cluster make_cluster(std::string_view topology, std::int64_t nodes, RoutingPolicy policy) {
  ClusterSpec spec;
  spec.nodes = {{dgx_like(), nodes}};
  spec.fabric = &find_fabric(topology);
  spec.link_latency = Picoseconds(600'000);
  spec.routing = {.policy = policy, .seed = 1, .queue_pairs = 4};
  return Cluster(spec);
}

void routes(benchmark::State& state, std::string_view topology, RoutingPolicy policy) {
  const Cluster cluster = make_cluster(topology, 512, policy);
  Route route;
  std::uint64_t draw = 0;
  for (auto _ : state) {
    route.clear();
    const auto from = static_cast<std::uint32_t>(mix64(++draw) % cluster.gpus());
    const auto to = static_cast<std::uint32_t>((from + 8 + mix64(++draw) % (cluster.gpus() - 16)) % cluster.gpus());
    cluster.route(GpuId(from), GpuId(to), route);
    benchmark::DoNotOptimize(route.shares.data());
  }
  state.SetItemsProcessed(state.iterations());
}

void lay(benchmark::State& state) {
  for (auto _ : state) {
    const Cluster cluster = make_cluster("fat-tree", state.range(0), RoutingPolicy::spread);
    benchmark::DoNotOptimize(cluster.network().links().data());
    state.counters["gpus"] = cluster.gpus();
    state.counters["links"] = static_cast<double>(cluster.network().links().size());
  }
}

BENCHMARK_CAPTURE(routes, fat_tree_spread, "fat-tree", RoutingPolicy::spread);
BENCHMARK_CAPTURE(routes, fat_tree_deterministic, "fat-tree", RoutingPolicy::deterministic);
BENCHMARK_CAPTURE(routes, fat_tree_ecmp_4, "fat-tree", RoutingPolicy::ecmp);
BENCHMARK_CAPTURE(routes, torus_deterministic, "torus", RoutingPolicy::deterministic);
BENCHMARK_CAPTURE(routes, torus_spread, "torus", RoutingPolicy::spread);
BENCHMARK(lay)->Arg(512)->Arg(8192)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clustersim

BENCHMARK_MAIN();
