// The event queue against a sorted list: order, cancellation, looking without committing, memory.
#include "sim/event_queue.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <new>
#include <vector>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {
std::size_t allocated_bytes = 0;
std::size_t allocations = 0;
}  // namespace

// Counts what this test program takes from the heap. Every form is replaced, so that memory always goes back where it
// came from (address sanitizer checks that).
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocated_bytes += size;
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return operator new(size, std::nothrow); }
void* operator new[](std::size_t size) { return operator new(size); }
// GCC 12 at -O2 inlines the operators above and then takes malloc and free for a mismatched pair.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
#pragma GCC diagnostic pop

namespace {

struct Nobody : EventHandler {
  void on_event(std::uint64_t) override {}
};

/// The order the queue promises: (time, push number).
class SortedList {
 public:
  void push(std::int64_t time, std::uint64_t number) { events_.emplace(std::pair(time, number), true); }
  void cancel(std::int64_t time, std::uint64_t number) { events_.erase({time, number}); }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }
  [[nodiscard]] std::pair<std::int64_t, std::uint64_t> first() const { return events_.begin()->first; }
  void pop() { events_.erase(events_.begin()); }

 private:
  std::map<std::pair<std::int64_t, std::uint64_t>, bool> events_;
};

struct Pushed {
  EventId id;
  std::int64_t time;
  std::uint64_t number;
};

/// Random pushes, cancels, looks and pops, compared with the sorted list after each.
void random_operations(std::uint64_t seed, std::uint64_t spread, int operations) {
  RandomStream random(seed, "event queue");
  EventQueue queue;
  SortedList expected;
  Nobody handler;
  std::vector<Pushed> pushed;
  std::int64_t last = 0;
  for (int i = 0; i < operations; ++i) {
    const std::uint64_t choice = random.below(100);
    if (choice < 45 || expected.empty()) {
      const auto time = last + static_cast<std::int64_t>(random.below(random.below(4) == 0 ? 3 : spread));
      const auto number = static_cast<std::uint64_t>(i);
      pushed.push_back({queue.push(time, handler, number), time, number});
      expected.push(time, number);
    } else if (choice < 60) {
      const Pushed& victim = pushed[random.below(pushed.size())];
      const std::size_t before = expected.size();
      expected.cancel(victim.time, victim.number);
      REQUIRE(queue.cancel(victim.id) == (expected.size() < before));
    } else if (choice < 75) {
      REQUIRE(queue.next_time() == expected.first().first);
    } else {
      const EventQueue::Event event = queue.pop();
      REQUIRE(event.time == expected.first().first);
      REQUIRE(event.payload == expected.first().second);
      REQUIRE(event.handler == &handler);
      last = event.time;
      expected.pop();
    }
    REQUIRE(queue.size() == expected.size());
    REQUIRE(queue.empty() == expected.empty());
  }
  while (!expected.empty()) {
    const EventQueue::Event event = queue.pop();
    REQUIRE(std::pair(event.time, event.payload) == expected.first());
    expected.pop();
  }
  REQUIRE(queue.empty());
}

}  // namespace

TEST_CASE("equal times pop in push order") {
  EventQueue queue;
  Nobody handler;
  // Pushed at different distances from the last pop, so that they pass through different buckets on their way.
  queue.push(1000, handler, 0);
  queue.push(10, handler, 100);
  queue.push(1000, handler, 1);
  CHECK(queue.pop().payload == 100);
  queue.push(1000, handler, 2);
  queue.push(998, handler, 101);
  CHECK(queue.pop().payload == 101);
  queue.push(1000, handler, 3);
  for (std::uint64_t i = 0; i < 2; ++i) CHECK(queue.pop().payload == i);
  queue.push(1000, handler, 4);  // while the instant is being worked off
  for (std::uint64_t i = 2; i < 5; ++i) CHECK(queue.pop().payload == i);
}

