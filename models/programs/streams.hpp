// A program as the executor walks it: steps stream by stream, with needless waits dropped and undisturbed kernels
// fused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/programs/program.hpp"

namespace clustersim {

/// Streams are in order, so a wait for one instruction is a wait for a count: `stream` must have done `steps` steps.
struct StepWait {
  std::uint32_t stream = 0;
  std::uint32_t steps = 0;
};

/// What a stream does between two moments that anybody can observe: a run of kernels, or one collective.
struct Step {
  bool collective = false;
  Cause cause = Cause::compute;  // kernels: the first one's; collectives: exposed_as
  std::uint16_t slot = 0;        // collectives: which of the rank's communicators
  std::uint32_t position = 0;    // collectives: how many earlier ones of the program use the same slot
  std::uint32_t first = 0;       // its instructions: range in StreamProgram::order
  std::uint32_t count = 0;
  std::uint32_t first_wait = 0;  // range in StreamProgram::waits
  std::uint32_t waits = 0;
  std::int64_t nominal = 0;  // kernels: ticks on a GPU of nominal speed
};

struct StreamProgram {
  std::vector<Step> steps;                  // stream after stream
  std::vector<std::uint32_t> stream_begin;  // per stream, plus the end
  std::vector<std::uint32_t> order;         // instruction numbers, stream after stream
  std::vector<StepWait> waits;
  // The collectives of each slot in program order. A position on the slot names one operation of the communicator.
  std::vector<std::uint32_t> slot_begin;      // per slot, plus the end: range in the two below
  std::vector<std::uint32_t> slot_operation;  // index into Job::operations
  std::vector<std::uint8_t> slot_stream;

  [[nodiscard]] std::uint32_t streams() const { return static_cast<std::uint32_t>(stream_begin.size() - 1); }
  [[nodiscard]] std::span<const std::uint32_t> operations(std::uint32_t slot) const {
    return std::span(slot_operation).subspan(slot_begin[slot], slot_begin[slot + 1] - slot_begin[slot]);
  }
};

/// A kernel on a GPU that is `slowdown` times slower than nominal, rounded once.
std::int64_t kernel_ticks(Picoseconds nominal, double slowdown);

/// Checks a program against its job (throws BrokenContract) and compiles it.
StreamProgram compile_program(const Job& job, std::uint32_t program);

}  // namespace clustersim
