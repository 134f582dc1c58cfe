// Small jobs with known answers: operations, overlap, pipelines, stragglers, and programs that cannot end.
#include "models/programs/execute.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sim/errors.hpp"
#include "small_jobs.hpp"
#include "tests/catch.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

const Operation kGradients{Collective::all_reduce, mebibytes(64), Cause::exposed_data};
const Operation kActivation{Collective::send_receive, Bytes(0), Cause::exposed_pipeline};

constexpr Picoseconds kMicrosecond{1'000'000};

StepResult run(const Job& job, const Cluster& cluster, const CommunicationModel& model = without_latency(),
               bool lump = true) {
  ExecutionOptions options;
  options.lump = lump;
  const StepResult result = execute(job, cluster, model, options);
  for (const RankClass& rank : result.rank_classes) CHECK(ledger_sum(rank) == result.step_time);
  CHECK(result.bytes_sent == result.bytes_delivered);
  return result;
}

std::string message_of(const Job& job, const Cluster& cluster) {
  try {
    execute(job, cluster, without_latency(), {});
  } catch (const BrokenContract& broken) {
    return broken.what();
  }
  return "";
}

}  // namespace

TEST_CASE("kernels alone: the step is their sum, booked by cause") {
  const auto cluster = single_switch(1);
  Job job = job_on(*cluster, 1, 0);
  ProgramBuilder builder(job, 1);
  builder.kernel(0, Cause::compute, "forward", Picoseconds(100));
  builder.kernel(0, Cause::recompute, "again", Picoseconds(20));
  builder.kernel(0, Cause::optimizer, "adam", Picoseconds(3));
  builder.finish();
  const StepResult result = run(job, *cluster);
  CHECK(result.step_time == Picoseconds(123));
  CHECK(booked(result.rank_classes[0], Cause::compute) == Picoseconds(100));
  CHECK(booked(result.rank_classes[0], Cause::recompute) == Picoseconds(20));
  CHECK(booked(result.rank_classes[0], Cause::optimizer) == Picoseconds(3));
  CHECK(result.events == 1);  // one event for the three
}

TEST_CASE("one all-reduce of two ranks takes what its plan takes on an empty network") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  join_all(job, 0);
  ProgramBuilder builder(job, 1);
  builder.collective(0, 0, kGradients, "gradients");
  builder.finish();
  const CommunicationModel model;  // with latency
  const StepResult result = run(job, *cluster, model);
  CHECK(near(result.step_time, alone(*cluster, model, job.gpu_of, kGradients)));
  REQUIRE(result.communication.size() == 1);
  CHECK(result.communication[0].operations == 1);
  CHECK(result.communication[0].busy == result.step_time);
  CHECK(result.communication[0].collective == Collective::all_reduce);
  CHECK_FALSE(result.communication[0].algorithm.empty());
  for (const RankClass& rank : result.rank_classes) CHECK(booked(rank, Cause::exposed_data) == result.step_time);
}

TEST_CASE("communication beside compute is exposed only as far as it outlasts it") {
  // Stream 0: K, then (waiting for the all-reduce of T on stream 1) an optimizer of U. Step = max(K, T) + U.
  const auto cluster = single_switch(2);
  const Picoseconds transfer = alone(*cluster, without_latency(), {GpuId(0U), GpuId(1U)}, kGradients);
  for (const Picoseconds kernel : {transfer / 2, transfer * 2}) {
    Job job = job_on(*cluster, 2, 1);
    join_all(job, 0);
    ProgramBuilder builder(job, 2);
    const std::uint32_t reduce = builder.collective(1, 0, kGradients, "gradients");
    builder.kernel(0, Cause::compute, "backward", kernel);
    builder.kernel(0, Cause::optimizer, "adam", kMicrosecond, std::array{reduce});
    builder.finish();
    const StepResult result = run(job, *cluster);
    CHECK(near(result.step_time, std::max(kernel, transfer) + kMicrosecond));
    CHECK(near(booked(result.rank_classes[0], Cause::exposed_data), std::max(Picoseconds(0), transfer - kernel)));
    CHECK(booked(result.rank_classes[0], Cause::compute) == kernel);
  }
}

TEST_CASE("communication after the last kernel is exposed too") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  join_all(job, 0);
  ProgramBuilder builder(job, 2);
  const std::uint32_t backward = builder.kernel(0, Cause::compute, "backward", kMicrosecond);
  builder.collective(1, 0, kGradients, "gradients", std::array{backward});
  builder.finish();
  const StepResult result = run(job, *cluster);
  const Picoseconds transfer = alone(*cluster, without_latency(), job.gpu_of, kGradients);
  CHECK(near(result.step_time, kMicrosecond + transfer));
  CHECK(near(booked(result.rank_classes[0], Cause::exposed_data), transfer));
}

