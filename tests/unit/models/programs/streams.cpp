// Compiling a program into steps: fusing kernels, dropping needless waits, numbering operations.
#include "models/programs/streams.hpp"

#include <array>

#include "sim/errors.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {
const Operation kReduce{Collective::all_reduce, Bytes(1024), Cause::exposed_data};
}

TEST_CASE("kernels that nobody watches become one step of their total time") {
  Job job;
  ProgramBuilder builder(job, 1);
  for (int i = 1; i <= 4; ++i) builder.kernel(0, Cause::compute, "k", Picoseconds(i));
  const StreamProgram compiled = compile_program(job, builder.finish());
  REQUIRE(compiled.steps.size() == 1);
  CHECK(compiled.steps[0].nominal == 10);
  CHECK(compiled.steps[0].count == 4);
}

TEST_CASE("a kernel that another stream waits for ends its step; so does one before a kernel that waits") {
  Job job;
  job.slots = 1;
  ProgramBuilder builder(job, 2);
  builder.kernel(0, Cause::compute, "a", Picoseconds(1));
  const std::uint32_t watched = builder.kernel(0, Cause::compute, "b", Picoseconds(1));
  builder.kernel(0, Cause::compute, "c", Picoseconds(1));
  const std::uint32_t reduce = builder.collective(1, 0, kReduce, "r", std::array{watched});
  builder.kernel(0, Cause::compute, "d", Picoseconds(1));
  builder.kernel(0, Cause::optimizer, "e", Picoseconds(1), std::array{reduce});
  builder.kernel(0, Cause::optimizer, "f", Picoseconds(1));
  const StreamProgram compiled = compile_program(job, builder.finish());
  // Stream 0: [a b] [c d] [e f]; stream 1: [r].
  CHECK(compiled.stream_begin == std::vector<std::uint32_t>{0, 3, 4});
  REQUIRE(compiled.steps[3].waits == 1);
  CHECK(compiled.waits[compiled.steps[3].first_wait].stream == 0);
  CHECK(compiled.waits[compiled.steps[3].first_wait].steps == 1);
  REQUIRE(compiled.steps[2].waits == 1);
  CHECK(compiled.waits[compiled.steps[2].first_wait].stream == 1);
  CHECK(compiled.waits[compiled.steps[2].first_wait].steps == 1);
}

TEST_CASE("waits that cannot hold a stream back are dropped") {
  Job job;
  job.slots = 1;
  ProgramBuilder builder(job, 2);
  const std::uint32_t a = builder.kernel(0, Cause::compute, "a", Picoseconds(1));
  const std::uint32_t b = builder.kernel(0, Cause::compute, "b", Picoseconds(1), std::array{a});  // own stream
  const std::uint32_t r1 = builder.collective(1, 0, kReduce, "r", std::array{a, b});              // b implies a
  const std::uint32_t r2 = builder.collective(1, 0, kReduce, "r", std::array{a});  // r1 waited for b already
  builder.kernel(0, Cause::compute, "c", Picoseconds(1), std::array{r2, r1});      // r2 implies r1
  const StreamProgram compiled = compile_program(job, builder.finish());
  CHECK(compiled.waits.size() == 2);
  CHECK(compiled.stream_begin == std::vector<std::uint32_t>{0, 2, 4});  // a and b fused: nobody needs a alone
}

TEST_CASE("off the compute stream only kernels of one cause are fused") {
  Job job;
  ProgramBuilder builder(job, 2);
  builder.kernel(1, Cause::compute, "a", Picoseconds(1));
  builder.kernel(1, Cause::compute, "b", Picoseconds(1));
  builder.kernel(1, Cause::optimizer, "c", Picoseconds(1));
  const StreamProgram compiled = compile_program(job, builder.finish());
  CHECK(compiled.steps.size() == 2);
}

TEST_CASE("operations are numbered by slot in program order, whatever their stream") {
  Job job;
  job.slots = 3;
  ProgramBuilder builder(job, 3);
  builder.collective(2, 1, kReduce, "r");
  builder.collective(1, 2, kReduce, "r");
  builder.collective(1, 1, kReduce, "r");
  const StreamProgram compiled = compile_program(job, builder.finish());
  CHECK(compiled.slot_begin == std::vector<std::uint32_t>{0, 0, 2, 3});
  CHECK(compiled.slot_stream == std::vector<std::uint8_t>{2, 1, 1});
  REQUIRE(compiled.steps.size() == 3);
  CHECK(compiled.steps[0].position == 0);  // stream 1: slot 2
  CHECK(compiled.steps[1].position == 1);  // stream 1: slot 1, its second operation
  CHECK(compiled.steps[2].position == 0);  // stream 2: slot 1, its first
}

TEST_CASE("a slowed kernel is rounded on its own, so that fusing changes no tick") {
  CHECK(kernel_ticks(Picoseconds(1000), 1.0) == 1000);
  CHECK(kernel_ticks(Picoseconds(3), 1.5) == 5);  // 4.5 rounds away from zero
  CHECK(kernel_ticks(Picoseconds(6), 1.5) == 9);  // not 5 + 5
}

TEST_CASE("programs written without the builder are checked") {
  Job job;
  job.labels = {"k"};
  job.programs.resize(1);
  Program& program = job.programs[0];
  program.instructions.resize(1);
  SECTION("a stream out of range") { program.instructions[0].stream = 1; }
  SECTION("a label out of range") { program.instructions[0].label = 1; }
  SECTION("a wait for itself") {
    program.waits = {0};
    program.instructions[0].waits = 1;
  }
  SECTION("waits out of range") { program.instructions[0].waits = 1; }
  SECTION("a slot out of range") { program.instructions[0].kind = Instruction::Kind::collective; }
  SECTION("a negative duration") { program.instructions[0].duration = Picoseconds(-1); }
  CHECK_THROWS_AS(compile_program(job, 0), BrokenContract);
}
