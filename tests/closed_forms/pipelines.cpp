// Pipeline schedules against their closed forms: p stages, m micro-batches, v chunks, forward F and backward B.
#include <algorithm>

#include "models/workloads/schedule.hpp"
#include "tests/catch.hpp"
#include "tests/unit/models/workloads/fixture.hpp"

using namespace clustersim;

namespace {

constexpr std::int64_t kForward = 960;  // microseconds; divisible by the chunks tested
constexpr std::int64_t kBackward = 1920;

struct Run {
  StepResult result;
  std::int64_t stages = 0;
  [[nodiscard]] std::int64_t microseconds() const { return result.step_time.count() / 1'000'000; }
  /// Share of the step that the ranks spent on their own kernels, over all stages.
  [[nodiscard]] double busy_share() const {
    double busy = 0;
    double ranks = 0;
    for (const RankClass& rank_class : result.rank_classes) {
      busy += rank_class.count * to_seconds(rank_class.ledger[static_cast<std::size_t>(Cause::compute)]);
      ranks += rank_class.count;
    }
    return busy / (ranks * to_seconds(result.step_time));
  }
};

Run run(std::int64_t p, std::int64_t m, std::int64_t v, std::string_view schedule, std::string_view more = "") {
  const Workbench bench{.cluster = one_node(static_cast<std::uint32_t>(p))};
  const std::string toml = fmt::format(
      "stages = {}\nmicro_batches = {}\nvirtual_stages = {}\nschedule = \"{}\"\nforward = \"{} us\"\nbackward = \"{} "
      "us\"\n{}",
      p, m, v, schedule, kForward, kBackward, more);
  return {bench.run(bench.build("pipeline", toml)), p};
}

}  // namespace

TEST_CASE("E1: GPipe and 1F1B take (m + p - 1)(F + B), so the bubble is (p - 1) / (m + p - 1) of the step") {
  const auto [p, m] = GENERATE(std::pair{8, 8}, std::pair{8, 16}, std::pair{4, 8}, std::pair{16, 64}, std::pair{1, 5});
  for (const std::string_view schedule : {"gpipe", "1f1b"}) {
    const Run step = run(p, m, 1, schedule);
    CHECK(step.microseconds() == (m + p - 1) * (kForward + kBackward));
    CHECK(1 - step.busy_share() == Approx((p - 1.0) / (m + p - 1.0)).margin(1e-12));
  }
}

TEST_CASE("E1: idle time of a pipeline without communication cost is booked as bubble") {
  const Run step = run(8, 8, 1, "1f1b");
  Picoseconds bubble{0};
  Picoseconds other{0};
  for (const RankClass& rank_class : step.result.rank_classes) {
    for (std::size_t cause = 0; cause < kCauses; ++cause) {
      if (cause == static_cast<std::size_t>(Cause::bubble)) bubble += rank_class.count * rank_class.ledger[cause];
      if (cause > static_cast<std::size_t>(Cause::compute)) other += rank_class.count * rank_class.ledger[cause];
    }
  }
  // p ranks idle (p - 1)(F + B) each.
  CHECK(bubble.count() / 1'000'000 == 8 * 7 * (kForward + kBackward));
  CHECK(other == bubble);
}

TEST_CASE("E2: stage i holds m micro-batches under GPipe and min(m, p - i) under 1F1B") {
  const auto [p, m] = GENERATE(std::pair{8U, 16U}, std::pair{8U, 4U}, std::pair{4U, 9U});
  for (std::uint32_t stage = 0; stage < p; ++stage) {
    CHECK(peak_in_flight(stage_calls({PipelineSchedule::gpipe, p, m, 1}, stage), {1.0}) == m);
    CHECK(peak_in_flight(stage_calls({PipelineSchedule::one_forward_one_backward, p, m, 1}, stage), {1.0}) ==
          std::min(m, p - stage));
  }
}

TEST_CASE("E3: interleaving v chunks divides the bubble by v: step = m(F + B) + (p - 1)(F + B)/v") {
  const auto v = GENERATE(1, 2, 4, 8);
  const auto [p, m] = GENERATE(std::pair{8, 16}, std::pair{4, 4}, std::pair{2, 6});
  const Run step = run(p, m, v, "interleaved-1f1b");
  CHECK(step.microseconds() == m * (kForward + kBackward) + (p - 1) * (kForward + kBackward) / v);
  const double ideal = static_cast<double>(m * (kForward + kBackward));
  CHECK(static_cast<double>(step.microseconds()) / ideal - 1 == Approx((p - 1.0) / (v * m)).margin(1e-9));
}

