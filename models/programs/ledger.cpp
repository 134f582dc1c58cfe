// Closes the books: kernels to their causes, the sum to the step time.
#include "models/programs/ledger.hpp"

#include <numeric>

#include "sim/errors.hpp"

namespace clustersim {

CauseTicks kernel_totals(const Program& program, const StreamProgram& compiled, double slowdown) {
  CauseTicks totals{};
  const std::uint32_t end = compiled.streams() > 1 ? compiled.stream_begin[1] : compiled.stream_begin.back();
  for (std::uint32_t s = 0; s < end; ++s) {
    const Step& step = compiled.steps[s];
    if (step.collective) continue;
    for (std::uint32_t at = step.first; at < step.first + step.count; ++at) {
      const Instruction& kernel = program.instructions[compiled.order[at]];
      totals[Ledger::column(kernel.cause)] += kernel_ticks(kernel.duration, slowdown);
    }
  }
  return totals;
}

CauseTicks Ledger::close(std::size_t rank_class, std::int64_t end, const CauseTicks& kernels) {
  settle(rank_class, end);
  const Account& account = accounts_[rank_class];
  const std::int64_t kernel_sum = std::accumulate(kernels.begin(), kernels.end(), std::int64_t{0});
  ensure(account.ticks[kKernel] == kernel_sum, "rank class {}: its kernels last {} ps, but it ran them for {} ps",
         rank_class, kernel_sum, account.ticks[kKernel]);
  ensure(account.ticks[kNever] == 0, "rank class {}: {} ps passed between two steps", rank_class,
         account.ticks[kNever]);
  CauseTicks ledger = kernels;
  std::int64_t sum = 0;
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    ensure(account.ticks[cause] >= 0, "rank class {}: {} ps of {}", rank_class, account.ticks[cause],
           name(static_cast<Cause>(cause)));
    ledger[cause] += account.ticks[cause];
    sum += ledger[cause];
  }
  ensure(sum == end, "rank class {}: its ledger sums to {} ps of a step of {} ps", rank_class, sum, end);
  return ledger;
}

}  // namespace clustersim
