// The simulation loop: a clock, an event queue, and hooks that run when an instant is over.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/errors.hpp"
#include "sim/event_queue.hpp"
#include "sim/units.hpp"

namespace clustersim {

/// Runs at the end of an instant: after all events of the current time, before the clock moves.
class InstantHook {
 public:
  virtual void on_instant_end() = 0;

 protected:
  ~InstantHook() = default;
};

/// `Tick` is a std::chrono duration with a 64-bit representation: Picoseconds in a step, Microseconds in a campaign.
template <class Tick>
class Simulation {
 public:
  [[nodiscard]] Tick now() const { return now_; }
  [[nodiscard]] std::uint64_t events_processed() const { return processed_; }
  [[nodiscard]] bool idle() const { return queue_.empty() && hooks_.empty(); }

  /// `at` must not be before now().
  EventId schedule(Tick at, EventHandler& handler, std::uint64_t payload = 0) {
    ensure(at >= now_, "event scheduled {} ticks in the past", (now_ - at).count());
    return queue_.push(at.count(), handler, payload);
  }
  EventId schedule_after(Tick delay, EventHandler& handler, std::uint64_t payload = 0) {
    return schedule(now_ + delay, handler, payload);
  }
  bool cancel(EventId id) { return queue_.cancel(id); }

  /// Asks for one call of the hook when the current instant is over; asking twice in an instant calls twice.
  void at_instant_end(InstantHook& hook) { hooks_.push_back(&hook); }

  /// Runs until nothing is pending.
  void run() {
    while (step(Tick::max())) {
    }
  }
  /// Runs every event with time <= `end`, then sets the clock to `end`.
  void run_until(Tick end) {
    while (step(end)) {
    }
    if (now_ < end) now_ = end;
  }

 private:
  bool step(Tick end) {
    if (!hooks_.empty() && (queue_.empty() || queue_.next_time() > now_.count())) {
      running_.swap(hooks_);
      for (InstantHook* hook : running_) hook->on_instant_end();
      running_.clear();
      return true;
    }
    if (queue_.empty() || queue_.next_time() > end.count()) return false;
    const EventQueue::Event event = queue_.pop();
    ensure(event.time >= now_.count(), "the clock ran backwards");
    now_ = Tick(event.time);
    ++processed_;
    event.handler->on_event(event.payload);
    return true;
  }

  EventQueue queue_;
  Tick now_{0};
  std::uint64_t processed_ = 0;
  std::vector<InstantHook*> hooks_;
  std::vector<InstantHook*> running_;
};

}  // namespace clustersim
