// Steps rank classes through their programs in simulated time.
#include "models/programs/executor.hpp"

#include <algorithm>
#include <bit>

#include "sim/errors.hpp"

namespace clustersim {

Executor::Executor(const Job& job, std::span<const StreamProgram> programs, const CommunicatorPlans& plans,
                   const Classes& classes, const ExecutionOptions& options)
    : job_(job),
      programs_(programs),
      plans_(plans),
      classes_(classes),
      options_(options),
      fluid_(simulation_),
      ledger_(classes.ranks.size()) {
  const bool pipeline = std::any_of(job.operations.begin(), job.operations.end(), [](const Operation& operation) {
    return operation.exposed_as == Cause::exposed_pipeline;
  });
  after_end_ = Ledger::column(pipeline ? Cause::bubble : Cause::straggler);
  for (std::size_t r = 0; r < classes.resources.size(); ++r) {
    ensure(fluid_.add_resource(classes.capacity[r]) == ResourceId(r), "resources are not numbered in order");
  }
  for (const std::uint32_t rank : classes.ranks.representative) {
    RankState state;
    state.program = job.program_of[rank];
    state.slowdown = job.slowdown.empty() ? 1.0 : job.slowdown[rank];
    state.unfinished = programs[state.program].streams();
    state.first_stream = streams_.size();
    for (std::uint32_t s = 0; s < state.unfinished; ++s) {
      streams_.push_back({});
      streams_.back().step = programs[state.program].stream_begin[s];
    }
    ranks_.push_back(state);
  }
  std::size_t instances = 0;
  for (std::uint32_t c = 0; c < classes.communicators.size(); ++c) {
    instance_begin_.push_back(instances);
    count_begin_.push_back(counts_.size());
    instances += sequence(c).of_position.size();
    counts_.resize(counts_.size() + sequence(c).distinct.size());
  }
  count_begin_.push_back(counts_.size());
  arrivals_.assign(instances, 0);
  unfinished_ = ranks_.size();
}

void Executor::run() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    run_streams(r, ~std::uint64_t{0} >> (64U - program(r).streams()));
  }
  simulation_.run();
  if (unfinished_ > 0) report_deadlock();
  ensure(fluid_.active() == 0, "all programs have ended, but {} transfers have not", fluid_.active());
}

void Executor::on_event(std::uint64_t payload) {
  report_progress();
  finish_step(static_cast<std::uint32_t>(payload >> 8U), static_cast<std::uint32_t>(payload & 0xffU));
}

void Executor::on_activity_done(ActivityId, std::uint64_t payload) {
  report_progress();
  const auto communicator_class = static_cast<std::uint32_t>(payload >> 32U);
  const auto position = static_cast<std::uint32_t>(payload & 0xffffffffU);
  const auto members = classes_.members_of(communicator_class);
  OperationCount& count =
      counts_[count_begin_[communicator_class] + sequence(communicator_class).of_position[position]];
  ++count.finished;
  count.busy += simulation_.now().count() -
                stream(members.front().rank_class, stream_of(members.front(), position)).transfer_start;
  // The allocation is checked against its definition at the 1st, 2nd, 4th, 8th, ... end of an operation: often enough
  // to catch a fault of the solver early and late in a run, rarely enough to cost nothing.
  if (std::has_single_bit(++done_)) simulation_.at_instant_end(*this);
  for (const MemberClass& member : members) finish_step(member.rank_class, stream_of(member, position));
}

void Executor::finish_step(std::uint32_t rank_class, std::uint32_t number) {
  StreamState& state = stream(rank_class, number);
  ensure(state.phase == Phase::kernel || state.phase == Phase::transfer,
         "a stream finished a step that was not running");
  if (options_.record_timeline) record(rank_class, number, state, program(rank_class).steps[state.step]);
  ++state.step;
  state.phase = Phase::ready;
  run_streams(rank_class, (std::uint64_t{1} << number) | streams_blocked_on(rank_class, number));
}

/// Lets the given streams go as far as they can in this instant, and books the time up to now.
void Executor::run_streams(std::uint32_t rank_class, std::uint64_t pending) {
  ledger_.settle(rank_class, simulation_.now().count());
  while (pending != 0) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(pending));
    pending &= pending - 1;
    pending |= advance(rank_class, number);
  }
  ledger_.set_column(rank_class, ledger_column(rank_class));
}

