// A step made up by hand, small enough to work its figures out on paper.
#pragma once

#include "scenarios/result.hpp"

namespace clustersim::testing {

/// Three ranks of 100 TFLOP/s, a step of 2 s. Class 0 (two ranks): 1.5 s compute, 0.5 s data. Class 1 (one rank): 1 s
/// compute, 0.25 s tensor, 0.75 s bubble.
inline StepReport example_step() {
  StepReport report;
  report.workload = "w";
  report.job = "j";
  report.ranks = 3;
  report.peak = teraflops(100);
  const auto seconds = [](double value) { return from_seconds<Picoseconds>(value); };
  report.step.step_time = seconds(2);
  RankClass first;
  first.count = 2;
  first.ledger[static_cast<std::size_t>(Cause::compute)] = seconds(1.5);
  first.ledger[static_cast<std::size_t>(Cause::exposed_data)] = seconds(0.5);
  RankClass second;
  second.representative = 2;
  second.ledger[static_cast<std::size_t>(Cause::compute)] = seconds(1);
  second.ledger[static_cast<std::size_t>(Cause::exposed_tensor)] = seconds(0.25);
  second.ledger[static_cast<std::size_t>(Cause::bubble)] = seconds(0.75);
  report.step.rank_classes = {first, second};
  report.step.rank_class_of = {0, 0, 1};
  report.figures.tokens_per_step = 1000;
  report.figures.samples_per_step = 10;
  report.figures.model_flops = Flops(240e12);
  report.figures.hardware_flops = Flops(300e12);
  report.figures.memory = {{{"weights", 0x1p30}, {"activations", 0x1p31}}, gibibytes(80)};
  return report;
}

}  // namespace clustersim::testing
