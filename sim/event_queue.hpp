// What happens next: pending events in the total order (time, sequence), with cancellation.
#pragma once

#include <array>
#include <cstddef>
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

/// Monotone priority queue on integer keys: pushes must not be earlier than the last pop (0 before the first).
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
  /// Time of the next event; the queue must not be empty. Looking does not commit: earlier pushes stay legal down to
  /// the time of the last pop.
  std::int64_t next_time() { return next_entry().time; }
  Event pop();

  // The implementation is a radix heap behind a short sorted run: see event_queue.cpp for why.
 private:
  static constexpr unsigned kDigitBits = 4;
  static constexpr unsigned kDigits = 1U << kDigitBits;
  static constexpr unsigned kLevels = 64 / kDigitBits;

  struct Entry {
    std::int64_t time;
    std::uint32_t slot;
    std::uint32_t generation;
  };
  struct Early {
    Entry entry;
    std::uint64_t sequence;
    // std's heaps have the largest element on top; ours is the first to happen.
    bool operator<(const Early& other) const {
      return entry.time != other.entry.time ? entry.time > other.entry.time : sequence > other.sequence;
    }
  };
  struct Slot {
    EventHandler* handler;
    std::uint64_t payload;
    std::uint32_t generation;  // an entry of another generation is dead
  };
  using Bucket = std::vector<Entry>;

  [[nodiscard]] bool dead(const Entry& entry) const { return slots_[entry.slot].generation != entry.generation; }
  [[nodiscard]] static unsigned level_of(std::int64_t a, std::int64_t b);
  Bucket& bucket(unsigned level, unsigned digit) { return buckets_[level * kDigits + digit]; }
  void insert(const Entry& entry);
  void insert_early(const Entry& entry);
  const Entry& next_entry();
  void take_lowest_bucket();
  void extend_run(unsigned level);
  void sort_run_from(std::size_t first);
  void mark_empty(unsigned level, unsigned digit);
  [[nodiscard]] std::size_t entries_up_to(unsigned level) const;
  void lower_base();
  void drop_dead(Bucket& from);
  void sweep();

  Bucket run_;                                                  // sorted; every time <= base_
  std::size_t run_next_ = 0;                                    // first unread entry of run_
  std::vector<Early> early_;                                    // heap of later pushes with time <= base_
  std::array<Bucket, std::size_t{kLevels} * kDigits> buckets_;  // every time > base_
  std::uint32_t occupied_levels_ = 0;                           // bit per level with an entry
  std::array<std::uint32_t, kLevels> occupied_digits_{};        // bit per bucket of the level with an entry
  std::int64_t base_ = 0;
  std::int64_t last_ = 0;  // time of the last pop; all pending times are >= last_
  std::uint64_t next_sequence_ = 0;
  std::size_t pending_ = 0;
  std::size_t dead_ = 0;  // cancelled entries not yet dropped
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
};

}  // namespace clustersim