TEST_CASE("looking at the next event does not forbid earlier ones") {
  EventQueue queue;
  Nobody handler;
  queue.push(5, handler, 0);
  CHECK(queue.pop().time == 5);
  queue.push(1'000'000, handler, 1);
  CHECK(queue.next_time() == 1'000'000);
  queue.push(7, handler, 2);  // between the last pop and what was seen
  CHECK(queue.next_time() == 7);
  queue.push(5, handler, 3);  // at the last pop
  CHECK(queue.next_time() == 5);
  CHECK(queue.pop().payload == 3);
  CHECK(queue.pop().payload == 2);
  CHECK(queue.pop().payload == 1);
}

TEST_CASE("the past is refused") {
  EventQueue queue;
  Nobody handler;
  CHECK_THROWS_AS(queue.push(-1, handler, 0), BrokenContract);
  queue.push(10, handler, 0);
  queue.pop();
  CHECK_THROWS_AS(queue.push(9, handler, 0), BrokenContract);
  CHECK_THROWS_AS(queue.pop(), BrokenContract);
  CHECK_THROWS_AS(queue.next_time(), BrokenContract);
}

TEST_CASE("the whole range of times") {
  EventQueue queue;
  Nobody handler;
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  queue.push(end, handler, 0);
  queue.push(0, handler, 1);
  queue.push(end - 1, handler, 2);
  CHECK(queue.pop().payload == 1);
  CHECK(queue.pop().payload == 2);
  CHECK(queue.pop().payload == 0);
}

TEST_CASE("a cancelled event is gone, once") {
  EventQueue queue;
  Nobody handler;
  const EventId a = queue.push(10, handler, 1);
  const EventId b = queue.push(10, handler, 2);
  CHECK(queue.next_time() == 10);
  CHECK(queue.cancel(a));
  CHECK_FALSE(queue.cancel(a));
  CHECK(queue.size() == 1);
  CHECK(queue.pop().payload == 2);
  CHECK_FALSE(queue.cancel(b));
  const EventId c = queue.push(20, handler, 3);  // reuses the slot
  CHECK_FALSE(queue.cancel(b));
  CHECK_FALSE(queue.cancel(EventId{}));
  CHECK(queue.cancel(c));
  CHECK(queue.empty());
}

TEST_CASE("random operations agree with a sorted list") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    random_operations(seed, 5, 3000);  // many ties
    random_operations(seed, 1000, 3000);
    random_operations(seed, std::uint64_t{1} << 40U, 3000);  // many levels
  }
}

TEST_CASE("postponing an event again and again does not pile up memory") {
  // A flow's completion moves at every rate change: 10^6 cancelled entries, 16 bytes each, must not all be kept.
  EventQueue queue;
  Nobody handler;
  std::vector<EventId> ids(100);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = queue.push(1'000'000'000, handler, i);
  const std::size_t before = allocated_bytes;
  for (std::size_t round = 0; round < 10000; ++round) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      REQUIRE(queue.cancel(ids[i]));
      ids[i] = queue.push(1'000'000'000 + static_cast<std::int64_t>(round), handler, i);
    }
  }
  const std::size_t taken = allocated_bytes - before;
  CHECK(taken < 1'000'000);
  CHECK(queue.size() == 100);
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(queue.pop().payload == i);
}

TEST_CASE("a warm queue takes no memory per event") {
  // Hold model: each popped event is pushed again later. The buckets grow to their largest filling now and then, so the
  // number of allocations is not zero, but it does not follow the number of events.
  EventQueue queue;
  Nobody handler;
  RandomStream random(9, "hold");
  const auto later = [&](std::int64_t now) { return now + static_cast<std::int64_t>(random.exponential(1e6)); };
  for (std::uint64_t i = 0; i < 1000; ++i) queue.push(later(0), handler, i);
  const auto hold = [&](int events) {
    for (int i = 0; i < events; ++i) {
      const EventQueue::Event event = queue.pop();
      queue.push(later(event.time), *event.handler, event.payload);
    }
  };
  hold(1'000'000);
  const std::size_t before = allocations;
  hold(1'000'000);
  const std::size_t taken = allocations - before;
  CHECK(taken < 200);
}