/// Takes one stream forward; returns the streams to look at again because of what it finished on the way.
std::uint64_t Executor::advance(std::uint32_t rank_class, std::uint32_t number) {
  RankState& rank = ranks_[rank_class];
  StreamState& state = stream(rank_class, number);
  const StreamProgram& compiled = programs_[rank.program];
  const std::int64_t now = simulation_.now().count();
  std::uint64_t woken = 0;
  while (state.step < compiled.stream_begin[number + std::size_t{1}]) {
    const Step& step = compiled.steps[state.step];
    if (held_back(rank_class, state, step)) return woken;
    state.since = now;
    if (step.collective) {
      state.phase = Phase::gathering;
      arrive(rank_class, step);
      return woken;
    }
    state.phase = Phase::kernel;
    const std::int64_t ticks = kernel_run(rank_class, step);
    if (ticks > 0) {
      simulation_.schedule_after(Picoseconds(ticks), *this, std::uint64_t{rank_class} << 8U | number);
      return woken;
    }
    ++state.step;
    state.phase = Phase::ready;
    woken |= streams_blocked_on(rank_class, number);
  }
  state.phase = Phase::finished;
  if (--rank.unfinished == 0) {
    rank.finished = now;
    end_ = std::max(end_, now);
    --unfinished_;
  }
  return woken;
}

bool Executor::held_back(std::uint32_t rank_class, StreamState& state, const Step& step) const {
  const StreamProgram& compiled = program(rank_class);
  for (std::uint32_t w = step.first_wait; w < step.first_wait + step.waits; ++w) {
    const StepWait& wait = compiled.waits[w];
    if (stream(rank_class, wait.stream).step - compiled.stream_begin[wait.stream] >= wait.steps) continue;
    state.phase = Phase::blocked;
    state.waiting_on = static_cast<std::uint8_t>(wait.stream);
    return true;
  }
  return false;
}

std::uint64_t Executor::streams_blocked_on(std::uint32_t rank_class, std::uint32_t number) const {
  std::uint64_t blocked = 0;
  for (std::uint32_t s = 0; s < program(rank_class).streams(); ++s) {
    const StreamState& state = stream(rank_class, s);
    if (state.phase == Phase::blocked && state.waiting_on == number) blocked |= std::uint64_t{1} << s;
  }
  return blocked;
}

std::int64_t Executor::kernel_run(std::uint32_t rank_class, const Step& step) const {
  const RankState& rank = ranks_[rank_class];
  if (rank.slowdown == 1.0) return step.nominal;
  const StreamProgram& compiled = programs_[rank.program];
  std::int64_t ticks = 0;
  for (std::uint32_t at = step.first; at < step.first + step.count; ++at) {
    ticks += kernel_ticks(job_.programs[rank.program].instructions[compiled.order[at]].duration, rank.slowdown);
  }
  return ticks;
}

void Executor::arrive(std::uint32_t rank_class, const Step& step) {
  const std::uint32_t communicator_class = classes_.class_of_slot[std::size_t{rank_class} * job_.slots + step.slot];
  const std::uint32_t arrived = ++arrivals_[instance_begin_[communicator_class] + step.position];
  const std::size_t needed = classes_.members_of(communicator_class).size();
  ensure(arrived <= needed, "operation {} of communicator class {} was issued {} times by {} member classes",
         step.position, communicator_class, arrived, needed);
  if (arrived == needed) start_operation(communicator_class, step.position);
}

void Executor::start_operation(std::uint32_t communicator_class, std::uint32_t position) {
  const std::int64_t now = simulation_.now().count();
  for (const MemberClass& member : classes_.members_of(communicator_class)) {
    StreamState& state = stream(member.rank_class, stream_of(member, position));
    state.phase = Phase::transfer;
    state.transfer_start = now;
    ledger_.settle(member.rank_class, now);
    ledger_.set_column(member.rank_class, ledger_column(member.rank_class));
  }
  const std::uint32_t distinct = sequence(communicator_class).of_position[position];
  const OperationPlan& plan = plans_.plans_of(classes_.communicators.representative[communicator_class])[distinct];
  ++counts_[count_begin_[communicator_class] + distinct].started;
  ActivitySpec activity;
  activity.amount = plan.amount;
  activity.latency = plan.latency;
  activity.rate_cap = plan.rate_cap;
  activity.uses = classes_.uses_of(communicator_class, plan.shape);
  fluid_.start(activity, *this, std::uint64_t{communicator_class} << 32U | position);
}

