// Hold model (each popped event is pushed again later): the event queue against a binary heap of 16-byte events.
// Both run in the same benchmark, interleaved; `ratio` = processor time of the binary heap / processor time of ours.
#include "sim/event_queue.hpp"

#include <benchmark/benchmark.h>

#include <ctime>
#include <functional>
#include <queue>
#include <vector>

#include "sim/random.hpp"

namespace {

using namespace clustersim;

struct Nobody : EventHandler {
  void on_event(std::uint64_t) override {}
};

struct HeapEvent {
  std::int64_t time;
  std::uint64_t payload;
  bool operator>(const HeapEvent& other) const { return time > other.time; }
};
using Heap = std::priority_queue<HeapEvent, std::vector<HeapEvent>, std::greater<>>;

enum Increments : std::int64_t { exponential, constant };

/// Increments drawn beforehand, so that neither side pays for the random numbers.
std::vector<std::int64_t> increments(Increments kind) {
  constexpr std::size_t kCount = 1U << 16U;
  constexpr double kMean = 1e6;
  std::vector<std::int64_t> result(kCount, static_cast<std::int64_t>(kMean));
  RandomStream random(1, "hold model");
  for (std::int64_t& increment : result) {
    if (kind == exponential) increment = static_cast<std::int64_t>(random.exponential(kMean));
  }
  return result;
}

/// Processor time of this thread, so that other work on the machine does not count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

constexpr int kEvents = 200'000;

double hold_ours(EventQueue& queue, const std::vector<std::int64_t>& steps, std::size_t& next) {
  const double start = processor_seconds();
  for (int i = 0; i < kEvents; ++i) {
    const EventQueue::Event event = queue.pop();
    queue.push(event.time + steps[next++ & (steps.size() - 1)], *event.handler, event.payload);
  }
  return processor_seconds() - start;
}

double hold_heap(Heap& heap, const std::vector<std::int64_t>& steps, std::size_t& next) {
  const double start = processor_seconds();
  for (int i = 0; i < kEvents; ++i) {
    const HeapEvent event = heap.top();
    heap.pop();
    heap.push({event.time + steps[next++ & (steps.size() - 1)], event.payload});
  }
  return processor_seconds() - start;
}

void hold(benchmark::State& state) {
  const auto pending = static_cast<std::uint64_t>(state.range(0));
  const std::vector<std::int64_t> steps = increments(static_cast<Increments>(state.range(1)));
  EventQueue queue;
  Heap heap;
  Nobody handler;
  RandomStream random(2, "initial times");
  for (std::uint64_t i = 0; i < pending; ++i) {
    const auto time = static_cast<std::int64_t>(random.uniform() * 1e6);
    queue.push(time, handler, i);
    heap.push({time, i});
  }
  std::size_t next_ours = 0;
  std::size_t next_heap = 0;
  // Until every event has been held a few times, so that the distribution of times is the stationary one.
  for (std::uint64_t held = 0; held < 3 * pending; held += kEvents) {
    hold_ours(queue, steps, next_ours);
    hold_heap(heap, steps, next_heap);
  }
  double ours = 0;
  double binary = 0;
  for (auto _ : state) {
    const double this_time = hold_ours(queue, steps, next_ours);
    ours += this_time;
    binary += hold_heap(heap, steps, next_heap);
    state.SetIterationTime(this_time);
  }
  const double events = static_cast<double>(state.iterations()) * kEvents;
  state.counters["ours_M_per_s"] = events / ours / 1e6;
  state.counters["heap_M_per_s"] = events / binary / 1e6;
  state.counters["ratio"] = binary / ours;
}
BENCHMARK(hold)
    ->ArgNames({"pending", "constant"})
    ->ArgsProduct({{1'000, 100'000, 1'000'000}, {exponential, constant}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
