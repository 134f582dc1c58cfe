// What happens next: pending events in the total order (time, sequence), with cancellation.
#pragma once

#include <cstdint>
#include <vector>

namespace clustersim {

/// Receives the events it scheduled. `payload` is the number given to schedule().
class EventHandler {
 public:
  virtual void on_event(std::uint64_t payload) = 0;

 protected:
  ~EventHandler() = default;
};

/// Names one scheduled event; stays safe to cancel after the event has fired (cancelling then does nothing).
struct EventId {
  std::uint32_t slot = ~std::uint32_t{0};
  std::uint32_t generation = 0;
  [[nodiscard]] bool valid() const { return slot != ~std::uint32_t{0}; }
};

/// Monotone priority queue on integer keys: pushes must not be earlier than the last pop.
/// Equal times pop in push order. No allocation per event once warm.
class EventQueue {
 public:
  struct Event {
    std::int64_t time = 0;
    EventHandler* handler = nullptr;
    std::uint64_t payload = 0;
  };

  EventId push(std::int64_t time, EventHandler& handler, std::uint64_t payload);
  /// True when the event was pending and is now removed.
  bool cancel(EventId id);
  [[nodiscard]] bool empty() const { return pending_ == 0; }
  [[nodiscard]] std::size_t size() const { return pending_; }
  /// Time of the next event; the queue must not be empty.
  std::int64_t next_time();
  Event pop();

  // The implementation is a radix heap: see event_queue.cpp for why.
 private:
  struct Entry {
    std::int64_t time;
    std::uint32_t slot;
    std::uint32_t generation;
  };
  struct Slot {
    EventHandler* handler = nullptr;
    std::uint64_t payload = 0;
    std::uint32_t generation = 0;
    bool live = false;
  };
  void refill();  // makes bucket 0 non-empty, dropping cancelled entries on the way

  std::vector<Entry> buckets_[65];
  std::size_t front_ = 0;  // first unread entry of bucket 0
  std::int64_t last_ = 0;  // time of the last pop; all pending times are >= last_
  std::size_t pending_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
};

}  // namespace clustersim
