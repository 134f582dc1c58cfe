// Question: doubling the micro-batches cut the GPipe bubble from 47 % to 30 % and throughput did not move: what is the
// real bottleneck? https://github.com/marin-community/marin/issues/6532 (24 June 2026), 8x H100, 24 layers, about 6.1B
// parameters:
//   FSDP                        57,056 tokens/s
//   8 stages, 8 micro-batches    8,077 tokens/s    bubble 47 %
//   8 stages, 16 micro-batches   7,987 tokens/s    bubble 30 %
//   4 stages x 2, 8              12,150 tokens/s   bubble 27 %
// One process walks the schedule in GPipe order, launches every stage call and moves every activation with a
// device_put. The micro-batch stays at 4 sequences, so 16 micro-batches are twice the batch (the thread's slow-down
// of 8.26 is against an FSDP run of that batch). The sequence length is not given; it cancels out of every ratio below.

#include "models/programs/execute.hpp"
#include "models/workloads/workload.hpp"
#include "tests/catch.hpp"
#include "tests/unit/models/workloads/fixture.hpp"

using namespace clustersim;

namespace {

constexpr double kTokensPerMicroBatch = 4 * 4096.0;

struct Row {
  std::int64_t stages;
  std::int64_t data;
  std::int64_t micro_batches;
  double measured;
};
constexpr Row kEight{8, 1, 8, 8077};
constexpr Row kSixteen{8, 1, 16, 7987};
constexpr Row kFourByTwo{4, 2, 8, 12150};

double step_seconds(const Row& row, double overhead_seconds, double forward_seconds) {
  const Workbench bench{.cluster = one_node(8)};
  const std::string toml = fmt::format(
      "stages = {}\ndata = {}\nmicro_batches = {}\nschedule = \"gpipe\"\nforward = \"{:.9f} s\"\nbackward = \"{:.9f} "
      "s\"\n"
      "stage_call_overhead = \"{:.9f} s\"\ndispatch = \"single-controller\"\n",
      row.stages, row.data, row.micro_batches, forward_seconds, 2 * forward_seconds, overhead_seconds);
  return to_seconds(bench.run(bench.build("pipeline", toml)).step_time);
}

/// A micro-batch of 4 sequences is split over the `data` GPUs of a stage; it counts once.
double tokens_per_second(const Row& row, double overhead_seconds, double forward_seconds) {
  const double tokens = kTokensPerMicroBatch * static_cast<double>(row.micro_batches);
  return tokens / step_seconds(row, overhead_seconds, forward_seconds);
}

/// Kernel time of a stage call at the FSDP run's efficiency, a third of it forward. Half the stages have twice the
/// layers and half the sequences per GPU: the same.
double forward_seconds() {
  const double gpu_seconds_per_token = 8 / 57056.0;
  return gpu_seconds_per_token * kTokensPerMicroBatch / 8 / 3;
}

double fit_overhead(const Row& row) {
  double low = 0;
  double high = 10;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (tokens_per_second(row, middle, forward_seconds()) > row.measured ? low : high) = middle;
  }
  return low;
}

}  // namespace

TEST_CASE("The bubbles are 7/15, 7/23 and 3/11 of the step when nothing else takes time") {
  const auto bubble = [](const Row& row) {
    const double forward = 1e-3;
    return 1 - static_cast<double>(row.micro_batches) * 3 * forward / step_seconds(row, 0, forward);
  };
  CHECK(bubble(kEight) == Approx(7.0 / 15).margin(1e-12));
  CHECK(bubble(kSixteen) == Approx(7.0 / 23).margin(1e-12));
  CHECK(bubble(kFourByTwo) == Approx(3.0 / 11).margin(1e-12));
}

TEST_CASE("One launch cost, fitted on the first row, predicts the two others: the launches are the bottleneck") {
  const double overhead = fit_overhead(kEight);
  const double forward = forward_seconds();
  const double eight = tokens_per_second(kEight, overhead, forward);
  const double sixteen = tokens_per_second(kSixteen, overhead, forward);
  const double four_by_two = tokens_per_second(kFourByTwo, overhead, forward);
  CAPTURE(overhead, forward, eight, sixteen, four_by_two);
  REQUIRE(eight == Approx(kEight.measured).epsilon(1e-3));
  CHECK(sixteen == Approx(kSixteen.measured).epsilon(0.15));
  CHECK(four_by_two == Approx(kFourByTwo.measured).epsilon(0.15));
  // No gain from halving the bubble: within 5 %, where the bubbles alone would give (1 - 7/23) / (1 - 7/15) = 1.30.
  CHECK(sixteen / eight == Approx(1.0).margin(0.05));
  // Without launch costs the same pipeline would gain that 30 %, and run almost four times as fast.
  CHECK(tokens_per_second(kSixteen, 0, forward) / tokens_per_second(kEight, 0, forward) ==
        Approx(15.0 / 23 * 2).epsilon(1e-6));
  CHECK(tokens_per_second(kEight, 0, forward) > 3 * kEight.measured);
}
