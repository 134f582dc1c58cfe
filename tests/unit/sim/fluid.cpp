// Sharing: rates against the plain reference, completion times against hand calculation, conservation, re-entrancy.
#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "sim/random.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

constexpr double kGiga = 1e9;

struct Listener : FluidListener {
  explicit Listener(Simulation<Picoseconds>& simulation) : simulation_(simulation) {}
  void on_activity_done(ActivityId id, std::uint64_t payload) override {
    done.emplace_back(payload, simulation_.now().count());
    if (action) action(id, payload);
  }
  Simulation<Picoseconds>& simulation_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> done;  // payload, time
  std::function<void(ActivityId, std::uint64_t)> action;
};
using Done = std::vector<std::pair<std::uint64_t, std::int64_t>>;

struct Bench {
  Simulation<Picoseconds> simulation;
  Fluid fluid{simulation};
  Listener listener{simulation};
  ActivityId start(double amount, std::vector<Use> uses, std::uint64_t payload = 0, Picoseconds latency = {},
                   double cap = HUGE_VAL, double weight = 1) {
    return fluid.start({amount, latency, cap, weight, uses}, listener, payload);
  }
};

struct Timer : EventHandler {
  std::function<void()> action;
  void on_event(std::uint64_t) override { action(); }
};

constexpr std::int64_t kSecond = 1'000'000'000'000;

}  // namespace

TEST_CASE("one activity takes its amount over the capacity, to the tick") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(50 * kGiga);
  bench.start(64 * kGiga, {{link, 1}}, 7, Picoseconds(2'000'000));  // 2 us + 64/50 s
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{7, 2'000'000 + 1'280'000'000'000}});
  CHECK(bench.fluid.carried(link) == 64 * kGiga);
  CHECK(bench.fluid.active() == 0);
}

TEST_CASE("completion is rounded up, never early") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(3e12);  // 3 units per picosecond
  bench.start(10, {{link, 1}}, 1);                         // 3.33 ps
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{1, 4}});
  bench.start(1e-6, {{link, 1}}, 2);  // far below a tick: still takes one, so time goes on
  bench.simulation.run();
  CHECK(bench.listener.done.back() == std::pair<std::uint64_t, std::int64_t>{2, 5});
  CHECK(bench.fluid.carried(link) == 10 + 1e-6);
}

TEST_CASE("a departure speeds up those who stay") {
  // Two flows on 10 units/s: 10 and 30 units. Both at 5 until t = 2 s; then the second alone: 20 left at 10 -> t = 4 s.
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(10);
  const ActivityId a = bench.start(10, {{link, 1}}, 1);
  const ActivityId b = bench.start(30, {{link, 1}}, 2);
  CHECK(bench.fluid.rate(a) == 5);
  CHECK(bench.fluid.allocated(link) == 10);
  bench.simulation.run_until(Picoseconds(1 * kSecond));
  CHECK(bench.fluid.remaining(b) == Approx(25).epsilon(1e-15));
  CHECK(bench.fluid.carried(link) == Approx(10).epsilon(1e-15));
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{1, 2 * kSecond}, {2, 4 * kSecond}});
  CHECK(bench.fluid.carried(link) == 40);
  CHECK(bench.fluid.activity_events() == 4);
}

TEST_CASE("no capacity is used during latency") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(10);
  const ActivityId a = bench.start(10, {{link, 1}}, 1);
  const ActivityId b = bench.start(10, {{link, 1}}, 2, Picoseconds(kSecond));
  CHECK(bench.fluid.rate(a) == 10);
  CHECK(bench.fluid.rate(b) == 0);
  CHECK(bench.fluid.active() == 2);
  CHECK(bench.fluid.stalled() == 0);
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{1, kSecond}, {2, 2 * kSecond}});
}

TEST_CASE("an empty activity finishes after its latency, without a resource, never inside start()") {
  Bench bench;
  bench.start(0, {}, 1);
  CHECK(bench.listener.done.empty());
  bench.start(0, {}, 2, Picoseconds(5));
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{1, 0}, {2, 5}});
}