TEST_CASE("an operation queued behind another on its stream: both are in the way, each under its own cause") {
  // Stream 1: tensor operation of T, then data operation of T; the compute stream waits for the second from the start.
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  join_all(job, 0);
  const Operation tensor{Collective::all_reduce, mebibytes(64), Cause::exposed_tensor};
  ProgramBuilder builder(job, 2);
  builder.collective(1, 0, tensor, "tensor");
  const std::uint32_t data = builder.collective(1, 0, kGradients, "data");
  builder.kernel(0, Cause::optimizer, "adam", kMicrosecond, std::array{data});
  builder.finish();
  const StepResult result = run(job, *cluster);
  const Picoseconds transfer = alone(*cluster, without_latency(), job.gpu_of, kGradients);
  CHECK(near(result.step_time, 2 * transfer + kMicrosecond));
  CHECK(near(booked(result.rank_classes[0], Cause::exposed_tensor), transfer));
  CHECK(near(booked(result.rank_classes[0], Cause::exposed_data), transfer));
}

TEST_CASE("waiting for a kernel on another stream is booked under that kernel's cause") {
  const auto cluster = single_switch(1);
  Job job = job_on(*cluster, 1, 0);
  ProgramBuilder builder(job, 2);
  const std::uint32_t copy = builder.kernel(1, Cause::other, "copy", Picoseconds(70));
  builder.kernel(0, Cause::compute, "a", Picoseconds(30));
  builder.kernel(0, Cause::compute, "b", Picoseconds(10), std::array{copy});
  builder.finish();
  const StepResult result = run(job, *cluster);
  CHECK(result.step_time == Picoseconds(80));
  CHECK(booked(result.rank_classes[0], Cause::other) == Picoseconds(40));
}

TEST_CASE("a pipeline of p stages and m micro-batches takes (m + p - 1)(f + b)") {
  // Each stage: m forwards, then m backwards (GPipe). With free transfers the last stage ends its forwards after
  // (p - 1 + m) f, and the first its backwards (p - 1 + m) b later: step (m + p - 1)(f + b), of which each rank works
  // m (f + b). The bubble is the rest: (p - 1)(f + b) on every stage (Huang et al., NeurIPS 2019).
  const std::uint32_t stages = GENERATE(2U, 3U, 5U);
  const std::uint32_t batches = GENERATE(1U, 4U, 7U);
  const Picoseconds forward = 3 * kMicrosecond;
  const Picoseconds backward = 7 * kMicrosecond;
  const auto cluster = single_switch(stages);
  // Slots: activations from the previous stage and to the next, gradients from the next and to the previous.
  enum : std::uint16_t { activation_in, activation_out, gradient_in, gradient_out };
  Job job = job_on(*cluster, stages, 4);
  for (std::uint32_t s = 0; s < stages; ++s) job.program_of[s] = s;
  for (std::uint32_t s = 0; s + 1 < stages; ++s) {
    join(job, {s, s + 1}, {activation_out, activation_in});
    join(job, {s + 1, s}, {gradient_out, gradient_in});
  }
  for (std::uint32_t s = 0; s < stages; ++s) {
    ProgramBuilder builder(job, 3);
    const auto half = [&](std::uint16_t in, std::uint16_t out, bool receives, bool sends, Picoseconds time) {
      for (std::uint32_t m = 0; m < batches; ++m) {
        std::vector<std::uint32_t> waits;
        if (receives) waits.push_back(builder.collective(1, in, kActivation, "receive"));
        const std::uint32_t kernel = builder.kernel(0, Cause::compute, "work", time, waits);
        if (sends) builder.collective(2, out, kActivation, "send", std::array{kernel});
      }
    };
    half(activation_in, activation_out, s > 0, s + 1 < stages, forward);
    half(gradient_in, gradient_out, s + 1 < stages, s > 0, backward);
    builder.finish();
  }
  CommunicationModel model = without_latency();
  for (const bool lump : {true, false}) {
    const StepResult result = run(job, *cluster, model, lump);
    CHECK(result.step_time == (batches + stages - 1) * (forward + backward));
    REQUIRE(result.rank_classes.size() == stages);
    for (const RankClass& rank : result.rank_classes) {
      CHECK(booked(rank, Cause::compute) == batches * (forward + backward));
      CHECK(booked(rank, Cause::bubble) == (stages - 1) * (forward + backward));
    }
  }
}

