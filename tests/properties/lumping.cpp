// Lumped and unlumped runs agree to the nanosecond: on random clusters, placements, programs, routes and degradations.
#include "models/programs/execute.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/programs/classes.hpp"
#include "models/workloads/workload.hpp"
#include "random_jobs.hpp"
#include "sim/errors.hpp"
#include "tests/catch.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

constexpr Picoseconds kNanosecond{1'000};

bool agree(Picoseconds a, Picoseconds b) { return a - b <= kNanosecond && b - a <= kNanosecond; }

const RankClass& class_of(const StepResult& result, std::uint32_t rank) {
  return result.rank_classes[result.rank_class_of[rank]];
}

/// Times and ledgers of every rank.
void compare_ranks(const StepResult& lumped, const StepResult& single, std::uint32_t ranks) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    INFO("rank " << r);
    const RankClass& a = class_of(lumped, r);
    const RankClass& b = class_of(single, r);
    CHECK(b.representative == r);
    CHECK(agree(a.finished, b.finished));
    for (std::size_t cause = 0; cause < kCauses; ++cause) {
      INFO(name(static_cast<Cause>(cause)) << " " << a.ledger[cause].count() << " " << b.ledger[cause].count());
      CHECK(agree(a.ledger[cause], b.ledger[cause]));
    }
  }
}

/// Bytes of every link: the representatives one by one, and all of them as a multiset.
void compare_resources(const StepResult& lumped, const StepResult& single) {
  std::map<std::uint32_t, double> bytes;
  std::vector<double> each;
  for (const ResourceUsage& usage : single.resources) {
    CHECK(usage.count == 1);
    bytes[usage.resource] = usage.bytes;
    each.push_back(usage.bytes);
  }
  std::vector<double> expanded;
  for (const ResourceUsage& usage : lumped.resources) {
    CHECK(usage.bytes == Approx(bytes.at(usage.resource)).epsilon(1e-9));
    expanded.insert(expanded.end(), usage.count, usage.bytes);
  }
  REQUIRE(expanded.size() == each.size());
  std::sort(each.begin(), each.end());
  std::sort(expanded.begin(), expanded.end());
  for (std::size_t i = 0; i < each.size(); ++i) CHECK(expanded[i] == Approx(each[i]).epsilon(1e-9));
}

/// Runs both ways and compares everything; returns whether lumping found equals.
bool compare(const Job& job, const Cluster& cluster, const CommunicationModel& model) {
  ExecutionOptions options;
  const StepResult lumped = execute(job, cluster, model, options);
  options.lump = false;
  const StepResult single = execute(job, cluster, model, options);
  CHECK(single.lumps.rank_classes == job.ranks());
  CHECK(agree(lumped.step_time, single.step_time));
  CHECK(lumped.bytes_delivered == Approx(single.bytes_delivered).epsilon(1e-12));
  compare_ranks(lumped, single, job.ranks());
  compare_resources(lumped, single);
  return lumped.lumps.rank_classes < single.lumps.rank_classes;
}

/// Places are a short cut to the classes, never other classes. Returns whether there are places to go by.
bool compare_short_cut(const Job& job, const Cluster& cluster, const CommunicationModel& model) {
  std::vector<StreamProgram> programs;
  for (std::uint32_t p = 0; p < job.programs.size(); ++p) programs.push_back(compile_program(job, p));
  CommunicatorPlans plans = plan_communicators(job, programs, cluster, model);
  if (!plans.relative) return false;
  const Classes found = find_classes(job, cluster, model, plans, true);
  plans.relative = false;  // every member on its own to begin with
  const Classes expected = find_classes(job, cluster, model, plans, true);
  CHECK(found.ranks.class_of == expected.ranks.class_of);
  CHECK(found.communicators.class_of == expected.communicators.class_of);
  CHECK(found.resources.representative == expected.resources.representative);
  CHECK(found.resources.count == expected.resources.count);
  CHECK(found.resources.members == expected.resources.members);
  CHECK(found.member_classes == expected.member_classes);
  CHECK(found.use_begin == expected.use_begin);
  REQUIRE(found.uses.size() == expected.uses.size());
  for (std::size_t i = 0; i < found.uses.size(); ++i) {
    CHECK(found.uses[i].resource == expected.uses[i].resource);
    CHECK(found.uses[i].coefficient == Approx(expected.uses[i].coefficient).epsilon(1e-12));
  }
  return true;
}