TEST_CASE("caps, weights and coefficients") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(100);
  SECTION("a cap leaves the rest to others") {
    const ActivityId a = bench.start(1, {{link, 1}}, 0, {}, 20);
    const ActivityId b = bench.start(1, {{link, 1}});
    CHECK(bench.fluid.rate(a) == 20);
    CHECK(bench.fluid.rate(b) == 80);
  }
  SECTION("weights") {
    const ActivityId a = bench.start(1, {{link, 1}}, 0, {}, HUGE_VAL, 3);
    const ActivityId b = bench.start(1, {{link, 1}});
    CHECK(bench.fluid.rate(a) == 75);
    CHECK(bench.fluid.rate(b) == 25);
  }
  SECTION("coefficients: equal rates, 0.25 r + r = 100") {
    const ActivityId a = bench.start(1, {{link, 0.25}});
    const ActivityId b = bench.start(1, {{link, 1}});
    CHECK(bench.fluid.rate(a) == 80);
    CHECK(bench.fluid.rate(b) == 80);
  }
  SECTION("a resource named twice adds up") {
    const ActivityId a = bench.start(1, {{link, 1}, {link, 3}});
    CHECK(bench.fluid.rate(a) == 25);
  }
  SECTION("a cap alone") {
    const ActivityId a = bench.start(10, {}, 0, {}, 4);
    CHECK(bench.fluid.rate(a) == 4);
    bench.simulation.run();
    CHECK(bench.listener.done == Done{{0, 5 * kSecond / 2}});
  }
  bench.fluid.check_invariants();
}

TEST_CASE("capacity changes: stall, resume, cancel") {
  Bench bench;
  Timer timer;
  const ResourceId link = bench.fluid.add_resource(10);
  const ActivityId a = bench.start(10, {{link, 1}}, 1);
  bench.simulation.run_until(Picoseconds(kSecond / 2));
  bench.fluid.set_capacity(link, 0);
  CHECK(bench.fluid.rate(a) == 0);
  CHECK(bench.fluid.stalled() == 1);
  bench.simulation.run();  // nothing is scheduled: the run ends with the activity waiting
  CHECK(bench.listener.done.empty());
  CHECK(bench.fluid.remaining(a) == Approx(5).epsilon(1e-15));
  bench.simulation.run_until(Picoseconds(kSecond));
  bench.fluid.set_capacity(link, 5);
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{1, 2 * kSecond}});
  CHECK(bench.fluid.carried(link) == 10);

  const ActivityId b = bench.start(100, {{link, 2}}, 2);
  bench.simulation.run_until(Picoseconds(4 * kSecond));
  CHECK(bench.fluid.cancel(b));
  CHECK_FALSE(bench.fluid.cancel(b));
  CHECK_THROWS_AS(bench.fluid.rate(b), BrokenContract);
  CHECK(bench.fluid.carried(link) == Approx(10 + 10).epsilon(1e-14));  // rate 2.5 for 2 s at coefficient 2
  CHECK(bench.listener.done.size() == 1);
}

TEST_CASE("completions of one tick are told in start order, across components") {
  Bench bench;
  std::vector<ResourceId> links;
  for (int i = 0; i < 8; ++i) links.push_back(bench.fluid.add_resource(10));
  // Started in one order, scheduled in another: the even ones are solved again later.
  for (std::uint64_t i = 0; i < 8; ++i) bench.start(10, {{links[7 - i], 1}}, i);
  bench.simulation.run_until(Picoseconds(kSecond / 2));
  for (std::size_t i = 0; i < 8; i += 2) {
    bench.fluid.set_capacity(links[i], 20);
    (void)bench.fluid.allocated(links[i]);
    bench.fluid.set_capacity(links[i], 10);
  }
  bench.simulation.run();
  Done expected;
  for (std::uint64_t i = 0; i < 8; ++i) expected.emplace_back(i, kSecond);
  CHECK(bench.listener.done == expected);
}

TEST_CASE("a listener may start, cancel and change capacity") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(10);
  ActivityId victim;
  bench.listener.action = [&](ActivityId, std::uint64_t payload) {
    if (payload != 1) return;
    CHECK(bench.fluid.cancel(victim));  // due in this very tick, not told yet
    bench.fluid.set_capacity(link, 5);
    const ActivityId next = bench.start(5, {{link, 1}}, 3);
    CHECK(bench.fluid.rate(next) == 5);  // asks for a solve in the middle of the instant
    bench.start(0, {}, 4);
  };
  bench.start(5, {{link, 1}}, 1);
  victim = bench.start(5, {{link, 1}}, 2);
  bench.simulation.run();
  CHECK(bench.listener.done == Done{{1, kSecond}, {4, kSecond}, {3, 2 * kSecond}});
  CHECK(bench.fluid.carried(link) == 15);
}

