// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, JACM 37, 1990): time never runs backwards, so digits of the time
// replace the comparisons of a binary heap, and memory is read in order.
//
// Entries later than base_ lie in the bucket (level, digit): `level` is the highest base-16 digit in which the time
// differs from base_, `digit` its value there. The lowest occupied level, and in it the lowest occupied digit, cover a
// range of times before all other buckets. When nothing at or before base_ is left, this bucket is split by its lower
// digits until the first part is short or in order; the part is sorted and becomes the run, and base_ moves to
// the last time of its range. No other bucket changes: base_ keeps its digits above the level, and the others still
// differ from it there. An entry moves at most once per level.
//
// Pushes at or before base_ go to a small binary heap beside the run. So looking at the next event may move base_ far
// ahead without forbidding what is still legal, a push at or after the last pop. If that heap grows out of proportion,
// base_ is taken back to the last pop: levels up to the digit where the two differ are merged into that level.
//
// Equal times pop in push order: (1) the bucket of an entry is a function of (time, base_) alone, so entries of equal
// time always lie in the same bucket; (2) a push appends to it; (3) when a bucket is split every lower level is empty,
// and its entries are appended in their order; merging also keeps the order, because a bucket's times all go to the
// same new bucket or differ; (4) the run is sorted stably; (5) an entry in the early heap was pushed after every entry
// of the same time in the run, because the time was then <= base_ already, and the heap itself goes by (time,
// sequence). Dropping cancelled entries keeps the order of the others.
#include "sim/event_queue.hpp"

#include <algorithm>
#include <bit>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr auto earlier = [](const auto& a, const auto& b) { return a.time < b.time; };

/// A bucket up to this length is sorted rather than split further.
constexpr std::size_t kRun = 24;
/// The early heap below this size is as fast as the buckets.
constexpr std::size_t kEarly = 256;
/// How many events before its turn the memory of an event is asked for.
constexpr std::size_t kAhead = 16;
/// Cancelled entries tolerated before a sweep, besides as many as there are pending ones.
constexpr std::size_t kDead = 1024;

}  // namespace

/// Highest digit in which two times differ; 0 when they are equal.
unsigned EventQueue::level_of(std::int64_t a, std::int64_t b) {
  const std::uint64_t difference = static_cast<std::uint64_t>(a) ^ static_cast<std::uint64_t>(b);
  return static_cast<unsigned>(std::bit_width(difference | 1U) - 1) / kDigitBits;
}

void EventQueue::insert(const Entry& entry) {
  const unsigned level = level_of(entry.time, base_);
  const unsigned digit = static_cast<unsigned>(entry.time >> (level * kDigitBits)) & (kDigits - 1);
  bucket(level, digit).push_back(entry);
  occupied_levels_ |= 1U << level;
  occupied_digits_[level] |= 1U << digit;
}

void EventQueue::insert_early(const Entry& entry) {
  early_.push_back({entry, next_sequence_++});
  std::push_heap(early_.begin(), early_.end());
  // Checked each time the heap has doubled: taking base_ back costs what it moves, so it has to pay.
  if (early_.size() >= kEarly && std::has_single_bit(early_.size()) && last_ < base_ &&
      run_.size() - run_next_ + entries_up_to(level_of(last_, base_)) <= 4 * early_.size()) {
    lower_base();
  }
}

EventId EventQueue::push(std::int64_t time, EventHandler& handler, std::uint64_t payload) {
  ensure(time >= last_, "event pushed at {}, before the last popped time {}", time, last_);
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back({&handler, payload, 0});
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot].handler = &handler;
    slots_[slot].payload = payload;
  }
  const EventId id{slot, slots_[slot].generation};
  ++pending_;
  if (time > base_) {
    insert({time, id.slot, id.generation});
  } else {
    insert_early({time, id.slot, id.generation});
  }
  return id;
}

bool EventQueue::cancel(EventId id) {
  if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation) return false;
  ++slots_[id.slot].generation;
  free_slots_.push_back(id.slot);
  --pending_;
  ++dead_;
  // Entries cancelled long before their time would pile up (a flow's completion moves at every rate change).
  if (dead_ > pending_ + kDead) sweep();
  return true;
}

void EventQueue::drop_dead(Bucket& from) {
  if (dead_ == 0) return;
  const auto end = std::remove_if(from.begin(), from.end(), [this](const Entry& entry) { return dead(entry); });
  dead_ -= static_cast<std::size_t>(from.end() - end);
  from.erase(end, from.end());
}

void EventQueue::sweep() {
  run_.erase(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(run_next_));
  run_next_ = 0;
  drop_dead(run_);
  const auto end =
      std::remove_if(early_.begin(), early_.end(), [this](const Early& early) { return dead(early.entry); });
  dead_ -= static_cast<std::size_t>(early_.end() - end);
  early_.erase(end, early_.end());
  std::make_heap(early_.begin(), early_.end());
  for (unsigned level = 0; level < kLevels; ++level) {
    for (unsigned digit = 0; digit < kDigits; ++digit) {
      drop_dead(bucket(level, digit));
      if (bucket(level, digit).empty()) mark_empty(level, digit);
    }
  }
}

