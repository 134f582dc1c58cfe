// Whole runs in the library: figures that must hold together whatever the models say.
#include "scenarios/run.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Scenario load(std::vector<std::string> set = {}) {
  return load_scenario_text(kSmallScenario, "small.toml", {std::move(set), true});
}

}  // namespace

TEST_CASE("tokens, rates and MFU of a run are the same statement") {
  const Result result = run_scenario(load());
  REQUIRE(result.step.has_value());
  const StepReport& report = *result.step;
  CHECK(report.ranks == 16);
  CHECK(report.figures.tokens_per_step == 16 * 2048);
  CHECK(report.tokens_per_s * report.step_time_s == Approx(16 * 2048));
  CHECK(report.mfu * report.peak.value() * 16 * report.step_time_s == Approx(report.figures.model_flops.value()));
  CHECK(report.mfu > 0.05);
  CHECK(report.mfu <= 1);
  CHECK(report.hfu >= report.mfu);
}

TEST_CASE("the same scenario gives the same step, lumped or not") {
  const Result first = run_scenario(load());
  const Result second = run_scenario(load());
  CHECK(first.step->step.step_time == second.step->step.step_time);
  CHECK(first.step->step.events == second.step->step.events);
  RunOptions unlumped;
  unlumped.lump = false;
  const Result every = run_scenario(load(), unlumped);
  CHECK(every.step->step.lumps.rank_classes == 16);
  CHECK(to_seconds(every.step->step.step_time) == Approx(to_seconds(first.step->step.step_time)).epsilon(1e-9));
}

TEST_CASE("one replica alone is its own measure; a slow GPU makes the job fall behind it") {
  const std::string one_replica = "jobs[0].parallel={tensor = 8}";
  CHECK(run_scenario(load({one_replica})).step->scaling_efficiency == 1.0);
  const Result slow = run_scenario(load({one_replica, "cluster.degraded=[{gpu = 2, slowdown = 1.5}]"}));
  REQUIRE(slow.step->scaling_efficiency.has_value());
  // Tensor ranks meet in every layer, so all go at the pace of the slow one: 1/1.5 of the speed, plus communication.
  CHECK(*slow.step->scaling_efficiency < 0.9);
  CHECK(*slow.step->scaling_efficiency > 1 / 1.5 - 1e-9);
  const Result scaled = run_scenario(load());
  REQUIRE(scaled.step->scaling_efficiency.has_value());
  CHECK(scaled.step->replica_ranks == 2);
  CHECK(*scaled.step->scaling_efficiency > 0.5);
  // The replica alone keeps the whole optimizer state, so more replicas can be a little faster each.
  CHECK(*scaled.step->scaling_efficiency <= 1.1);
}

TEST_CASE("a timeline is recorded when asked for, inside the step") {
  RunOptions options;
  options.record_timeline = true;
  const Result result = run_scenario(load(), options);
  REQUIRE_FALSE(result.step->step.timeline.empty());
  for (const TimelineInterval& interval : result.step->step.timeline) {
    CHECK(interval.start >= Picoseconds(0));
    CHECK(interval.end >= interval.start);
    CHECK(interval.end <= result.step->step.step_time);
    CHECK(interval.label < result.step->labels.size());
  }
  CHECK(run_scenario(load()).step->step.timeline.empty());
}

TEST_CASE("a study gives one result per point, in order") {
  const Result result = run_scenario(load_scenario_text(
      kSmallScenario + "[study]\npoints = [{\"jobs[0].global_batch\" = 16}, {\"jobs[0].global_batch\" = 32}]\n",
      "small.toml"));
  REQUIRE(result.points.size() == 2);
  CHECK_FALSE(result.step.has_value());
  CHECK(result.points[0].step->figures.tokens_per_step * 2 == result.points[1].step->figures.tokens_per_step);
  CHECK(result.points[0].step->step_time_s < result.points[1].step->step_time_s);
  CHECK(result.points[0].step->step.step_time == run_scenario(load()).step->step.step_time);
}

TEST_CASE("a study gives the same bits on any number of threads") {
  const Scenario study =
      load_scenario_text(kSmallScenario +
                             "[study]\npoints = [{\"jobs[0].global_batch\" = 16}, {\"jobs[0].global_batch\" = 32}, "
                             "{\"jobs[0].global_batch\" = 48}, {\"jobs[0].global_batch\" = 64}]\n",
                         "small.toml");
  RunOptions options;
  const Result one = run_scenario(study, options);
  options.threads = 4;
  const Result four = run_scenario(study, options);
  REQUIRE(four.points.size() == one.points.size());
  for (std::size_t i = 0; i < one.points.size(); ++i) {
    CHECK(four.points[i].step->step.step_time == one.points[i].step->step.step_time);
    CHECK(four.points[i].step->mfu == one.points[i].step->mfu);
    CHECK(four.points[i].step->step.events == one.points[i].step->step.events);
    for (std::size_t c = 0; c < kCauses; ++c) {
      CHECK(four.points[i].step->ledger[c].mean == one.points[i].step->ledger[c].mean);
    }
  }
}

TEST_CASE("a table of collectives has a row per size and a bus bandwidth by definition") {
  const Result result = run_scenario(load_scenario_text(
      "name = \"n\"\n[cluster]\nnode = \"dgx-h100\"\n[nccl_test]\nop = \"all_reduce\"\nsizes = \"1M..64M\"\n",
      "n.toml"));
  REQUIRE(result.nccl.has_value());
  REQUIRE(result.nccl->rows.size() == 7);
  for (const NcclTestRow& row : result.nccl->rows) {
    // nccl-tests, PERFORMANCE.md: busbw = algbw x 2 (n - 1) / n
    CHECK(row.bus_bandwidth.value() == Approx(row.algorithm_bandwidth.value() * 2 * 7 / 8));
    CHECK(to_seconds(row.time) > 0);
  }
  CHECK(std::is_sorted(result.nccl->rows.begin(), result.nccl->rows.end(),
                       [](const NcclTestRow& a, const NcclTestRow& b) { return a.time < b.time; }));
}

TEST_CASE("checking counts the same GPUs and memory as running") {
  const std::vector<CheckReport> reports = check_scenario(load());
  REQUIRE(reports.size() == 1);
  const Result result = run_scenario(load());
  CHECK(reports[0].ranks == result.step->ranks);
  CHECK(reports[0].memory_bytes == result.step->figures.memory.total_bytes());
}

TEST_CASE("stages are announced in order, before the clock starts") {
  RunOptions options;
  std::vector<std::string> stages;
  options.stage = [&](std::string_view what) { stages.emplace_back(what); };
  options.scaling = false;
  const Result result = run_scenario(load(), options);
  REQUIRE(stages.size() == 4);
  CHECK(stages[0] == "building the cluster");
  CHECK(stages[1] == "writing the job's programs");
  CHECK(stages[2].starts_with("planning "));
  CHECK(stages[3] == fmt::format("finding classes of {} ranks", result.step->ranks));
}

TEST_CASE("a progress callback sees the clock go forward only") {
  RunOptions options;
  Picoseconds last{0};
  bool forward = true;
  options.progress = [&](Picoseconds now, std::uint64_t) {
    forward = forward && now >= last;
    last = now;
  };
  options.scaling = false;
  run_scenario(load({"jobs[0].global_batch=256"}), options);
  CHECK(forward);
}