TEST_CASE("a chain of activities started by their predecessors keeps exact time") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(50 * kGiga);
  int left = 1000;
  bench.listener.action = [&](ActivityId, std::uint64_t) {
    if (--left > 0) bench.start(1e6, {{link, 1}});
  };
  bench.start(1e6, {{link, 1}});
  bench.simulation.run();
  CHECK(bench.simulation.now() == Picoseconds(1000LL * 20'000'000));  // 1e6 / 50e9 s = 20 us each
  CHECK(bench.fluid.carried(link) == 1e9);
}

TEST_CASE("only what a change can reach is set anew") {
  // A chain: activity i uses links i and i + 1, whose capacities grow, so levels grow along the chain. A change at one
  // end of the order reaches only what is above it.
  Bench bench;
  std::vector<ResourceId> links;
  for (int i = 0; i < 50; ++i) links.push_back(bench.fluid.add_resource(10 * (i + 1)));
  for (std::size_t i = 0; i + 1 < 50; ++i) bench.start(1e6, {{links[i], 1}, {links[i + 1], 1}});
  const ActivityId last = bench.start(1e6, {{links[49], 1}});
  (void)bench.fluid.allocated(links[0]);
  std::uint64_t before = bench.fluid.levelled();
  CHECK(bench.fluid.cancel(last));
  (void)bench.fluid.allocated(links[0]);
  CHECK(bench.fluid.levelled() - before <= 2);
  bench.fluid.check_invariants();
  before = bench.fluid.levelled();
  bench.fluid.set_capacity(links[0], 9);
  (void)bench.fluid.allocated(links[0]);
  CHECK(bench.fluid.levelled() - before >= 20);
  CHECK(bench.fluid.levelled() - before <= 60);
  bench.fluid.check_invariants();
}

TEST_CASE("components that did not change are not touched") {
  Bench bench;
  const ResourceId a = bench.fluid.add_resource(10);
  const ResourceId b = bench.fluid.add_resource(10);
  bench.start(1000, {{a, 1}});
  bench.start(1000, {{b, 1}});
  (void)bench.fluid.allocated(a);
  const std::uint64_t before = bench.fluid.solves();
  bench.start(1000, {{a, 1}});
  bench.start(1000, {{a, 1}});
  (void)bench.fluid.allocated(a);
  CHECK(bench.fluid.solves() == before + 1);  // two starts, brought up to date together
}

TEST_CASE("bad activities are bugs of the caller") {
  Bench bench;
  const ResourceId link = bench.fluid.add_resource(10);
  CHECK_THROWS_AS(bench.fluid.add_resource(-1), BrokenContract);
  CHECK_THROWS_AS(bench.fluid.add_resource(HUGE_VAL), BrokenContract);
  CHECK_THROWS_AS(bench.fluid.set_capacity(link, NAN), BrokenContract);
  CHECK_THROWS_AS(bench.start(-1, {{link, 1}}), BrokenContract);
  CHECK_THROWS_AS(bench.start(HUGE_VAL, {{link, 1}}), BrokenContract);
  CHECK_THROWS_AS(bench.start(1, {{link, 0}}), BrokenContract);
  CHECK_THROWS_AS(bench.start(1, {{ResourceId(9U), 1}}), BrokenContract);
  CHECK_THROWS_AS(bench.start(1, {}), BrokenContract);
  CHECK_THROWS_AS(bench.start(1, {{link, 1}}, 0, {}, 0), BrokenContract);
  CHECK_THROWS_AS(bench.start(1, {{link, 1}}, 0, {}, 1, 0), BrokenContract);
  CHECK(bench.fluid.active() == 0);
  bench.simulation.run();
  CHECK(bench.listener.done.empty());
}