/// What the compute stream is held up by. While it waits for another stream, that stream's present occupation is the
/// cause, be it the awaited operation or an earlier one in the queue before it: that one is in the way. After the
/// last compute step, the same is asked of the rank's other streams until they have finished.
std::uint8_t Executor::ledger_column(std::uint32_t rank_class) const {
  const std::uint32_t count = program(rank_class).streams();
  std::uint32_t number = 0;
  if (stream(rank_class, 0).phase == Phase::finished) {
    while (number < count && stream(rank_class, number).phase == Phase::finished) ++number;
    if (number == count) return after_end_;
  }
  for (std::uint32_t links = 0; links <= count; ++links) {
    const StreamState& state = stream(rank_class, number);
    if (state.phase == Phase::ready || state.phase == Phase::finished) return Ledger::kNever;
    const Cause cause = program(rank_class).steps[state.step].cause;
    switch (state.phase) {
      case Phase::kernel:
        return number == 0 ? Ledger::kKernel : Ledger::column(cause);
      case Phase::gathering:
        return Ledger::column(waiting_cause(cause));
      case Phase::transfer:
        return Ledger::column(cause);
      default:
        number = state.waiting_on;
    }
  }
  return Ledger::kNever;  // streams that wait in a circle: a deadlock, reported when the queue has run dry
}

void Executor::record(std::uint32_t rank_class, std::uint32_t number, const StreamState& state, const Step& step) {
  const RankState& rank = ranks_[rank_class];
  const StreamProgram& compiled = programs_[rank.program];
  const auto add = [&](std::uint32_t label, Cause cause, std::int64_t start, std::int64_t end) {
    if (start == end) return;
    timeline_.push_back(
        {rank_class, static_cast<std::uint8_t>(number), label, cause, Picoseconds(start), Picoseconds(end)});
  };
  std::int64_t start = state.since;
  for (std::uint32_t at = step.first; at < step.first + step.count; ++at) {
    const Instruction& instruction = job_.programs[rank.program].instructions[compiled.order[at]];
    if (step.collective) {
      add(instruction.label, waiting_cause(step.cause), start, state.transfer_start);
      add(instruction.label, step.cause, state.transfer_start, simulation_.now().count());
    } else {
      const std::int64_t end = start + kernel_ticks(instruction.duration, rank.slowdown);
      add(instruction.label, instruction.cause, start, end);
      start = end;
    }
  }
}

void Executor::report_progress() {
  if ((++calls_ & 0x3fffU) != 0 || !options_.progress) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_report_ < std::chrono::milliseconds(500)) return;
  last_report_ = now;
  options_.progress(simulation_.now(), simulation_.events_processed());
}

bool Executor::has_issued(std::uint32_t rank, std::uint32_t slot, std::uint32_t position) const {
  const std::uint32_t rank_class = classes_.ranks.class_of[rank];
  const StreamState& state = stream(rank_class, stream_of({rank_class, slot}, position));
  const std::vector<Step>& steps = program(rank_class).steps;
  const auto step = std::find_if(steps.begin(), steps.end(), [&](const Step& candidate) {
    return candidate.collective && candidate.slot == slot && candidate.position == position;
  });
  const auto number = static_cast<std::uint32_t>(step - steps.begin());
  return state.step > number ||
         (state.step == number && (state.phase == Phase::gathering || state.phase == Phase::transfer));
}

std::string Executor::describe_wait(std::uint32_t rank_class, std::uint32_t number) const {
  const StreamState& state = stream(rank_class, number);
  const std::uint32_t rank = classes_.ranks.representative[rank_class];
  const Step& step = program(rank_class).steps[state.step];
  const Instruction& instruction =
      job_.programs[ranks_[rank_class].program].instructions[program(rank_class).order[step.first]];
  const std::string where =
      fmt::format("rank {} stream {} waits in \"{}\"", rank, number, job_.labels[instruction.label]);
  if (state.phase == Phase::blocked) return fmt::format("{} for its stream {}", where, state.waiting_on);
  if (state.phase != Phase::gathering) return fmt::format("{}, whose transfer does not move", where);
  std::string missing;
  const CommunicatorId id = job_.slot_of[std::size_t{rank} * job_.slots + step.slot];
  std::size_t named = 0;
  for (std::uint32_t e = job_.member_begin[id.index()]; e < job_.member_begin[id.index() + 1]; ++e) {
    const SlotEntry& entry = plans_.entries[e];
    if (has_issued(entry.rank, entry.slot, step.position)) continue;
    if (++named > 3) {
      missing += ", ...";
      break;
    }
    missing += fmt::format("{}rank {}", missing.empty() ? "" : ", ", entry.rank);
  }
  return fmt::format("{} (slot {}, operation {}) for {}", where, step.slot, step.position, missing);
}

void Executor::report_deadlock() const {
  std::string text = fmt::format("the job is deadlocked at {} ps", simulation_.now().count());
  std::size_t named = 0;
  for (const Phase phase : {Phase::gathering, Phase::transfer, Phase::blocked}) {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      for (std::uint32_t s = 0; s < program(r).streams(); ++s) {
        if (stream(r, s).phase != phase || named == 3) continue;
        text += (named++ == 0 ? ": " : "; ") + describe_wait(r, s);
      }
    }
  }
  throw BrokenContract(text);
}

}  // namespace clustersim
