// Random increments, the count of events and the report of the hold model.
#include "tests/bench/peers/hold.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/errors.hpp"
#include "tests/bench/peers/program.hpp"
#include "tests/bench/processor_time.hpp"

namespace clustersim::peers {

Hold::Hold(int argc, char** argv) : increments_(std::size_t{1} << 16U) {
  if (argc != 3) bad_input("usage: {} PENDING EVENTS", argv[0]);
  pending_ = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t events = std::strtoull(argv[2], nullptr, 10);
  if (pending_ == 0 || events == 0) bad_input("usage: {} PENDING EVENTS, both above 0", argv[0]);
  first_ = std::max<std::uint64_t>(pending_, 20'000);
  last_ = first_ + events;
  for (double& increment : increments_) {
    increment = 1e-6 - std::log1p(-static_cast<double>(random() >> 11U) * 0x1p-53);
  }
}

/// Xorshift64 (Marsaglia 2003).
std::uint64_t Hold::random() {
  state_ ^= state_ << 13U;
  state_ ^= state_ >> 7U;
  state_ ^= state_ << 17U;
  return state_;
}

std::size_t Hold::next() { return random() & (increments_.size() - 1); }

bool Hold::count() {
  ++counted_;
  if (counted_ == first_) started_ = bench::processor_seconds();
  if (counted_ == last_) stopped_ = bench::processor_seconds();
  return counted_ < last_;
}

void Hold::report(std::string_view program) const {
  const double seconds = stopped_ - started_;
  const auto events = static_cast<double>(last_ - first_);
  fmt::print(
      "{{\"program\": \"{}\", \"pending\": {}, \"events\": {}, \"run_cpu_s\": {:.6f}, \"ns_per_event\": {:.2f}, "
      "\"peak_mib\": {:.1f}}}\n",
      program, pending_, last_ - first_, seconds, 1e9 * seconds / events, peak_mebibytes());
}

int run_hold(int argc, char** argv, std::string_view program, const std::function<void(Hold&)>& body) {
  try {
    Hold hold(argc, argv);
    body(hold);
    hold.report(program);
  } catch (const BadInput& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace clustersim::peers
