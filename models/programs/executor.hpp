// The stepping itself: rank classes walk through their steps, classes of communicators transfer through the network.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/programs/classes.hpp"
#include "models/programs/execute.hpp"
#include "models/programs/ledger.hpp"
#include "models/programs/plans.hpp"
#include "models/programs/streams.hpp"
#include "sim/fluid.hpp"
#include "sim/simulation.hpp"

namespace clustersim {

/// How often one distinct operation of a communicator class was started and finished.
struct OperationCount {
  std::uint64_t started = 0;
  std::uint64_t finished = 0;
  std::int64_t busy = 0;  // ticks from start to finish, summed
};

class Executor final : private EventHandler, private FluidListener, private InstantHook {
 public:
  Executor(const Job& job, std::span<const StreamProgram> programs, const CommunicatorPlans& plans,
           const Classes& classes, const ExecutionOptions& options);
  ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Steps all programs to their end; throws BrokenContract on deadlock.
  void run();

  [[nodiscard]] std::int64_t end() const { return end_; }
  [[nodiscard]] std::int64_t finished(std::size_t rank_class) const { return ranks_[rank_class].finished; }
  [[nodiscard]] std::uint32_t program_of(std::size_t rank_class) const { return ranks_[rank_class].program; }
  [[nodiscard]] double slowdown_of(std::size_t rank_class) const { return ranks_[rank_class].slowdown; }
  [[nodiscard]] std::span<const OperationCount> counts(std::size_t communicator_class) const {
    const std::size_t begin = count_begin_[communicator_class];
    return std::span(counts_).subspan(begin, count_begin_[communicator_class + 1] - begin);
  }
  Ledger& ledger() { return ledger_; }
  Fluid& fluid() { return fluid_; }
  [[nodiscard]] std::uint64_t events() const { return simulation_.events_processed(); }
  std::vector<TimelineInterval>& timeline() { return timeline_; }

 private:
  enum class Phase : std::uint8_t {
    ready,    // about to look at its next step; never when the instant is over
    blocked,  // the step waits for another stream
    kernel,
    gathering,  // issued an operation; other members have not
    transfer,   // all members have
    finished,
  };
  struct StreamState {
    std::uint32_t step = 0;  // index into the program's steps
    Phase phase = Phase::ready;
    std::uint8_t waiting_on = 0;  // stream, while blocked
    std::int64_t since = 0;       // start of the kernel, or when the operation was issued
    std::int64_t transfer_start = 0;
  };
  struct RankState {
    std::uint32_t program = 0;
    std::uint32_t unfinished = 0;  // streams
    double slowdown = 1;
    std::size_t first_stream = 0;  // index into streams_
    std::int64_t finished = -1;
  };

  void on_event(std::uint64_t payload) override;
  void on_activity_done(ActivityId id, std::uint64_t payload) override;
  void on_instant_end() override { fluid_.check_invariants(); }

  StreamState& stream(std::uint32_t rank_class, std::uint32_t number) {
    return streams_[ranks_[rank_class].first_stream + number];
  }
  [[nodiscard]] const StreamState& stream(std::uint32_t rank_class, std::uint32_t number) const {
    return streams_[ranks_[rank_class].first_stream + number];
  }
  [[nodiscard]] const StreamProgram& program(std::uint32_t rank_class) const {
    return programs_[ranks_[rank_class].program];
  }
  [[nodiscard]] std::uint32_t stream_of(const MemberClass& member, std::uint32_t position) const {
    const StreamProgram& compiled = program(member.rank_class);
    return compiled.slot_stream[compiled.slot_begin[member.slot] + position];
  }

  void finish_step(std::uint32_t rank_class, std::uint32_t number);
  void run_streams(std::uint32_t rank_class, std::uint64_t pending);
  std::uint64_t advance(std::uint32_t rank_class, std::uint32_t number);
  [[nodiscard]] bool held_back(std::uint32_t rank_class, StreamState& state, const Step& step) const;
  [[nodiscard]] std::uint64_t streams_blocked_on(std::uint32_t rank_class, std::uint32_t number) const;
  [[nodiscard]] std::int64_t kernel_run(std::uint32_t rank_class, const Step& step) const;
  void arrive(std::uint32_t rank_class, const Step& step);
  void start_operation(std::uint32_t communicator_class, std::uint32_t position);
  [[nodiscard]] const OperationSequence& sequence(std::uint32_t communicator_class) const {
    return plans_.sequence(classes_.communicators.representative[communicator_class]);
  }
  [[nodiscard]] std::uint8_t ledger_column(std::uint32_t rank_class) const;
  void record(std::uint32_t rank_class, std::uint32_t number, const StreamState& state, const Step& step);
  void report_progress();
  [[noreturn]] void report_deadlock() const;
  [[nodiscard]] std::string describe_wait(std::uint32_t rank_class, std::uint32_t number) const;
  [[nodiscard]] bool has_issued(std::uint32_t rank, std::uint32_t slot, std::uint32_t position) const;

  const Job& job_;
  std::span<const StreamProgram> programs_;
  const CommunicatorPlans& plans_;
  const Classes& classes_;
  const ExecutionOptions& options_;
  Simulation<Picoseconds> simulation_;
  Fluid fluid_;
  Ledger ledger_;
  std::uint8_t after_end_;        // ledger column for the time after a rank's last step
  std::vector<RankState> ranks_;  // per rank class
  std::vector<StreamState> streams_;
  std::vector<std::size_t> instance_begin_;  // per communicator class: its operation 0 in arrivals_
  std::vector<std::uint32_t> arrivals_;      // member classes that have issued the operation
  std::vector<std::size_t> count_begin_;
  std::vector<OperationCount> counts_;
  std::vector<TimelineInterval> timeline_;
  std::size_t unfinished_ = 0;  // rank classes
  std::int64_t end_ = 0;
  std::uint64_t done_ = 0;  // operations finished
  std::uint64_t calls_ = 0;
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();  // for display only
};

}  // namespace clustersim
