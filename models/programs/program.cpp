// Jobs and programs as data: names, communicators in slots, and the builder that keeps a program consistent.
#include "models/programs/program.hpp"

#include <array>
#include <utility>

#include "sim/errors.hpp"

namespace clustersim {

std::string_view name(Cause cause) {
  static constexpr std::array<std::string_view, kCauses> kNames = {
      "compute",         "recompute",      "optimizer",     "exposed_tensor", "exposed_pipeline", "exposed_data",
      "exposed_context", "exposed_expert", "exposed_other", "bubble",         "straggler",        "other"};
  return kNames[static_cast<std::size_t>(cause)];
}

CommunicatorId Job::add_communicator(std::span<const RankId> ranks_of_it,
                                     std::span<const std::uint16_t> slot_per_member) {
  ensure(!ranks_of_it.empty(), "job {}: a communicator without members", name);
  ensure(ranks_of_it.size() == slot_per_member.size(), "job {}: {} members of a communicator, but {} slots", name,
         ranks_of_it.size(), slot_per_member.size());
  const std::size_t entries = std::size_t{ranks()} * slots;
  if (slot_of.empty()) slot_of.resize(entries);
  ensure(slot_of.size() == entries, "job {}: ranks or slots changed after the first communicator", name);
  const CommunicatorId id(std::size_t{communicators()});
  for (std::size_t i = 0; i < ranks_of_it.size(); ++i) {
    const RankId rank = ranks_of_it[i];
    const std::uint16_t slot = slot_per_member[i];
    ensure(rank.index() < ranks(), "job {}: rank {} is not one of its {} ranks", name, rank.value(), ranks());
    ensure(slot < slots, "job {}: slot {} is not one of its {} slots", name, slot, slots);
    CommunicatorId& entry = slot_of[rank.index() * slots + slot];
    ensure(!entry.valid(), "job {}: slot {} of rank {} already holds communicator {}", name, slot, rank.value(),
           entry.value());
    entry = id;
    members.push_back(rank);
  }
  member_begin.push_back(static_cast<std::uint32_t>(members.size()));
  return id;
}

ProgramBuilder::ProgramBuilder(Job& job, std::uint8_t streams) : job_(job) {
  ensure(streams >= 1, "job {}: a program needs at least the compute stream", job.name);
  program_.streams = streams;
  for (std::uint32_t i = 0; i < job.labels.size(); ++i) labels_.try_emplace(job.labels[i], i);
  for (std::uint32_t i = 0; i < job.operations.size(); ++i) operations_.try_emplace(key(job.operations[i]), i);
}

std::uint32_t ProgramBuilder::kernel(std::uint8_t stream, Cause cause, std::string_view label, Picoseconds duration,
                                     std::span<const std::uint32_t> waits) {
  ensure(duration.count() >= 0, "kernel \"{}\" lasts {} ps", label, duration.count());
  Instruction instruction;
  instruction.kind = Instruction::Kind::kernel;
  instruction.stream = stream;
  instruction.cause = cause;
  instruction.label = label_index(label);
  instruction.duration = duration;
  return append(instruction, waits);
}

std::uint32_t ProgramBuilder::collective(std::uint8_t stream, std::uint16_t slot, const Operation& operation,
                                         std::string_view label, std::span<const std::uint32_t> waits) {
  ensure(operation.bytes.value() >= 0, "operation \"{}\" moves {} bytes", label, operation.bytes.value());
  Instruction instruction;
  instruction.kind = Instruction::Kind::collective;
  instruction.stream = stream;
  instruction.cause = operation.exposed_as;
  instruction.slot = slot;
  instruction.operation = operation_index(operation);
  instruction.label = label_index(label);
  return append(instruction, waits);
}

std::uint32_t ProgramBuilder::append(Instruction instruction, std::span<const std::uint32_t> waits) {
  const auto number = static_cast<std::uint32_t>(program_.instructions.size());
  ensure(instruction.stream < program_.streams, "stream {} of a program with {} streams", instruction.stream,
         program_.streams);
  instruction.first_wait = static_cast<std::uint32_t>(program_.waits.size());
  instruction.waits = static_cast<std::uint32_t>(waits.size());
  for (const std::uint32_t wait : waits) {
    ensure(wait < number, "instruction {} waits for instruction {}, which is not earlier", number, wait);
    program_.waits.push_back(wait);
  }
  program_.instructions.push_back(instruction);
  return number;
}

std::uint32_t ProgramBuilder::finish() {
  job_.programs.push_back(std::move(program_));
  program_ = Program{};
  return static_cast<std::uint32_t>(job_.programs.size() - 1);
}

ProgramBuilder::OperationKey ProgramBuilder::key(const Operation& operation) {
  return {operation.collective, operation.bytes.value(), operation.exposed_as};
}

std::uint32_t ProgramBuilder::label_index(std::string_view label) {
  const auto known = labels_.find(label);
  if (known != labels_.end()) return known->second;
  const auto index = static_cast<std::uint32_t>(job_.labels.size());
  job_.labels.emplace_back(label);
  labels_.emplace(label, index);
  return index;
}

std::uint32_t ProgramBuilder::operation_index(const Operation& operation) {
  const auto [entry, added] =
      operations_.try_emplace(key(operation), static_cast<std::uint32_t>(job_.operations.size()));
  if (added) job_.operations.push_back(operation);
  return entry->second;
}

}  // namespace clustersim
