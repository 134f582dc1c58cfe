// The loop: clock, order, end-of-instant hooks.
#include "sim/simulation.hpp"

#include <functional>
#include <vector>

#include "tests/catch.hpp"

using namespace clustersim;

namespace {

struct Recorder : EventHandler, InstantHook {
  explicit Recorder(Simulation<Picoseconds>& simulation) : simulation_(simulation) {}
  void on_event(std::uint64_t payload) override {
    log.emplace_back(simulation_.now().count(), payload);
    if (action) action(payload);
  }
  void on_instant_end() override {
    log.emplace_back(simulation_.now().count(), 999);
    if (at_end) at_end();
  }
  Simulation<Picoseconds>& simulation_;
  std::vector<std::pair<std::int64_t, std::uint64_t>> log;
  std::function<void(std::uint64_t)> action;
  std::function<void()> at_end;
};

using Log = std::vector<std::pair<std::int64_t, std::uint64_t>>;

}  // namespace

TEST_CASE("events run in time order and may schedule more") {
  Simulation<Picoseconds> simulation;
  Recorder recorder(simulation);
  recorder.action = [&](std::uint64_t payload) {
    if (payload == 1) simulation.schedule_after(Picoseconds(0), recorder, 3);
  };
  simulation.schedule(Picoseconds(20), recorder, 4);
  simulation.schedule(Picoseconds(10), recorder, 1);
  simulation.schedule(Picoseconds(10), recorder, 2);
  simulation.run();
  CHECK(recorder.log == Log{{10, 1}, {10, 2}, {10, 3}, {20, 4}});
  CHECK(simulation.events_processed() == 4);
  CHECK(simulation.now() == Picoseconds(20));
  CHECK(simulation.idle());
}

TEST_CASE("a hook runs after the instant's events and before the clock moves; it may add to the instant") {
  Simulation<Picoseconds> simulation;
  Recorder recorder(simulation);
  int hooks = 0;
  recorder.action = [&](std::uint64_t payload) {
    if (payload == 1) simulation.at_instant_end(recorder);
  };
  recorder.at_end = [&] {
    if (hooks++ == 0) {
      simulation.schedule_after(Picoseconds(0), recorder, 5);  // the event after it lies far ahead and was already seen
      simulation.at_instant_end(recorder);
    }
  };
  simulation.schedule(Picoseconds(10), recorder, 1);
  simulation.schedule(Picoseconds(10), recorder, 2);
  simulation.schedule(Picoseconds(1'000'000), recorder, 3);
  simulation.run();
  CHECK(recorder.log == Log{{10, 1}, {10, 2}, {10, 999}, {10, 5}, {10, 999}, {1'000'000, 3}});
}

TEST_CASE("running until a time stops the clock there") {
  Simulation<Picoseconds> simulation;
  Recorder recorder(simulation);
  simulation.schedule(Picoseconds(10), recorder, 1);
  simulation.schedule(Picoseconds(11), recorder, 2);
  simulation.run_until(Picoseconds(10));
  CHECK(recorder.log == Log{{10, 1}});
  simulation.run_until(Picoseconds(10));
  CHECK(simulation.now() == Picoseconds(10));
  CHECK_THROWS_AS(simulation.schedule(Picoseconds(9), recorder), BrokenContract);
  const EventId id = simulation.schedule(Picoseconds(12), recorder, 3);
  CHECK(simulation.cancel(id));
  simulation.run_until(Picoseconds(100));
  CHECK(simulation.now() == Picoseconds(100));
  CHECK(recorder.log.size() == 2);
}
