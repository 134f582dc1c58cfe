// Compiles a program into steps: instructions grouped by stream, waits as step counts, kernels fused.
#include "models/programs/streams.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

void check_program(const Job& job, std::uint32_t number) {
  const Program& program = job.programs[number];
  ensure(program.streams >= 1, "program {} has no stream", number);
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    ensure(instruction.stream < program.streams, "program {} instruction {}: stream {} of {}", number, i,
           instruction.stream, program.streams);
    ensure(instruction.label < job.labels.size(), "program {} instruction {}: label {} of {}", number, i,
           instruction.label, job.labels.size());
    ensure(instruction.duration.count() >= 0, "program {} instruction {}: lasts {} ps", number, i,
           instruction.duration.count());
    ensure(std::size_t{instruction.first_wait} + instruction.waits <= program.waits.size(),
           "program {} instruction {}: its waits are outside the program's", number, i);
    for (std::uint32_t w = 0; w < instruction.waits; ++w) {
      ensure(program.waits[instruction.first_wait + w] < i, "program {} instruction {} waits for a later one", number,
             i);
    }
    if (instruction.kind != Instruction::Kind::collective) continue;
    ensure(instruction.slot < job.slots, "program {} instruction {} (\"{}\"): slot {} of {}", number, i,
           job.labels[instruction.label], instruction.slot, job.slots);
    ensure(instruction.operation < job.operations.size(), "program {} instruction {}: operation {} of {}", number, i,
           instruction.operation, job.operations.size());
  }
}

/// Compiles one program; the members are the intermediate results its passes share.
class Compiler {
 public:
  Compiler(const Job& job, const Program& program) : job_(job), program_(program) {}

  StreamProgram compile() {
    order_by_stream();
    number_operations();
    find_waits();
    make_steps();
    place_waits();
    return std::move(result_);
  }

 private:
  struct Wait {
    std::uint32_t stream;
    std::uint32_t instruction;
  };

  void order_by_stream() {
    const auto instructions = static_cast<std::uint32_t>(program_.instructions.size());
    order_begin_.assign(program_.streams + std::size_t{1}, 0);
    for (const Instruction& instruction : program_.instructions) ++order_begin_[instruction.stream + std::size_t{1}];
    for (std::size_t s = 0; s < program_.streams; ++s) order_begin_[s + 1] += order_begin_[s];
    std::vector<std::uint32_t> next(order_begin_.begin(), order_begin_.end() - 1);
    result_.order.resize(instructions);
    place_.resize(instructions);
    for (std::uint32_t i = 0; i < instructions; ++i) {
      place_[i] = next[program_.instructions[i].stream]++;
      result_.order[place_[i]] = i;
    }
  }