namespace {

/// Random starts, cancels and capacity changes in random amounts of time, with an independent account of it all.
class RandomSharing {
 public:
  RandomSharing(std::uint64_t seed, std::uint64_t most_resources) : random_(seed, "random sharing") {
    const std::uint64_t resources = 1 + random_.below(most_resources);
    for (std::uint64_t i = 0; i < resources; ++i) bench_.fluid.add_resource(random_capacity());
    zero_capacities_ = random_.below(4) == 0;
    bench_.listener.action = [this](ActivityId, std::uint64_t payload) {
      Known& known = known_.at(payload);
      for (const Use& use : known.uses) delivered_[use.resource.value()] += use.coefficient * known.amount;
      known_.erase(payload);
    };
  }

  void fill_up(int activities) {
    for (int i = 0; i < activities; ++i) start();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      for (std::uint64_t changes = 1 + random_.below(4); changes > 0; --changes) change();
      compare_rates();
      bench_.fluid.check_invariants();
      bench_.simulation.run_until(bench_.simulation.now() +
                                  Picoseconds(static_cast<std::int64_t>(random_.below(kSecond))));
    }
    compare_rates();
    finish();
  }

 private:
  struct Known {
    ActivityId id;
    double amount;
    std::vector<Use> uses;
    double cap;
    double weight;
    Picoseconds begins;
  };

  double random_capacity() { return zero_capacities_ && random_.below(8) == 0 ? 0 : 1 + 99 * random_.uniform(); }

  void change() {
    const std::uint64_t choice = random_.below(10);
    if (choice < 6) {
      start();
    } else if (choice < 8 && !known_.empty()) {
      auto victim = known_.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random_.below(known_.size())));
      const double moved = victim->second.amount - bench_.fluid.remaining(victim->second.id);
      for (const Use& use : victim->second.uses) delivered_[use.resource.value()] += use.coefficient * moved;
      REQUIRE(bench_.fluid.cancel(victim->second.id));
      known_.erase(victim);
    } else {
      const auto resource = ResourceId(static_cast<std::size_t>(random_.below(bench_.fluid.resources())));
      bench_.fluid.set_capacity(resource, random_capacity());
    }
  }

  void start() {
    Known known;
    known.amount = random_.below(20) == 0 ? 0 : std::exp(2.5 * random_.normal());
    for (std::uint64_t uses = random_.below(5); uses > 0; --uses) {
      const auto resource = ResourceId(static_cast<std::size_t>(random_.below(bench_.fluid.resources())));
      known.uses.push_back({resource, random_.below(2) == 0 ? 1.0 : 0.05 + random_.uniform()});
    }
    known.cap = known.uses.empty() || random_.below(3) == 0 ? std::exp(2 * random_.normal()) : HUGE_VAL;
    known.weight = random_.below(2) == 0 ? 1.0 : 0.1 + 5 * random_.uniform();
    const Picoseconds latency(random_.below(3) == 0 ? static_cast<std::int64_t>(random_.below(kSecond)) : 0);
    known.begins = bench_.simulation.now() + latency;
    known.id = bench_.start(known.amount, known.uses, next_, latency, known.cap, known.weight);
    known_.emplace(next_++, known);
  }

  void compare_rates() {
    MaxMinProblem problem;
    std::vector<const Known*> running;
    for (std::size_t r = 0; r < bench_.fluid.resources(); ++r) {
      problem.capacity.push_back(bench_.fluid.capacity(ResourceId(r)));
    }
    for (const auto& [payload, known] : known_) {
      if (known.amount == 0 || known.begins > bench_.simulation.now()) {
        REQUIRE(bench_.fluid.rate(known.id) == 0);
        continue;
      }
      running.push_back(&known);
      problem.uses.push_back(known.uses);
      problem.weight.push_back(known.weight);
      problem.rate_cap.push_back(known.cap);
    }
    const std::vector<double> expected = max_min_rates(problem);
    for (std::size_t i = 0; i < running.size(); ++i) {
      const double rate = bench_.fluid.rate(running[i]->id);
      REQUIRE(std::abs(rate - expected[i]) <= 1e-9 * expected[i]);
    }
    instances_ += running.empty() ? 0 : 1;
  }

  /// Everything started is delivered in the end, and every resource carried exactly its part.
  void finish() {
    for (std::size_t r = 0; r < bench_.fluid.resources(); ++r) bench_.fluid.set_capacity(ResourceId(r), 1000);
    bench_.simulation.run();
    REQUIRE(known_.empty());
    REQUIRE(bench_.fluid.active() == 0);
    for (std::size_t r = 0; r < bench_.fluid.resources(); ++r) {
      const double carried = bench_.fluid.carried(ResourceId(r));
      const double expected = delivered_[static_cast<std::uint32_t>(r)];
      REQUIRE(carried == Approx(expected).epsilon(1e-9));
    }
  }

  RandomStream random_;
  Bench bench_;
  bool zero_capacities_ = false;
  std::map<std::uint64_t, Known> known_;
  std::map<std::uint32_t, double> delivered_;
  std::uint64_t next_ = 0;

 public:
  int instances_ = 0;
};

}  // namespace