TEST_CASE("a slow rank costs the others straggler time") {
  // Kernel of 10 us, all-reduce of T. Rank 1 is 1.5 times slower: the step is 15 us + T, and rank 0 waits 5 us.
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  job.slowdown = {1.0, 1.5};
  join_all(job, 0);
  ProgramBuilder builder(job, 1);
  builder.kernel(0, Cause::compute, "work", 10 * kMicrosecond);
  builder.collective(0, 0, kGradients, "gradients");
  builder.finish();
  const StepResult result = run(job, *cluster);
  const Picoseconds transfer = alone(*cluster, without_latency(), job.gpu_of, kGradients);
  CHECK(near(result.step_time, 15 * kMicrosecond + transfer));
  REQUIRE(result.rank_classes.size() == 2);
  CHECK(booked(result.rank_classes[0], Cause::straggler) == 5 * kMicrosecond);
  CHECK(near(booked(result.rank_classes[0], Cause::exposed_data), transfer));
  CHECK(booked(result.rank_classes[1], Cause::straggler) == Picoseconds(0));
  CHECK(booked(result.rank_classes[1], Cause::compute) == 15 * kMicrosecond);
}

TEST_CASE("a rank that ends early waits for the step to end as straggler") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 0);
  job.slowdown = {1.0, 3.0};
  ProgramBuilder builder(job, 1);
  builder.kernel(0, Cause::compute, "work", kMicrosecond);
  builder.finish();
  const StepResult result = run(job, *cluster);
  CHECK(result.step_time == 3 * kMicrosecond);
  CHECK(result.rank_classes[0].finished == kMicrosecond);
  CHECK(booked(result.rank_classes[0], Cause::straggler) == 2 * kMicrosecond);
}

TEST_CASE("fusing kernels changes nothing but the number of events") {
  // The same kernels twice: alone, and with a second stream that waits for each of them, which forbids fusing.
  const auto cluster = single_switch(1);
  std::array<StepResult, 2> results;
  for (const bool watched : {false, true}) {
    Job job = job_on(*cluster, 1, 0);
    job.slowdown = {1.0 / 3.0};
    ProgramBuilder builder(job, 2);
    for (std::int64_t i = 0; i < 50; ++i) {
      const std::uint32_t kernel = builder.kernel(0, Cause::compute, "k", Picoseconds(1000 + 7 * i));
      if (watched) builder.kernel(1, Cause::other, "watch", Picoseconds(0), std::array{kernel});
    }
    builder.finish();
    results[watched ? 1 : 0] = run(job, *cluster);
  }
  CHECK(results[0].step_time == results[1].step_time);
  CHECK(results[0].rank_classes[0].ledger == results[1].rank_classes[0].ledger);
  CHECK(results[0].events == 1);
  CHECK(results[1].events == 50);
}

TEST_CASE("ranks that do the same are one class") {
  const auto cluster = single_switch(8);
  Job job = job_on(*cluster, 8, 1);
  join_all(job, 0);
  ProgramBuilder builder(job, 1);
  builder.kernel(0, Cause::compute, "work", kMicrosecond);
  builder.collective(0, 0, kGradients, "gradients");
  builder.finish();
  CommunicationModel model = without_latency();
  model.algorithm = "ring";
  const StepResult result = run(job, *cluster, model);
  CHECK(result.lumps.ranks == 8);
  CHECK(result.lumps.rank_classes == 1);
  CHECK(result.rank_classes[0].count == 8);
  CHECK(result.rank_class_of == std::vector<std::uint32_t>(8, 0));
  CHECK(result.lumps.communicators == 1);
  CHECK(result.lumps.resource_classes < result.lumps.resources);
  std::size_t carriers = 0;
  for (const ResourceUsage& usage : result.resources) carriers += usage.count;
  CHECK(carriers == result.lumps.resources);
  CHECK(std::is_sorted(result.resources.begin(), result.resources.end(),
                       [](const auto& a, const auto& b) { return a.busy_share > b.busy_share; }));
  const StepResult unlumped = run(job, *cluster, model, false);
  CHECK(unlumped.lumps.rank_classes == 8);
  CHECK(unlumped.step_time == result.step_time);
}