  void number_operations() {
    std::vector<std::uint32_t>& begin = result_.slot_begin;
    begin.assign(job_.slots + std::size_t{1}, 0);
    for (const Instruction& instruction : program_.instructions) {
      if (instruction.kind == Instruction::Kind::collective) ++begin[instruction.slot + std::size_t{1}];
    }
    for (std::size_t s = 0; s < job_.slots; ++s) begin[s + 1] += begin[s];
    result_.slot_operation.resize(begin.back());
    result_.slot_stream.resize(begin.back());
    position_.assign(program_.instructions.size(), 0);
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (instruction.kind != Instruction::Kind::collective) continue;
      const std::uint32_t entry = next[instruction.slot]++;
      position_[i] = entry - begin[instruction.slot];
      result_.slot_operation[entry] = instruction.operation;
      result_.slot_stream[entry] = instruction.stream;
    }
  }

  /// Keeps the waits that can hold a stream back: those on other streams, beyond what an earlier instruction of the
  /// same stream waited for already, and only the latest per stream. What they point to becomes observable.
  void find_waits() {
    constexpr std::uint32_t kNone = ~0U;
    observed_.assign(program_.instructions.size(), false);
    wait_begin_.assign(program_.instructions.size() + 1, 0);
    std::vector<std::uint32_t> known(std::size_t{program_.streams} * program_.streams,
                                     kNone);  // latest place waited for
    for (std::uint32_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      wait_begin_[i] = static_cast<std::uint32_t>(waits_.size());
      for (std::uint32_t w = 0; w < instruction.waits; ++w) {
        const std::uint32_t target = program_.waits[instruction.first_wait + w];
        const std::uint8_t stream = program_.instructions[target].stream;
        if (stream == instruction.stream) continue;
        std::uint32_t& latest = known[std::size_t{instruction.stream} * program_.streams + stream];
        if (latest != kNone && place_[target] <= latest) continue;
        latest = place_[target];
        const auto same = std::find_if(waits_.begin() + wait_begin_[i], waits_.end(),
                                       [&](const Wait& wait) { return wait.stream == stream; });
        if (same == waits_.end()) {
          waits_.push_back({stream, target});
        } else {
          same->instruction = target;
        }
      }
    }
    wait_begin_.back() = static_cast<std::uint32_t>(waits_.size());
    for (const Wait& wait : waits_) observed_[wait.instruction] = true;
  }

  /// Nobody can tell one event at the end of a run of kernels from one event per kernel when nothing waits for the
  /// inner ones and the inner ones wait for nothing. Off the compute stream a run keeps one cause, because the ledger
  /// books waiting for it under that cause.
  [[nodiscard]] bool fuses(std::uint32_t before, std::uint32_t after) const {
    const Instruction& first = program_.instructions[before];
    const Instruction& second = program_.instructions[after];
    return first.kind == Instruction::Kind::kernel && second.kind == Instruction::Kind::kernel && !observed_[before] &&
           wait_begin_[after] == wait_begin_[after + 1] && (first.stream == 0 || first.cause == second.cause);
  }

  void make_steps() {
    step_of_.resize(program_.instructions.size());
    for (std::size_t s = 0; s < program_.streams; ++s) {
      result_.stream_begin.push_back(static_cast<std::uint32_t>(result_.steps.size()));
      for (std::uint32_t at = order_begin_[s]; at < order_begin_[s + 1]; ++at) {
        const std::uint32_t i = result_.order[at];
        const Instruction& instruction = program_.instructions[i];
        if (at == order_begin_[s] || !fuses(result_.order[at - 1], i)) {
          Step step;
          step.collective = instruction.kind == Instruction::Kind::collective;
          step.cause = step.collective ? job_.operations[instruction.operation].exposed_as : instruction.cause;
          step.slot = instruction.slot;
          step.position = position_[i];
          step.first = at;
          result_.steps.push_back(step);
        }
        ++result_.steps.back().count;
        result_.steps.back().nominal += instruction.duration.count();
        step_of_[i] = static_cast<std::uint32_t>(result_.steps.size() - 1);
      }
    }
    result_.stream_begin.push_back(static_cast<std::uint32_t>(result_.steps.size()));
  }

  void place_waits() {
    for (Step& step : result_.steps) {
      const std::uint32_t i = result_.order[step.first];
      step.first_wait = static_cast<std::uint32_t>(result_.waits.size());
      step.waits = wait_begin_[i + 1] - wait_begin_[i];
      for (std::uint32_t w = wait_begin_[i]; w < wait_begin_[i + 1]; ++w) {
        const Wait& wait = waits_[w];
        result_.waits.push_back({wait.stream, step_of_[wait.instruction] + 1 - result_.stream_begin[wait.stream]});
      }
    }
  }

  const Job& job_;
  const Program& program_;
  StreamProgram result_;
  std::vector<std::uint32_t> order_begin_;  // per stream, plus the end: range in order
  std::vector<std::uint32_t> place_;        // per instruction: where it stands in order
  std::vector<std::uint32_t> position_;     // per instruction: its position on its slot
  std::vector<std::uint32_t> step_of_;      // per instruction
  std::vector<bool> observed_;              // per instruction: somebody waits for it
  std::vector<std::uint32_t> wait_begin_;   // per instruction, plus the end: range in waits_
  std::vector<Wait> waits_;
};

}  // namespace

std::int64_t kernel_ticks(Picoseconds nominal, double slowdown) {
  if (slowdown == 1.0) return nominal.count();
  return std::llround(static_cast<double>(nominal.count()) * slowdown);
}

StreamProgram compile_program(const Job& job, std::uint32_t program) {
  check_program(job, program);
  return Compiler(job, job.programs[program]).compile();
}

}  // namespace clustersim
