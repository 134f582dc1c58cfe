// Where the time of each rank class goes: every tick of the compute stream to exactly one cause.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/programs/program.hpp"
#include "models/programs/streams.hpp"

namespace clustersim {

using CauseTicks = std::array<std::int64_t, kCauses>;

/// Ticks of the kernels on a program's compute stream, by cause, on a GPU `slowdown` times slower than nominal.
CauseTicks kernel_totals(const Program& program, const StreamProgram& compiled, double slowdown);

/// The column under which waiting for the other members of an operation is booked: a pipeline neighbour that is not
/// there yet is a bubble, any other is a straggler.
constexpr Cause waiting_cause(Cause exposed_as) {
  return exposed_as == Cause::exposed_pipeline ? Cause::bubble : Cause::straggler;
}

/// Books elapsed time to the column that was current while it elapsed. Kernels share one column while the clock runs
/// (each runs exactly once, so their causes are known beforehand) and are spread over their causes at the end; that the
/// two agree is a check of the stepping itself.
class Ledger {
 public:
  static constexpr std::uint8_t kKernel = kCauses;     // the compute stream runs a kernel
  static constexpr std::uint8_t kNever = kCauses + 1;  // between two steps of one instant: no time may pass
  static constexpr std::uint8_t column(Cause cause) { return static_cast<std::uint8_t>(cause); }

  explicit Ledger(std::size_t classes) : accounts_(classes) {}
  void settle(std::size_t rank_class, std::int64_t now) {
    Account& account = accounts_[rank_class];
    if (account.since == now) return;
    account.ticks[account.current] += now - account.since;
    account.since = now;
  }
  void set_column(std::size_t rank_class, std::uint8_t column) { accounts_[rank_class].current = column; }
  /// Settles up to the end of the step and checks that the account is complete; throws BrokenContract when not.
  CauseTicks close(std::size_t rank_class, std::int64_t end, const CauseTicks& kernels);

 private:
  struct Account {
    std::array<std::int64_t, kCauses + 2> ticks{};
    std::int64_t since = 0;
    std::uint8_t current = kNever;
  };
  std::vector<Account> accounts_;
};

}  // namespace clustersim
