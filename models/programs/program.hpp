// What ranks do: programs of kernels and collectives on streams, ranks mapped to GPUs, ranks joined in communicators.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/collectives/collective.hpp"
#include "sim/ids.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {

/// The ledger's columns: every GPU-second goes to exactly one.
enum class Cause : std::uint8_t {
  compute,    // forward and backward kernels that are model work
  recompute,  // forward work done again in the backward pass
  optimizer,
  exposed_tensor,  // communication the compute stream had to wait for, by parallelism
  exposed_pipeline,
  exposed_data,
  exposed_context,
  exposed_expert,
  exposed_other,
  bubble,     // waiting for another pipeline stage to produce or accept work
  straggler,  // waiting for slower members of the same communicator
  other,      // host overhead and anything that is none of the above
};
inline constexpr std::size_t kCauses = 12;
std::string_view name(Cause cause);

/// One collective or point-to-point operation of a workload. A send/receive is the operation send_receive on a
/// communicator of two, member 0 to member 1; both members issue it.
struct Operation {
  Collective collective = Collective::all_reduce;
  Bytes bytes{0};
  Cause exposed_as = Cause::exposed_other;
};

struct Instruction {
  enum class Kind : std::uint8_t { kernel, collective };
  Kind kind = Kind::kernel;
  std::uint8_t stream = 0;       // 0 is the compute stream; instructions of a stream run in order
  Cause cause = Cause::compute;  // kernels: where its time is booked
  std::uint16_t slot = 0;        // collectives: which of the rank's communicators
  std::uint32_t operation = 0;   // collectives: index into Job::operations
  std::uint32_t label = 0;       // index into Job::labels
  Picoseconds duration{0};       // kernels: on a GPU of nominal speed
  std::uint32_t first_wait = 0;  // range in Program::waits: instructions of this program that must have finished
  std::uint32_t waits = 0;
};

struct Program {
  std::vector<Instruction> instructions;  // in issue order; waits point to earlier instructions only
  std::vector<std::uint32_t> waits;
  std::uint8_t streams = 1;
};

using RankId = Id<struct RankTag>;
using CommunicatorId = Id<struct CommunicatorTag>;

/// A whole job: programs, which rank runs which, on which GPU, and who talks to whom.
struct Job {
  std::string name;
  std::vector<std::string> labels;
  std::vector<Operation> operations;
  std::vector<Program> programs;
  std::vector<std::uint32_t> program_of;       // per rank
  std::vector<GpuId> gpu_of;                   // per rank
  std::vector<double> slowdown;                // per rank, multiplies kernel durations; empty = all 1
  std::uint32_t slots = 0;                     // communicator slots per rank
  std::vector<CommunicatorId> slot_of;         // [rank x slots + slot]; invalid id = unused
  std::vector<std::uint32_t> member_begin{0};  // per communicator, plus the end: range in members
  std::vector<RankId> members;                 // order matters to algorithms

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(program_of.size()); }
  [[nodiscard]] std::uint32_t communicators() const { return static_cast<std::uint32_t>(member_begin.size() - 1); }
  [[nodiscard]] std::span<const RankId> communicator(CommunicatorId id) const {
    return std::span(members).subspan(member_begin[id.index()],
                                      member_begin[id.index() + 1] - member_begin[id.index()]);
  }
  /// Adds a communicator and enters it in the given slot of each member (slots[i] for members[i]; a member may be
  /// entered under different slots, as sender and receiver are).
  /// program_of and slots must be complete before the first call.
  CommunicatorId add_communicator(std::span<const RankId> ranks_of_it, std::span<const std::uint16_t> slot_per_member);
};

/// Writes programs: keeps instruction numbers, labels and waits consistent.
class ProgramBuilder {
 public:
  ProgramBuilder(Job& job, std::uint8_t streams);
  /// Each returns the number of the new instruction, to wait for.
  std::uint32_t kernel(std::uint8_t stream, Cause cause, std::string_view label, Picoseconds duration,
                       std::span<const std::uint32_t> waits = {});
  std::uint32_t collective(std::uint8_t stream, std::uint16_t slot, const Operation& operation, std::string_view label,
                           std::span<const std::uint32_t> waits = {});
  /// Appends the program to the job and returns its index.
  std::uint32_t finish();

 private:
  using OperationKey = std::tuple<Collective, std::int64_t, Cause>;
  static OperationKey key(const Operation& operation);
  std::uint32_t append(Instruction instruction, std::span<const std::uint32_t> waits);
  std::uint32_t label_index(std::string_view label);
  std::uint32_t operation_index(const Operation& operation);
  Job& job_;
  Program program_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
  std::map<OperationKey, std::uint32_t> operations_;
};

}  // namespace clustersim
