// Event queues that ours is measured against: the binary heap of the standard library, a 4-ary heap, a ladder queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace clustersim::bench {

/// 16 bytes, nothing to cancel, no order among equal times: less than the simulator needs, so a lenient comparison.
struct TimedEvent {
  std::int64_t time;
  std::uint64_t payload;
  bool operator>(const TimedEvent& other) const { return time > other.time; }
};

class BinaryHeap {
 public:
  void push(const TimedEvent& event) { heap_.push(event); }
  TimedEvent pop() {
    const TimedEvent event = heap_.top();
    heap_.pop();
    return event;
  }

 private:
  std::priority_queue<TimedEvent, std::vector<TimedEvent>, std::greater<>> heap_;
};

/// Four children per node: half the depth of a binary heap. A pop moves the hole to a leaf before it places the last
/// event, which saves a comparison per level.
class FourAryHeap {
 public:
  void push(const TimedEvent& event) {
    heap_.push_back(event);
    rise(heap_.size() - 1, event);
  }
  TimedEvent pop() {
    const TimedEvent first = heap_.front();
    const TimedEvent last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return first;
    std::size_t hole = 0;
    while (4 * hole + 1 < heap_.size()) {
      const std::size_t begin = 4 * hole + 1;
      const std::size_t end = std::min(begin + 4, heap_.size());
      std::size_t least = begin;
      for (std::size_t i = begin + 1; i < end; ++i) least = heap_[i].time < heap_[least].time ? i : least;
      heap_[hole] = heap_[least];
      hole = least;
    }
    rise(hole, last);
    return first;
  }

 private:
  void rise(std::size_t hole, const TimedEvent& event) {
    while (hole > 0 && heap_[(hole - 1) / 4].time > event.time) {
      heap_[hole] = heap_[(hole - 1) / 4];
      hole = (hole - 1) / 4;
    }
    heap_[hole] = event;
  }
  std::vector<TimedEvent> heap_;
};

/// Ladder queue (Tang, Goh and Thng, ACM TOMACS 15, 2005): far events unsorted, nearer ones in rungs of equal-width
/// buckets, each made from one bucket of the rung above when that is large; the nearest bucket sorted.
class LadderQueue {
 public:
  void push(const TimedEvent& event) {
    if (event.time >= far_start_) {
      far_.push_back(event);
      far_first_ = std::min(far_first_, event.time);
      far_last_ = std::max(far_last_, event.time);
      return;
    }
    for (std::size_t depth = 0; depth < depth_; ++depth) {
      Rung& rung = rungs_[depth];
      if (event.time < rung.present()) continue;
      rung.buckets[static_cast<std::size_t>((event.time - rung.start) / rung.width)].push_back(event);
      return;
    }
    std::size_t hole = near_.size();
    near_.push_back(event);
    for (; hole > 0 && near_[hole - 1].time < event.time; --hole) near_[hole] = near_[hole - 1];
    near_[hole] = event;
  }

  TimedEvent pop() {
    while (near_.empty()) refill();
    const TimedEvent event = near_.back();
    near_.pop_back();
    return event;
  }

 private:
  static constexpr std::size_t kSort = 64;      // a bucket of at most this many is sorted
  static constexpr std::size_t kPerBucket = 8;  // events wanted in a bucket of a new rung
  static constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

  struct Rung {
    std::int64_t start = 0;
    std::int64_t width = 1;
    std::size_t next = 0;  // buckets before it are used up
    std::size_t count = 0;
    std::vector<std::vector<TimedEvent>> buckets;
    [[nodiscard]] std::int64_t present() const { return start + static_cast<std::int64_t>(next) * width; }
  };

  void refill() {
    if (depth_ == 0) {
      spread(far_, far_first_, far_last_ + 1);
      far_start_ = rungs_[0].start + static_cast<std::int64_t>(rungs_[0].count) * rungs_[0].width;
      far_first_ = kLast;
      far_last_ = 0;
    }
    Rung& rung = rungs_[depth_ - 1];
    while (rung.next < rung.count && rung.buckets[rung.next].empty()) ++rung.next;
    if (rung.next == rung.count) {
      --depth_;
      return;
    }
    const std::int64_t begin = rung.present();
    std::vector<TimedEvent>& bucket = rung.buckets[rung.next++];
    if (bucket.size() > kSort && rung.width > 1) {
      std::vector<TimedEvent> events;
      events.swap(bucket);
      spread(events, begin, begin + rung.width);
      return;
    }
    near_.swap(bucket);
    std::sort(near_.begin(), near_.end(), std::greater<>());
  }

  void spread(std::vector<TimedEvent>& events, std::int64_t begin, std::int64_t end) {
    if (rungs_.size() == depth_) rungs_.emplace_back();
    Rung& rung = rungs_[depth_++];
    const auto buckets = static_cast<std::int64_t>(std::max<std::size_t>(1, events.size() / kPerBucket));
    rung.start = begin;
    rung.width = std::max<std::int64_t>(1, (end - begin) / buckets);
    rung.count = static_cast<std::size_t>((end - begin + rung.width - 1) / rung.width);
    rung.next = 0;
    if (rung.buckets.size() < rung.count) rung.buckets.resize(rung.count);
    for (const TimedEvent& event : events) {
      rung.buckets[static_cast<std::size_t>((event.time - begin) / rung.width)].push_back(event);
    }
    events.clear();
  }

  std::vector<TimedEvent> near_;  // the first at the back
  std::vector<TimedEvent> far_;
  std::vector<Rung> rungs_;
  std::size_t depth_ = 0;
  std::int64_t far_start_ = 0;
  std::int64_t far_first_ = kLast;
  std::int64_t far_last_ = 0;
};

}  // namespace clustersim::bench
