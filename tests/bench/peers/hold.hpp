// The hold model of event queues: N pending events, and each that happens is put back a random time later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace clustersim::peers {

/// Draws the increments and counts; the processor time is that of the events after the queue has become stationary.
class Hold {
 public:
  /// Arguments: PENDING EVENTS. Throws BadInput.
  Hold(int argc, char** argv);
  [[nodiscard]] std::uint64_t pending() const { return pending_; }
  /// Increments in seconds, exponential with mean 1, shifted by a microsecond so that no two events are one.
  [[nodiscard]] const std::vector<double>& increments() const { return increments_; }
  /// Which increment comes next.
  std::size_t next();
  /// An event has happened; false when it was the last.
  bool count();
  [[nodiscard]] bool over() const { return counted_ >= last_; }
  /// Prints one line of JSON.
  void report(std::string_view program) const;

 private:
  std::uint64_t random();

  std::uint64_t pending_ = 0;
  std::uint64_t state_ = 12345;
  std::uint64_t counted_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
  double started_ = 0;
  double stopped_ = 0;
  std::vector<double> increments_;
};

/// Reads the command line, calls `body`, reports; turns bad input into a message and an exit code.
int run_hold(int argc, char** argv, std::string_view program, const std::function<void(Hold&)>& body);

}  // namespace clustersim::peers