TEST_CASE("rates agree with the plain reference under random starts, ends and capacity changes; bytes are conserved") {
  int instances = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    RandomSharing sharing(seed, 12);
    sharing.run(40);
    instances += sharing.instances_;
  }
  CHECK(instances >= 1000);
}

TEST_CASE("the same with hundreds of activities on dozens of resources, one change at a time") {
  for (std::uint64_t seed = 100; seed < 106; ++seed) {
    INFO("seed " << seed);
    RandomSharing sharing(seed, 60);
    sharing.fill_up(150);
    sharing.run(60);
  }
}

TEST_CASE("many equal activities: ties between limits do not swap for ever") {
  // A torus of equal links and equal activities: nearly every activity has several limits at the same level.
  Bench bench;
  constexpr std::size_t kSide = 12;
  std::vector<ResourceId> links;
  for (std::size_t i = 0; i < kSide * kSide; ++i) links.push_back(bench.fluid.add_resource(12.5 * kGiga));
  RandomStream random(3, "ties");
  for (int i = 0; i < 400; ++i) {
    std::vector<Use> uses;
    const std::uint64_t row = random.below(kSide);
    const std::uint64_t first = random.below(kSide);
    for (std::uint64_t hop = 0; hop < 1 + random.below(6); ++hop) {
      uses.push_back({links[row * kSide + (first + hop) % kSide], 1});
    }
    bench.start(1e6, uses, 0, Picoseconds(static_cast<std::int64_t>(random.below(50)) * 1'000'000));
  }
  for (std::int64_t t = 0; t < 400; ++t) {
    bench.simulation.run_until(Picoseconds(t * 1'000'000));
    bench.fluid.check_invariants();
  }
  bench.simulation.run();
  CHECK(bench.listener.done.size() == 400);
  CHECK(bench.fluid.refills() <= 20);
}

TEST_CASE("the same run gives the same bits") {
  const auto run = [] {
    Bench bench;
    RandomStream random(5, "repeat");
    std::vector<ResourceId> links;
    for (int i = 0; i < 10; ++i) links.push_back(bench.fluid.add_resource(1 + random.uniform()));
    for (std::uint64_t i = 0; i < 500; ++i) {
      bench.start(random.uniform(), {{links[random.below(10)], 1}, {links[random.below(10)], random.uniform()}}, i,
                  Picoseconds(static_cast<std::int64_t>(random.below(kSecond))));
    }
    bench.simulation.run();
    return bench.listener.done;
  };
  CHECK(run() == run());
}

TEST_CASE("the reference itself: a chain of bottlenecks") {
  // Resources 10, 6, 20 with activities on {0,1}, {0}, {1}, {1,2}, {2}: 1 saturates at 2, then 0 at 8, then 2 at 18.
  MaxMinProblem problem;
  problem.capacity = {10, 6, 20};
  const ResourceId r0(0U);
  const ResourceId r1(1U);
  const ResourceId r2(2U);
  problem.uses = {{{r0, 1}, {r1, 1}}, {{r0, 1}}, {{r1, 1}}, {{r1, 1}, {r2, 1}}, {{r2, 1}}};
  CHECK(max_min_rates(problem) == std::vector<double>{2, 8, 2, 2, 18});
  problem.uses.push_back({});
  CHECK_THROWS_AS(max_min_rates(problem), BrokenContract);
}