void EventQueue::mark_empty(unsigned level, unsigned digit) {
  occupied_digits_[level] &= ~(1U << digit);
  if (occupied_digits_[level] == 0) occupied_levels_ &= ~(1U << level);
}

std::size_t EventQueue::entries_up_to(unsigned level) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::size_t{level + 1} * kDigits; ++i) count += buckets_[i].size();
  return count;
}

void EventQueue::take_lowest_bucket() {
  for (;;) {
    ensure(occupied_levels_ != 0, "a pending event is in no bucket");
    const auto level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
    const auto digit = static_cast<unsigned>(std::countr_zero(occupied_digits_[level]));
    Bucket& lowest = bucket(level, digit);
    mark_empty(level, digit);
    drop_dead(lowest);
    if (lowest.empty()) continue;
    const std::int64_t range = (std::int64_t{1} << (level * kDigitBits)) - 1;
    // Delays that are all alike fill a bucket in order: it needs neither splitting nor sorting.
    const bool sorted = level == 0 || std::is_sorted(lowest.begin(), lowest.end(), earlier);
    if (sorted || lowest.size() <= kRun) {
      run_.clear();
      run_next_ = 0;
      base_ = lowest.front().time | range;
      run_.swap(lowest);
      if (!sorted) sort_run_from(0);
      extend_run(level);
      return;
    }
    base_ = lowest.front().time & ~range;
    for (const Entry& entry : lowest) insert(entry);
    lowest.clear();
  }
}

/// Takes the following buckets of the level too while the run stays short.
void EventQueue::extend_run(unsigned level) {
  while (occupied_digits_[level] != 0) {
    const auto digit = static_cast<unsigned>(std::countr_zero(occupied_digits_[level]));
    Bucket& next = bucket(level, digit);
    if (run_.size() + next.size() > kRun) return;
    const std::int64_t range = (std::int64_t{1} << (level * kDigitBits)) - 1;
    base_ = next.front().time | range;
    const std::size_t sorted = run_.size();
    run_.insert(run_.end(), next.begin(), next.end());
    next.clear();
    mark_empty(level, digit);
    sort_run_from(sorted);
  }
}

/// Sorts the few entries from the index on, stably; those before it are earlier.
void EventQueue::sort_run_from(std::size_t first) {
  for (std::size_t i = first; i < run_.size(); ++i) {
    const Entry entry = run_[i];
    __builtin_prefetch(&slots_[entry.slot]);
    std::size_t place = i;
    for (; place > first && run_[place - 1].time > entry.time; --place) run_[place] = run_[place - 1];
    run_[place] = entry;
  }
}

void EventQueue::lower_base() {
  // Entries on levels up to `level` agree with base_ above it, and have a larger digit there than last_ has.
  const unsigned level = level_of(last_, base_);
  base_ = last_;
  for (unsigned from = 0; from < level; ++from) {
    while (occupied_digits_[from] != 0) {
      const auto digit = static_cast<unsigned>(std::countr_zero(occupied_digits_[from]));
      Bucket& source = bucket(from, digit);
      for (const Entry& entry : source) insert(entry);
      source.clear();
      mark_empty(from, digit);
    }
  }
  // What is left of the run, then the early heap in its order; entries of the present instant stay in the run.
  std::sort_heap(early_.begin(), early_.end());
  Bucket run;
  run.swap(run_);
  const auto settle = [this](const Entry& entry) {
    if (entry.time > base_) {
      insert(entry);
    } else {
      run_.push_back(entry);
    }
  };
  for (std::size_t i = run_next_; i < run.size(); ++i) settle(run[i]);
  for (auto early = early_.rbegin(); early != early_.rend(); ++early) settle(early->entry);
  run_next_ = 0;
  early_.clear();
}

const EventQueue::Entry& EventQueue::next_entry() {
  ensure(pending_ > 0, "next event of an empty queue");
  for (;;) {
    while (run_next_ < run_.size() && dead(run_[run_next_])) {
      ++run_next_;
      --dead_;
    }
    while (!early_.empty() && dead(early_.front().entry)) {
      std::pop_heap(early_.begin(), early_.end());
      early_.pop_back();
      --dead_;
    }
    const bool in_run = run_next_ < run_.size();
    if (in_run && (early_.empty() || run_[run_next_].time <= early_.front().entry.time)) return run_[run_next_];
    if (!early_.empty()) return early_.front().entry;
    take_lowest_bucket();
  }
}

EventQueue::Event EventQueue::pop() {
  const Entry* next = &next_entry();
  const Entry entry = *next;
  if (run_next_ < run_.size() && next == &run_[run_next_]) {
    ++run_next_;
    // In a long run that was never sorted the slots of coming events have not been asked for yet.
    const std::size_t ahead = run_next_ + kAhead;
    if (ahead < run_.size()) __builtin_prefetch(&slots_[run_[ahead].slot]);
  } else {
    std::pop_heap(early_.begin(), early_.end());
    early_.pop_back();
  }
  last_ = entry.time;
  Slot& slot = slots_[entry.slot];
  ++slot.generation;
  free_slots_.push_back(entry.slot);
  --pending_;
  return {entry.time, slot.handler, slot.payload};
}

}  // namespace clustersim
