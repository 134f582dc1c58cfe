// Every library scenario runs, keeps to physics, and tells the story its comment promises.
#include <map>
#include <string>

#include "scenarios/run.hpp"
#include "tests/catch.hpp"

namespace {
using namespace clustersim;

// Hashed routes leave hardly anything to lump, so the hashed variant runs on 1,024 GPUs here: same shape, data = 8.
const std::vector<std::string> kEighthOfAPod{"cluster.nodes=128", "jobs[0].parallel.data=8",
                                             "jobs[0].global_batch=128"};

Result run_named(const std::string& name, const std::vector<std::string>& set = {}) {
  LoadOptions options;
  options.set = set;
  return run_scenario(load_scenario(name, options));
}

// Each scenario is run once and remembered: several tests look at the same result.
const Result& result_of(const std::string& name) {
  static std::map<std::string, Result> results;
  auto found = results.find(name);
  if (found == results.end()) {
    const bool hashed = name == "llama3-405b-16k-hashed";
    found = results.emplace(name, run_named(name, hashed ? kEighthOfAPod : std::vector<std::string>{})).first;
  }
  return found->second;
}

void check_step(const StepReport& step) {
  CHECK(step.step_time_s > 0);
  CHECK(step.mfu > 0);
  CHECK(step.mfu <= 1);
  CHECK(step.hfu >= step.mfu);
  double shares = 0;
  for (const CauseShare& share : step.ledger) {
    CHECK(share.minimum >= 0);
    shares += share.mean;
  }
  CHECK(shares == Approx(1.0).epsilon(1e-12));
  CHECK(step.step.bytes_sent == step.step.bytes_delivered);
  for (const NamedUsage& resource : step.resources) CHECK(resource.usage.busy_share <= 1 + 1e-9);
  // One replica alone keeps the whole optimizer state, so more replicas can be a little faster each.
  if (step.scaling_efficiency) CHECK(*step.scaling_efficiency <= 1.1);
}

void check_result(const Result& result) {
  INFO(result.scenario << " " << result.label);
  if (result.step) check_step(*result.step);
  if (result.nccl) {
    CHECK(!result.nccl->rows.empty());
    for (const NcclTestRow& row : result.nccl->rows) CHECK(row.time.count() > 0);
  }
  for (const Result& point : result.points) check_result(point);
  CHECK((result.step || result.nccl || !result.points.empty()));
}

double tokens_per_second(const std::string& name) { return result_of(name).step->tokens_per_s; }
}  // namespace

TEST_CASE("every library scenario has a description, runs, and keeps to physics") {
  REQUIRE(library_scenarios().size() >= 12);
  for (const auto& [name, description] : library_scenarios()) {
    INFO(name);
    CHECK(!description.empty());
    check_result(result_of(name));
  }
}

TEST_CASE("llama3-405b-16k: 16,384 GPUs in a few classes, within 10 % of the published 400 TFLOP/s per GPU") {
  const StepReport& step = *result_of("llama3-405b-16k").step;
  CHECK(step.ranks == 16384);
  CHECK(step.step.lumps.rank_classes < 200);
  CHECK(step.model_rate_per_gpu.value() / 1e12 == Approx(400).epsilon(0.10));
}

TEST_CASE("hashing 16 flows a pair costs throughput compared with spreading, but not much") {
  const double spread = run_named("llama3-405b-16k", kEighthOfAPod).step->tokens_per_s;
  const double lost = 1 - tokens_per_second("llama3-405b-16k-hashed") / spread;
  CAPTURE(lost);
  CHECK(lost >= 0);
  CHECK(lost < 0.10);
}

TEST_CASE("128 GPUs on 1 GbE: below 30 % of the GPUs' time is used; a proper network brings back more than 85 %") {
  const StepReport& poor = *result_of("job-128-1gbe").step;
  const StepReport& good = *result_of("job-128-infiniband").step;
  CHECK(poor.mfu < 0.30 * good.mfu);
  CHECK(poor.exposed_communication_share > 0.7);
  CHECK(tokens_per_second("job-128-roce") > 0.85 * tokens_per_second("job-128-infiniband"));
}

TEST_CASE("equal bisection: fat tree and torus agree on the work and differ only in the network") {
  const Result& tree = result_of("equal-bisection-fat-tree");
  const Result& torus = result_of("equal-bisection-torus");
  CHECK(tree.step->figures.model_flops.value() == torus.step->figures.model_flops.value());
  CHECK(tree.step->ledger[static_cast<std::size_t>(Cause::compute)].mean * tree.step->step_time_s ==
        Approx(torus.step->ledger[static_cast<std::size_t>(Cause::compute)].mean * torus.step->step_time_s));
}

TEST_CASE("scaling study: efficiency falls slowly and tokens/s grow with every doubling from 8 to 16,384 GPUs") {
  const Result& study = result_of("scaling-8-to-16384");
  REQUIRE(study.points.size() == 12);
  for (std::size_t i = 1; i < study.points.size(); ++i) {
    CHECK(study.points[i].step->tokens_per_s > study.points[i - 1].step->tokens_per_s);
  }
  CHECK(study.points.front().step->ranks == 8);
  CHECK(study.points.back().step->ranks == 16384);
}
