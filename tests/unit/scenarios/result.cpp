// Figures derived from a step by hand-made numbers, and what is refused because it breaks physics.
#include "scenarios/result.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"
#include "tests/unit/scenarios/example_step.hpp"

using namespace clustersim;
using namespace clustersim::testing;

TEST_CASE("rates and utilizations") {
  StepReport report = example_step();
  derive_figures(report);
  CHECK(report.step_time_s == Approx(2));
  CHECK(report.tokens_per_s == Approx(500));
  CHECK(report.samples_per_s == Approx(5));
  // 240 TFLOP / 2 s / 3 GPUs = 40 TFLOP/s, of 100: 40 %
  CHECK(report.model_rate_per_gpu.value() == Approx(40e12));
  CHECK(report.mfu == Approx(0.4));
  CHECK(report.hfu == Approx(0.5));
}

TEST_CASE("the whole job is its step times the number of steps") {
  StepReport report = example_step();
  report.steps = 1000;
  derive_figures(report);
  CHECK(report.total_time_s == Approx(2000));
  CHECK(report.total_tokens == Approx(1e6));
  CHECK(report.gpu_hours == Approx(3 * 2000 / 3600.0));
  CHECK(report.tokens_per_s == Approx(500));  // rates are those of the step
  Result result;
  result.step = report;
  const std::string line = "1,000 steps: 33.33 min, 1,000,000 tokens, 1.67 GPU-hours\n";
  CHECK(contains(readable_summary(result), line));
  result.step->figures.tokens_per_step = 0;
  CHECK(contains(readable_summary(result), "1,000 steps: 33.33 min, 10,000 samples, "));
  result.step->steps = 1;
  CHECK_FALSE(contains(readable_summary(result), "whole job"));
}

TEST_CASE("shares are averaged over GPUs, not over classes") {
  StepReport report = example_step();
  derive_figures(report);
  const auto share = [&](Cause cause) { return report.ledger[static_cast<std::size_t>(cause)]; };
  CHECK(share(Cause::compute).mean == Approx((2 * 0.75 + 0.5) / 3));
  CHECK(share(Cause::compute).minimum == Approx(0.5));
  CHECK(share(Cause::compute).maximum == Approx(0.75));
  CHECK(share(Cause::bubble).mean == Approx(0.375 / 3));
  CHECK(report.bubble_share == Approx(0.375 / 3));
  CHECK(report.exposed_communication_share == Approx((2 * 0.25 + 0.125) / 3));
  double total = 0;
  for (const CauseShare& cause : report.ledger) total += cause.mean;
  CHECK(total == Approx(1).epsilon(1e-12));
}

TEST_CASE("more than the peak is refused, naming peak and type") {
  StepReport report = example_step();
  report.figures.model_flops = Flops(601e12);  // 100.2 TFLOP/s per GPU
  report.figures.hardware_flops = Flops(601e12);
  try {
    derive_figures(report);
    FAIL("MFU above 1 was accepted");
  } catch (const BrokenContract& problem) {
    const std::string text = problem.what();
    CHECK(text.find("MFU of 1.00") != std::string::npos);
    CHECK(text.find("bf16") != std::string::npos);
    CHECK(text.find("100 TFLOP/s") != std::string::npos);
  }
  StepReport hardware = example_step();
  hardware.figures.hardware_flops = Flops(700e12);
  CHECK_THROWS_AS(derive_figures(hardware), BrokenContract);
}

TEST_CASE("a ledger that is not the step is refused") {
  StepReport missing = example_step();
  missing.step.rank_classes[0].ledger[static_cast<std::size_t>(Cause::compute)] -= Picoseconds(1);
  CHECK_THROWS_AS(derive_figures(missing), BrokenContract);
  StepReport negative = example_step();
  negative.step.rank_classes[0].ledger[static_cast<std::size_t>(Cause::compute)] += Picoseconds(1'000'000'000'000);
  negative.step.rank_classes[0].ledger[static_cast<std::size_t>(Cause::bubble)] -= Picoseconds(1'000'000'000'000);
  CHECK_THROWS_AS(derive_figures(negative), BrokenContract);
  StepReport ranks = example_step();
  ranks.step.rank_classes[1].count = 2;
  CHECK_THROWS_AS(derive_figures(ranks), BrokenContract);
  StepReport nothing = example_step();
  nothing.step.step_time = Picoseconds(0);
  CHECK_THROWS_AS(derive_figures(nothing), BrokenContract);
}

TEST_CASE("JSON carries the figures") {
  Result result;
  result.scenario = "s";
  result.scenario_hash = "0123456789abcdef";
  result.version = "9.9.9";
  result.seed = 5;
  result.step = example_step();
  result.step->steps = 10;
  derive_figures(*result.step);
  const auto json = nlohmann::json::parse(json_text(result));
  CHECK(json["step_time_s"].get<double>() == Approx(2));
  CHECK(json["steps"] == 10);
  CHECK(json["total_time_s"].get<double>() == Approx(20));
  CHECK(json["total_tokens"].get<double>() == Approx(10'000));
  CHECK(json["gpu_hours"].get<double>() == Approx(3 * 20 / 3600.0));
  CHECK(json["tflops_per_gpu"].get<double>() == Approx(40));
  CHECK(json["memory_gib_per_gpu"].get<double>() == Approx(3));
  CHECK(json["scaling_efficiency"].is_null());
  CHECK(json["gpus"] == 3);
  CHECK(json["seed"] == 5);
  CHECK(json["scenario_hash"] == "0123456789abcdef");
  CHECK(json["ledger_share"].size() == kCauses);
  CHECK(json["lumps"].contains("rank_classes"));
}

TEST_CASE("the summary names every cause that took time, and no other") {
  Result result;
  result.scenario = "s";
  result.step = example_step();
  derive_figures(*result.step);
  const std::string text = readable_summary(result);
  for (const Cause cause : {Cause::compute, Cause::exposed_data, Cause::exposed_tensor, Cause::bubble}) {
    CHECK(text.find(name(cause)) != std::string::npos);
  }
  CHECK(text.find(name(Cause::recompute)) == std::string::npos);
  CHECK(text.find("40 TFLOP/s") != std::string::npos);
  CHECK(text.find("MFU 40.0 %") != std::string::npos);
  CHECK(text.find("3.00 GiB of 80.00 GiB") != std::string::npos);
}

TEST_CASE("the timeline is a list of trace events") {
  Result result;
  result.step = example_step();
  result.step->labels = {"forward"};
  result.step->step.timeline = {{1, 2, 0, Cause::compute, Picoseconds(3'000'000), Picoseconds(5'000'000)}};
  const auto json = nlohmann::json::parse(timeline_json(result));
  const auto& events = json["traceEvents"];
  REQUIRE(events.size() == 3);  // two names of classes and one interval
  CHECK(events[2]["name"] == "forward");
  CHECK(events[2]["pid"] == 1);
  CHECK(events[2]["tid"] == 2);
  CHECK(events[2]["ts"].get<double>() == Approx(3));
  CHECK(events[2]["dur"].get<double>() == Approx(2));
}

TEST_CASE("a workload of given times has no MFU rather than one of zero") {
  StepReport report = example_step();
  report.figures.model_flops = Flops(0);
  report.figures.hardware_flops = Flops(0);
  report.peak = FlopRate(0);
  derive_figures(report);
  CHECK(std::isnan(report.mfu));
  Result result;
  result.step = report;
  CHECK(nlohmann::json::parse(json_text(result))["mfu"].is_null());
  CHECK(readable_summary(result).find("MFU") == std::string::npos);
}