TEST_CASE("a ring of neighbours: a rank class meets itself under two slots") {
  // Everybody sends to the right and receives from the left at once; one class of ranks, one of communicators.
  const auto cluster = single_switch(6);
  enum : std::uint16_t { right, left };
  const Operation halo{Collective::send_receive, mebibytes(8), Cause::exposed_other};
  Job job = job_on(*cluster, 6, 2);
  for (std::uint32_t r = 0; r < 6; ++r) join(job, {r, (r + 1) % 6}, {right, left});
  ProgramBuilder builder(job, 3);
  for (int iteration = 0; iteration < 3; ++iteration) {
    const std::uint32_t work = builder.kernel(0, Cause::compute, "stencil", kMicrosecond);
    const std::uint32_t sent = builder.collective(1, right, halo, "to the right", std::array{work});
    const std::uint32_t received = builder.collective(2, left, halo, "from the left", std::array{work});
    builder.kernel(0, Cause::compute, "rim", kMicrosecond, std::array{sent, received});
  }
  builder.finish();
  const StepResult result = run(job, *cluster);
  CHECK(result.lumps.rank_classes == 1);
  CHECK(result.lumps.communicators == 6);
  CHECK(result.lumps.communicator_classes == 1);
  CHECK(result.communication[0].operations == 18);
  const Picoseconds transfer = alone(*cluster, without_latency(), {GpuId(0U), GpuId(1U)}, halo);
  CHECK(near(result.step_time, 3 * (2 * kMicrosecond + transfer)));  // full duplex: sending does not slow receiving
  CHECK(run(job, *cluster, without_latency(), false).step_time == result.step_time);
}

TEST_CASE("two communicators that cross one NIC share it") {
  // Rank 0 sends S to rank 1 and S to rank 2 at once: its NIC carries 2 S, so the step takes twice one transfer.
  const auto cluster = single_switch(3);
  const Operation message{Collective::send_receive, mebibytes(32), Cause::exposed_other};
  Job job = job_on(*cluster, 3, 2);
  job.program_of = {0, 1, 1};
  join(job, {0, 1}, {0, 0});
  join(job, {0, 2}, {1, 0});
  ProgramBuilder sender(job, 2);
  sender.collective(0, 0, message, "one");
  sender.collective(1, 1, message, "two");
  sender.finish();
  ProgramBuilder receiver(job, 1);
  receiver.collective(0, 0, message, "receive");
  receiver.finish();
  const StepResult result = run(job, *cluster);
  const CollectivePlan plan = plan_collective({*cluster, std::array{GpuId(0U), GpuId(1U)}}, without_latency(),
                                              message.collective, message.bytes);
  double slowest = 0;  // seconds to carry both on the sender's busiest link
  for (const PlanUse& use : plan.uses) {
    const double usable = cluster->network().resource_capacity(use.resource).value() *
                          without_latency().efficiency(cluster->network().resource_kind(use.resource));
    slowest = std::max(slowest, use.coefficient * 2 * plan.amount / usable);
  }
  CHECK(to_seconds(result.step_time) == Approx(slowest).epsilon(1e-9));
  CHECK(result.lumps.rank_classes == 3);  // the receivers differ: one hangs on the sender's slot 0, one on its slot 1
}

TEST_CASE("crossed orders are a deadlock, reported with who waits where for whom") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 2);
  job.program_of = {0, 1};
  join_all(job, 0);
  join_all(job, 1);
  for (const bool swapped : {false, true}) {
    ProgramBuilder builder(job, 1);
    builder.collective(0, swapped ? 1 : 0, kGradients, swapped ? "second" : "first");
    builder.collective(0, swapped ? 0 : 1, kGradients, swapped ? "first" : "second");
    builder.finish();
  }
  const std::string text = message_of(job, *cluster);
  INFO(text);
  CHECK(text.find("deadlocked at 0 ps") != std::string::npos);
  CHECK(text.find("rank 0 stream 0 waits in \"first\" (slot 0, operation 0) for rank 1") != std::string::npos);
  CHECK(text.find("rank 1 stream 0 waits in \"second\" (slot 1, operation 0) for rank 0") != std::string::npos);
}

TEST_CASE("members that issue different operations are named") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  job.program_of = {0, 1};
  join_all(job, 0);
  const Operation other{Collective::all_gather, mebibytes(64), Cause::exposed_data};
  for (const Operation& second : {kGradients, other}) {
    ProgramBuilder builder(job, 1);
    builder.collective(0, 0, kGradients, "a");
    builder.collective(0, 0, second, "b");
    builder.finish();
  }
  std::string text = message_of(job, *cluster);
  INFO(text);
  CHECK(text.find("Operation 1 is all_reduce of 67108864 bytes on rank 0 (slot 0)") != std::string::npos);
  CHECK(text.find("all_gather of 67108864 bytes on rank 1 (slot 0)") != std::string::npos);
  SECTION("one that issues fewer, too") {
    job.programs[1].instructions.pop_back();
    text = message_of(job, *cluster);
    CHECK(text.find("but nothing on rank 1") != std::string::npos);
  }
}