/// Every form of parallelism, schedule and sharding, four to sixteen ranks.
constexpr std::array<std::string_view, 10> kTrainings{
    "parallel = {tensor = 2, pipeline = 2, data = 2}",
    "parallel = {tensor = 4}\nrecompute = \"full\"",
    "parallel = {pipeline = 4, data = 2}\nschedule = \"gpipe\"",
    "parallel = {tensor = 2, pipeline = 2, data = 2, virtual_stages = 2}\nschedule = \"interleaved-1f1b\"",
    "parallel = {data = 8}\nzero_stage = 3",
    "parallel = {tensor = 2, data = 4}\nzero_stage = 1\nrecompute = \"selective\"",
    "parallel = {context = 2, data = 2, tensor = 2}",
    "parallel = {context = 4, data = 2}\ncontext_exchange = \"all-gather\"",
    "parallel = {tensor = 2, pipeline = 2, data = 2}\nplacement = \"random\"",
    "parallel = {tensor = 4, pipeline = 2, data = 2}\nplacement = \"round-robin\"\noverlap_gradients = false",
};

constexpr std::string_view kExpertTraining = "parallel = {tensor = 2, data = 4, expert = 4}";

constexpr std::string_view kModel =
    "architecture = {layers = 8, hidden = 1024, heads = 16, kv_heads = 4, ffn_hidden = 4096, vocabulary = 32000, "
    "sequence_length = 1024, title = \"small\"}\n";
constexpr std::string_view kExpertModel =
    "architecture = {layers = 4, hidden = 1024, heads = 16, kv_heads = 4, ffn_hidden = 4096, vocabulary = 32000, "
    "sequence_length = 1024, title = \"experts\", experts = 8, experts_per_token = 2, expert_ffn_hidden = 2048, "
    "shared_experts = 1, dense_layers = 1}\n";

BuiltWorkload build_training(const RandomRun& run, std::string_view model, std::string_view parallel) {
  static const Catalog catalog = Catalog::built_in();
  const WorkloadEntry& entry = find_workload("transformer-training");
  const std::string text = fmt::format("{}global_batch = 16\n{}\n", model, parallel);
  std::vector<double> slowdown(run.cluster->gpus(), 1.0);
  slowdown[slowdown.size() / 3] = 1.21;
  return entry.build(check_settings(parse_toml(text, "test.toml"), entry.schema, "jobs[0]"),
                     {*run.cluster, catalog, run.model, catalog.gpu("h100-sxm"), slowdown});
}

}  // namespace

TEST_CASE("lumped runs equal unlumped ones on random clusters and jobs") {
  constexpr std::uint64_t kRuns = 120;
  std::size_t compared = 0;
  std::size_t smaller = 0;
  for (std::uint64_t number = 0; number < kRuns; ++number) {
    RandomRun run;
    try {
      run = RandomRunBuilder(number).build();
    } catch (const Infeasible&) {
      continue;  // a combination that some part refuses; enough others remain, see below
    }
    INFO("run " << number << ": " << run.description);
    ++compared;
    if (compare(run.job, *run.cluster, run.model)) ++smaller;
  }
  CHECK(compared >= 60);
  CHECK(smaller >= 20);  // the comparison would be empty if nothing were ever lumped
}

TEST_CASE("places lead to the same classes as members, on random clusters and jobs") {
  std::size_t compared = 0;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    RandomRun run;
    try {
      run = RandomRunBuilder(20'000 + number).build();
    } catch (const Infeasible&) {
      continue;
    }
    INFO("run " << number << ": " << run.description);
    if (compare_short_cut(run.job, *run.cluster, run.model)) ++compared;
  }
  CHECK(compared >= 200);
}

TEST_CASE("lumped runs equal unlumped ones on transformer training") {
  std::size_t compared = 0;
  std::size_t smaller = 0;
  for (std::uint64_t number = 0; number < 60; ++number) {
    RandomRun run;
    BuiltWorkload built;
    const std::string_view parallel = number % 6 == 5 ? kExpertTraining : kTrainings[number % kTrainings.size()];
    try {
      run = RandomRunBuilder(5000 + number).build_cluster();
      built = build_training(run, number % 6 == 5 ? kExpertModel : kModel, parallel);
    } catch (const Infeasible&) {
      continue;  // too few GPUs, mostly
    }
    INFO("run " << number << ": " << run.description << "; " << parallel);
    ++compared;
    if (compare(built.job, *run.cluster, run.model)) ++smaller;
    compare_short_cut(built.job, *run.cluster, run.model);
  }
  CHECK(compared >= 20);
  CHECK(smaller >= 8);
}
