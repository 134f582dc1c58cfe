// Hold model (each popped event is pushed again later): the event queue against the queues in queues.hpp.
// All run in the same benchmark, interleaved, on the same increments; ratios are of processor time, above 1 when ours
// is faster. `dispatch` is the whole simulation loop: queue, clock, virtual call and a state record per event.
#include "sim/event_queue.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "scenarios/run.hpp"
#include "scenarios/scenario.hpp"
#include "sim/random.hpp"
#include "sim/simulation.hpp"
#include "tests/bench/processor_time.hpp"
#include "tests/bench/queues.hpp"

namespace {

using namespace clustersim;

struct Nobody : EventHandler {
  void on_event(std::uint64_t) override {}
};

enum Increments : std::int64_t { exponential, uniform, constant, bimodal, training_step };
constexpr std::array kNames{"exponential", "uniform", "constant", "bimodal", "training step"};

/// How long things last in a step of Llama 3 405B: the mix of events that the simulator itself makes.
std::vector<std::int64_t> step_durations() {
  RunOptions options;
  options.record_timeline = true;
  options.scaling = false;
  const Result result = run_scenario(load_scenario("llama3-405b-16k"), options);
  std::vector<std::int64_t> durations;
  for (const TimelineInterval& interval : result.step->step.timeline) {
    if (interval.end > interval.start) durations.push_back((interval.end - interval.start).count());
  }
  return durations;
}

/// Drawn beforehand, so that no side pays for the random numbers.
std::vector<std::int64_t> increments(Increments kind) {
  constexpr std::size_t kCount = 1U << 16U;
  constexpr double kMean = 1e6;
  const std::vector<std::int64_t> durations = kind == training_step ? step_durations() : std::vector<std::int64_t>{};
  std::vector<std::int64_t> result(kCount);
  RandomStream random(1, "hold model");
  for (std::int64_t& increment : result) {
    double drawn = kMean;
    if (kind == exponential) drawn = random.exponential(kMean);
    if (kind == uniform) drawn = 2 * kMean * random.uniform();
    // Nine in ten are a hundred times shorter than the others.
    if (kind == bimodal) drawn = (random.below(10) == 0 ? 10 : 0.1) * 2 * kMean * random.uniform();
    increment = static_cast<std::int64_t>(drawn);
    if (kind == training_step) increment = durations[random.below(durations.size())];
  }
  return result;
}

constexpr int kEvents = 200'000;

/// A queue with the events it holds and the time it has taken.
template <class Queue>
struct Contestant {
  Queue queue;
  std::size_t next = 0;
  double seconds = 0;

  double hold(const std::vector<std::int64_t>& steps) {
    const double start = bench::processor_seconds();
    for (int i = 0; i < kEvents; ++i) {
      auto event = queue.pop();
      event.time += steps[next++ & (steps.size() - 1)];
      queue.push(event);
    }
    const double taken = bench::processor_seconds() - start;
    seconds += taken;
    return taken;
  }
};

class Ours {
 public:
  void push(const EventQueue::Event& event) { queue_.push(event.time, *event.handler, event.payload); }
  EventQueue::Event pop() { return queue_.pop(); }

 private:
  EventQueue queue_;
};

void hold(benchmark::State& state) {
  const auto pending = static_cast<std::uint64_t>(state.range(0));
  const auto kind = static_cast<Increments>(state.range(1));
  const std::vector<std::int64_t> steps = increments(kind);
  Contestant<Ours> ours;
  Contestant<bench::BinaryHeap> binary;
  Contestant<bench::FourAryHeap> four;
  Contestant<bench::LadderQueue> ladder;
  Nobody handler;
  RandomStream random(2, "initial times");
  for (std::uint64_t i = 0; i < pending; ++i) {
    const auto time = static_cast<std::int64_t>(random.uniform() * static_cast<double>(steps[i & (steps.size() - 1)]));
    ours.queue.push({time, &handler, i});
    binary.queue.push({time, i});
    four.queue.push({time, i});
    ladder.queue.push({time, i});
  }
  // Until every event has been held a few times, so that the distribution of times is the stationary one.
  for (std::uint64_t held = 0; held < 3 * pending; held += kEvents) {
    ours.hold(steps);
    binary.hold(steps);
    four.hold(steps);
    ladder.hold(steps);
  }
  ours.seconds = binary.seconds = four.seconds = ladder.seconds = 0;
  for (auto _ : state) {
    state.SetIterationTime(ours.hold(steps));
    binary.hold(steps);
    four.hold(steps);
    ladder.hold(steps);
  }
  const double events = static_cast<double>(state.iterations()) * kEvents;
  state.SetLabel(kNames[kind]);
  state.counters["ns"] = ours.seconds / events * 1e9;
  state.counters["std_ns"] = binary.seconds / events * 1e9;
  state.counters["four_ns"] = four.seconds / events * 1e9;
  state.counters["ladder_ns"] = ladder.seconds / events * 1e9;
  state.counters["vs_std"] = binary.seconds / ours.seconds;
  state.counters["vs_four"] = four.seconds / ours.seconds;
  state.counters["vs_ladder"] = ladder.seconds / ours.seconds;
}
BENCHMARK(hold)
    ->ArgNames({"pending", "kind"})
    ->ArgsProduct({{1'000, 100'000, 1'000'000, 10'000'000}, {exponential, uniform, constant, bimodal, training_step}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

/// Every event updates the record of its entity and comes again after the next duration of a training step.
class Entities : public EventHandler {
 public:
  Entities(std::uint64_t pending, const std::vector<std::int64_t>& steps) : steps_(steps), records_(pending) {
    for (std::uint64_t i = 0; i < pending; ++i) simulation_.schedule_after(next(), *this, i);
  }
  void on_event(std::uint64_t payload) override {
    Record& record = records_[payload];
    record.last = simulation_.now();
    record.busy += record.last.count() & 1023;
    ++record.events;
    simulation_.schedule_after(next(), *this, payload);
  }
  /// Runs at least this many events; returns how many.
  std::uint64_t run(std::uint64_t events) {
    const std::uint64_t before = simulation_.events_processed();
    while (simulation_.events_processed() - before < events) {
      simulation_.run_until(simulation_.now() + Picoseconds(1'000'000));
    }
    return simulation_.events_processed() - before;
  }

 private:
  struct alignas(64) Record {
    Picoseconds last{0};
    std::int64_t busy = 0;
    std::uint64_t events = 0;
  };
  Picoseconds next() { return Picoseconds(steps_[next_++ & (steps_.size() - 1)]); }

  const std::vector<std::int64_t>& steps_;
  std::vector<Record> records_;
  Simulation<Picoseconds> simulation_;
  std::size_t next_ = 0;
};

void dispatch(benchmark::State& state) {
  const std::vector<std::int64_t> steps = increments(training_step);
  Entities entities(static_cast<std::uint64_t>(state.range(0)), steps);
  constexpr std::uint64_t kRun = 2'000'000;
  entities.run(kRun);
  double seconds = 0;
  std::uint64_t events = 0;
  for (auto _ : state) {
    const double start = bench::processor_seconds();
    events += entities.run(kRun);
    const double taken = bench::processor_seconds() - start;
    state.SetIterationTime(taken);
    seconds += taken;
  }
  state.counters["M_events_per_s"] = static_cast<double>(events) / seconds / 1e6;
}
BENCHMARK(dispatch)->ArgName("pending")->Arg(1'000)->Arg(100'000)->Iterations(3)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