TEST_CASE("members may book the same operation differently") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  job.program_of = {0, 1};
  join_all(job, 0);
  for (const Cause cause : {Cause::exposed_tensor, Cause::exposed_expert}) {
    ProgramBuilder builder(job, 1);
    builder.collective(0, 0, {Collective::all_reduce, mebibytes(1), cause}, "a");
    builder.finish();
  }
  const StepResult result = run(job, *cluster);
  CHECK(booked(result.rank_classes[0], Cause::exposed_tensor) == result.step_time);
  CHECK(booked(result.rank_classes[1], Cause::exposed_expert) == result.step_time);
}

TEST_CASE("jobs that contradict themselves are refused") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  ProgramBuilder builder(job, 1);
  builder.collective(0, 0, kGradients, "a");
  builder.finish();
  SECTION("an empty slot in use") { CHECK(message_of(job, *cluster).find("no communicator") != std::string::npos); }
  SECTION("a GPU that is not there") {
    join_all(job, 0);
    job.gpu_of[1] = GpuId(2U);
    CHECK(message_of(job, *cluster).find("GPU 2 of 2") != std::string::npos);
  }
  SECTION("a program that is not there") {
    join_all(job, 0);
    job.program_of[1] = 1;
    CHECK(message_of(job, *cluster).find("program 1 of 1") != std::string::npos);
  }
  SECTION("a slowdown of nothing") {
    join_all(job, 0);
    job.slowdown = {1.0, 0.0};
    CHECK(message_of(job, *cluster).find("slowdown") != std::string::npos);
  }
  SECTION("a member that does not know its communicator") {
    join_all(job, 0);
    job.slot_of[1] = CommunicatorId();
    CHECK_FALSE(message_of(job, *cluster).empty());
  }
}

TEST_CASE("a dead link on the way is infeasible, not a hang") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  join_all(job, 0);
  ProgramBuilder builder(job, 1);
  builder.collective(0, 0, kGradients, "a");
  builder.finish();
  const CollectivePlan plan =
      plan_collective({*cluster, job.gpu_of}, without_latency(), kGradients.collective, kGradients.bytes);
  REQUIRE_FALSE(plan.uses.empty());
  cluster->network().set_capacity(LinkId(plan.uses.front().resource), Rate(0));
  CHECK_THROWS_AS(execute(job, *cluster, without_latency(), {}), Infeasible);
}

TEST_CASE("a job without communicators: ranks compute side by side") {
  const auto cluster = single_switch(3);
  for (const std::uint32_t slots : {0U, 2U}) {
    for (const bool lump : {true, false}) {
      Job job = job_on(*cluster, 3, slots);
      REQUIRE(job.slot_of.empty());
      job.slowdown = {1, 2, 1};
      ProgramBuilder builder(job, 1);
      builder.kernel(0, Cause::compute, "work", kMicrosecond);
      builder.finish();
      const StepResult result = run(job, *cluster, without_latency(), lump);
      CHECK(result.step_time == 2 * kMicrosecond);
      CHECK(result.lumps.rank_classes == (lump ? 2 : 3));
      CHECK(result.lumps.communicators == 0);
      CHECK(result.resources.empty());
      CHECK(booked(result.rank_classes[0], Cause::straggler) == kMicrosecond);
    }
  }
}

TEST_CASE("a communicator of one rank costs no traffic") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 2, 1);
  join(job, {0}, {0});
  join(job, {1}, {0});
  ProgramBuilder builder(job, 1);
  builder.collective(0, 0, kGradients, "alone");
  builder.kernel(0, Cause::compute, "work", kMicrosecond);
  builder.finish();
  const StepResult result = run(job, *cluster);
  CHECK(result.step_time == kMicrosecond);
  CHECK(result.resources.empty());
}

TEST_CASE("the same run twice gives the same result") {
  const auto cluster = single_switch(4);
  Job job = job_on(*cluster, 4, 1);
  job.slowdown = {1.0, 1.1, 1.2, 1.3};
  join_all(job, 0);
  ProgramBuilder builder(job, 2);
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t kernel = builder.kernel(0, Cause::compute, "work", kMicrosecond);
    builder.collective(1, 0, kGradients, "gradients", std::array{kernel});
  }
  builder.finish();
  const StepResult first = run(job, *cluster);
  const StepResult second = run(job, *cluster);
  CHECK(first.step_time == second.step_time);
  CHECK(first.events == second.events);
  CHECK(first.solves == second.solves);
  for (std::size_t r = 0; r < first.rank_classes.size(); ++r) {
    CHECK(first.rank_classes[r].ledger == second.rank_classes[r].ledger);
  }
}
