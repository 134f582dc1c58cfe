// The recorded timeline agrees with the ledger, and the trace is readable JSON.
#include "models/programs/timeline.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "small_jobs.hpp"
#include "tests/catch.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

/// Two ranks, the second slower; two kernels and an inline all-reduce.
Job two_ranks(const Cluster& cluster) {
  Job job = job_on(cluster, 2, 1);
  job.slowdown = {1.0, 2.0};
  join_all(job, 0);
  ProgramBuilder builder(job, 1);
  builder.kernel(0, Cause::compute, "forward \"a\\b\"", Picoseconds(1'500'000));
  builder.kernel(0, Cause::recompute, "again", Picoseconds(500'000));
  builder.collective(0, 0, {Collective::all_reduce, mebibytes(1), Cause::exposed_data}, "reduce");
  builder.finish();
  return job;
}

}  // namespace

TEST_CASE("the intervals of the compute stream add up to its ledger") {
  const auto cluster = single_switch(2);
  const Job job = two_ranks(*cluster);
  ExecutionOptions options;
  options.record_timeline = true;
  const StepResult result = execute(job, *cluster, without_latency(), options);
  REQUIRE(result.rank_classes.size() == 2);
  std::array<std::array<Picoseconds, kCauses>, 2> sums{};
  std::array<Picoseconds, 2> last{};
  for (const TimelineInterval& interval : result.timeline) {
    CHECK(interval.start == last[interval.rank_class]);  // in order, without gaps
    last[interval.rank_class] = interval.end;
    sums[interval.rank_class][static_cast<std::size_t>(interval.cause)] += interval.end - interval.start;
  }
  CHECK(sums[0] == result.rank_classes[0].ledger);
  CHECK(sums[1] == result.rank_classes[1].ledger);
  CHECK(booked(result.rank_classes[0], Cause::straggler) == Picoseconds(2'000'000));
}

TEST_CASE("nothing is recorded unless asked") {
  const auto cluster = single_switch(2);
  CHECK(execute(two_ranks(*cluster), *cluster, without_latency(), {}).timeline.empty());
}

TEST_CASE("the trace names ranks and streams, escapes labels and keeps picoseconds") {
  const auto cluster = single_switch(2);
  const Job job = two_ranks(*cluster);
  ExecutionOptions options;
  options.record_timeline = true;
  const StepResult result = execute(job, *cluster, without_latency(), options);
  std::ostringstream out;
  write_chrome_trace(out, result, job, *cluster);
  const std::string text = out.str();
  INFO(text);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has("\"traceEvents\":["));
  CHECK(has("\"name\":\"rank 0 (node0/gpu0)\""));
  CHECK(has("\"name\":\"compute\""));
  CHECK(has(
      "\"name\":\"forward \\\"a\\\\b\\\"\",\"cat\":\"compute\",\"pid\":0,\"tid\":0,\"ts\":0.000000,\"dur\":1.500000"));
  CHECK(has("\"name\":\"again\",\"cat\":\"recompute\",\"pid\":1,\"tid\":0,\"ts\":3.000000,\"dur\":1.000000"));
  CHECK(has("\"cat\":\"straggler\""));
  CHECK(std::count(text.begin(), text.end(), '{') == std::count(text.begin(), text.end(), '}'));
}
