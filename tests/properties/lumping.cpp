// Lumped and unlumped runs agree to the nanosecond: on random clusters, placements, programs, routes and degradations.
#include "models/programs/execute.hpp"

#include <algorithm>
#include <map>
#include <vector>

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
    ExecutionOptions options;
    const StepResult lumped = execute(run.job, *run.cluster, run.model, options);
    options.lump = false;
    const StepResult single = execute(run.job, *run.cluster, run.model, options);
    ++compared;
    if (lumped.lumps.rank_classes < single.lumps.rank_classes) ++smaller;
    CHECK(single.lumps.rank_classes == run.job.ranks());
    CHECK(agree(lumped.step_time, single.step_time));
    CHECK(lumped.bytes_delivered == Approx(single.bytes_delivered).epsilon(1e-12));
    compare_ranks(lumped, single, run.job.ranks());
    compare_resources(lumped, single);
  }
  CHECK(compared >= 60);
  CHECK(smaller >= 20);  // the comparison would be empty if nothing were ever lumped
}