TEST_CASE("E3, F28: the first interleaved stage holds 1 + (p - 1)/(p v) of 1F1B's activations") {
  const auto [p, v] = GENERATE(std::pair{8U, 2U}, std::pair{8U, 3U}, std::pair{4U, 4U});
  const std::vector<double> chunk_share(v, 1.0 / v);
  const auto calls = stage_calls({PipelineSchedule::interleaved, p, 4 * p, v}, 0);
  CHECK(peak_in_flight(calls, chunk_share) == Approx(p * (1 + (p - 1.0) / (p * v))).epsilon(1e-12));
}

TEST_CASE("E3: interleaving sends v times as many messages") {
  const auto sent = [](std::int64_t v) {
    return run(4, 8, v, v == 1 ? "1f1b" : "interleaved-1f1b", "payload = \"1 MiB\"\n").result.bytes_sent;
  };
  // p v - 1 boundaries, m micro-batches, two directions.
  CHECK(sent(1) == Approx(2.0 * 8 * 3 * (1 << 20)).epsilon(1e-12));
  CHECK(sent(2) == Approx(2.0 * 8 * 7 * (1 << 20)).epsilon(1e-12));
}

TEST_CASE("E9: with unequal stages the step is sum(t) + (m - 1) max(t)") {
  // Mean 1, maximum 1.2. Under 1F1B a slow stage that is not the last uses the first micro-batch's way to the end and
  // back for forward passes of its own, so there the form is an upper bound; work of the slowest stage is a lower one.
  const std::vector<double> slowest_last{0.9, 1.0, 1.1, 0.8, 1.0, 1.05, 0.95, 1.2};
  const std::vector<double> slowest_first{1.2, 0.9, 1.0, 1.1, 0.8, 1.0, 1.05, 0.95};
  const auto factors_text = [](const std::vector<double>& factors) {
    return fmt::format("stage_time_factors = [{}]\n", fmt::join(factors, ", "));
  };
  constexpr double kSlot = static_cast<double>(kForward + kBackward);
  constexpr double kStep = (8 + 31 * 1.2) * kSlot;
  const auto check = [&](const Run& step) {
    CHECK(static_cast<double>(step.microseconds()) == Approx(kStep).margin(1));
    CHECK(step.busy_share() == Approx(0.707965).margin(1e-6));
  };
  check(run(8, 32, 1, "gpipe", factors_text(slowest_last)));
  check(run(8, 32, 1, "gpipe", factors_text(slowest_first)));
  check(run(8, 32, 1, "1f1b", factors_text(slowest_last)));
  const Run first = run(8, 32, 1, "1f1b", factors_text(slowest_first));
  CHECK(static_cast<double>(first.microseconds()) < kStep);
  CHECK(static_cast<double>(first.microseconds()) > 32 * 1.2 * kSlot);
}

TEST_CASE("A transfer delays the fill and drain by its time and is hidden in between") {
  // 450 MB at 450 GB/s take 1 ms; two stages: one transfer each way is exposed, the others pass beside 1F1B's kernels
  // when they are shorter than the slot. One micro-batch: F + transfer + F + B + transfer + B.
  const Run step = run(2, 1, 1, "1f1b", "payload = \"450 MB\"\n");
  CHECK(step.microseconds() == 2 * (kForward + kBackward) + 2 * 1000);
}

TEST_CASE("Launch overhead of every rank lengthens each slot: (m + p - 1)(F + B + 2 o)") {
  const Run step = run(4, 8, 1, "1f1b", "stage_call_overhead = \"100 us\"\n");
  CHECK(step.microseconds() == 11 * (kForward + kBackward + 200));
}

TEST_CASE("A single controller slower than the GPUs sets the pace: one launch per call and one per transfer") {
  // 2 p m calls, of which 2 m (p - 1) hand their output on; then the last backward pass runs.
  constexpr std::int64_t kOverhead = 10'000;
  const Run step = run(4, 8, 1, "gpipe", "stage_call_overhead = \"10 ms\"\ndispatch = \"single-controller\"\n");
  CHECK(step.microseconds() == (2 * 4 * 8 + 2 * 8 * 3) * kOverhead + kBackward);
}
