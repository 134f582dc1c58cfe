// The sharing solver: cost of one activity event by the size and shape of what is shared.
#include "sim/fluid.hpp"

#include <benchmark/benchmark.h>

#include <vector>

#include "sim/random.hpp"

namespace {

using namespace clustersim;

struct Nobody : FluidListener {
  void on_activity_done(ActivityId, std::uint64_t) override {}
};

void report(benchmark::State& state, std::uint64_t events) {
  const auto total = static_cast<double>(events);
  state.counters["events"] = total / static_cast<double>(state.iterations());
  state.counters["us_per_event"] =
      benchmark::Counter(total * 1e-6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Every host sends to every other, all amounts different: one component, every end re-solves it.
void all_to_all(benchmark::State& state) {
  const auto hosts = static_cast<std::size_t>(state.range(0));
  std::uint64_t events = 0;
  for (auto _ : state) {
    Simulation<Picoseconds> simulation;
    Fluid fluid(simulation);
    Nobody listener;
    RandomStream random(1, "amounts");
    for (std::size_t i = 0; i < 2 * hosts; ++i) fluid.add_resource(50e9);
    for (std::size_t from = 0; from < hosts; ++from) {
      for (std::size_t to = 0; to < hosts; ++to) {
        if (from == to) continue;
        const Use uses[] = {{ResourceId(from), 1}, {ResourceId(hosts + to), 1}};
        fluid.start({.amount = 1e6 * (1 + random.uniform()), .uses = uses}, listener, 0);
      }
    }
    simulation.run();
    events += fluid.activity_events();
  }
  report(state, events);
}
BENCHMARK(all_to_all)->Arg(8)->Arg(32)->Arg(128)->Unit(benchmark::kMillisecond);

/// Many separate pairs: each event re-solves one activity.
struct Chain : FluidListener {
  explicit Chain(Fluid& shared) : fluid(shared) {}
  void on_activity_done(ActivityId, std::uint64_t payload) override {
    if (left == 0) return;
    --left;
    begin(payload);
  }
  void begin(std::uint64_t pair) {
    const Use uses[] = {{ResourceId(static_cast<std::size_t>(2 * pair)), 1},
                        {ResourceId(static_cast<std::size_t>(2 * pair + 1)), 1}};
    fluid.start({.amount = 1e6 + static_cast<double>(pair), .uses = uses}, *this, pair);
  }
  Fluid& fluid;
  std::uint64_t left = 0;
};

void separate_pairs(benchmark::State& state) {
  const auto pairs = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t events = 0;
  for (auto _ : state) {
    Simulation<Picoseconds> simulation;
    Fluid fluid(simulation);
    Chain chain(fluid);
    chain.left = 200'000;
    for (std::uint64_t i = 0; i < 2 * pairs; ++i) fluid.add_resource(50e9);
    for (std::uint64_t i = 0; i < pairs; ++i) chain.begin(i);
    simulation.run();
    events += fluid.activity_events();
  }
  report(state, events);
}
BENCHMARK(separate_pairs)->Arg(1)->Arg(1000)->Arg(100'000)->Unit(benchmark::kMillisecond);

/// n activities on one resource, ending one by one.
void one_resource(benchmark::State& state) {
  const auto activities = static_cast<int>(state.range(0));
  std::uint64_t events = 0;
  for (auto _ : state) {
    Simulation<Picoseconds> simulation;
    Fluid fluid(simulation);
    Nobody listener;
    RandomStream random(1, "amounts");
    const Use uses[] = {{fluid.add_resource(50e9), 1}};
    for (int i = 0; i < activities; ++i)
      fluid.start({.amount = 1e6 * (1 + random.uniform()), .uses = uses}, listener, 0);
    simulation.run();
    events += fluid.activity_events();
  }
  report(state, events);
}
BENCHMARK(one_resource)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
