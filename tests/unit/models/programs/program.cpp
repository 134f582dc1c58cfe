// The job's own bookkeeping: labels, operations, waits and communicator slots.
#include "models/programs/program.hpp"

#include <array>
#include <set>

#include "sim/errors.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("every cause has a name of its own") {
  std::set<std::string_view> names;
  for (std::size_t cause = 0; cause < kCauses; ++cause) names.insert(name(static_cast<Cause>(cause)));
  CHECK(names.size() == kCauses);
  CHECK(name(Cause::compute) == "compute");
  CHECK(name(Cause::other) == "other");
}

TEST_CASE("the builder writes equal labels and operations once, also across programs") {
  Job job;
  const Operation operation{Collective::all_reduce, Bytes(1024), Cause::exposed_data};
  for (int program = 0; program < 2; ++program) {
    ProgramBuilder builder(job, 2);
    const std::uint32_t forward = builder.kernel(0, Cause::compute, "forward", Picoseconds(5));
    const std::uint32_t reduce = builder.collective(1, 3, operation, "gradients", std::array{forward});
    CHECK(builder.kernel(0, Cause::compute, "forward", Picoseconds(6), std::array{forward, reduce}) == 2);
    CHECK(builder.finish() == static_cast<std::uint32_t>(program));
  }
  CHECK(job.labels == std::vector<std::string>{"forward", "gradients"});
  CHECK(job.operations.size() == 1);
  CHECK(job.programs.size() == 2);
  const Program& program = job.programs[1];
  CHECK(program.streams == 2);
  CHECK(program.instructions[1].slot == 3);
  CHECK(program.instructions[1].cause == Cause::exposed_data);
  CHECK(program.waits == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(program.instructions[2].first_wait == 1);
  CHECK(program.instructions[2].waits == 2);
}

TEST_CASE("operations that book their waiting differently are different operations") {
  Job job;
  ProgramBuilder builder(job, 1);
  builder.collective(0, 0, {Collective::all_gather, Bytes(8), Cause::exposed_data}, "a");
  builder.collective(0, 0, {Collective::all_gather, Bytes(8), Cause::exposed_tensor}, "a");
  builder.finish();
  CHECK(job.operations.size() == 2);
}

TEST_CASE("the builder refuses waits for later instructions, streams it does not have and negative sizes") {
  Job job;
  ProgramBuilder builder(job, 1);
  CHECK_THROWS_AS(builder.kernel(0, Cause::compute, "k", Picoseconds(1), std::array{0U}), BrokenContract);
  CHECK_THROWS_AS(builder.kernel(1, Cause::compute, "k", Picoseconds(1)), BrokenContract);
  CHECK_THROWS_AS(builder.kernel(0, Cause::compute, "k", Picoseconds(-1)), BrokenContract);
  CHECK_THROWS_AS(builder.collective(0, 0, {Collective::all_reduce, Bytes(-1), Cause::exposed_data}, "c"),
                  BrokenContract);
}

TEST_CASE("a communicator is entered in the given slot of each member") {
  Job job;
  job.program_of = {0, 0, 0};
  job.slots = 2;
  const CommunicatorId pair =
      job.add_communicator(std::array{RankId(2U), RankId(0U)}, std::array<std::uint16_t, 2>{1, 0});
  CHECK(job.communicators() == 1);
  CHECK(job.slot_of[2 * 2 + 1] == pair);
  CHECK(job.slot_of[0] == pair);
  CHECK_FALSE(job.slot_of[1].valid());
  CHECK(job.communicator(pair)[0] == RankId(2U));  // the order given, which algorithms read
  SECTION("a slot holds one communicator") {
    CHECK_THROWS_AS(job.add_communicator(std::array{RankId(0U)}, std::array<std::uint16_t, 1>{0}), BrokenContract);
  }
  SECTION("ranks and slots must exist, and there is one slot for each member") {
    CHECK_THROWS_AS(job.add_communicator(std::array{RankId(3U)}, std::array<std::uint16_t, 1>{0}), BrokenContract);
    CHECK_THROWS_AS(job.add_communicator(std::array{RankId(1U)}, std::array<std::uint16_t, 1>{2}), BrokenContract);
    CHECK_THROWS_AS(job.add_communicator(std::array{RankId(1U)}, std::array<std::uint16_t, 2>{0, 1}), BrokenContract);
  }
}
