// Closed forms D1-D6: max-min sharing of links, by the simulator and by the plain reference.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/fluid.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

struct Nobody : FluidListener {
  void on_activity_done(ActivityId, std::uint64_t) override {}
};

/// flows[i] lists the links of flow i; the rates of both solvers, which have to agree.
std::vector<double> rates(const std::vector<double>& capacity, const std::vector<std::vector<std::size_t>>& flows,
                          const std::vector<double>& weight = {}) {
  Simulation<Picoseconds> simulation;
  Fluid fluid(simulation);
  Nobody listener;
  MaxMinProblem problem{capacity, {}, weight, {}};
  for (const double c : capacity) fluid.add_resource(c);
  std::vector<ActivityId> ids;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    std::vector<Use> uses;
    for (const std::size_t link : flows[i]) uses.push_back({ResourceId(link), 1});
    problem.uses.push_back(uses);
    ids.push_back(fluid.start({.amount = 1, .weight = weight.empty() ? 1 : weight[i], .uses = uses}, listener, i));
  }
  std::vector<double> result;
  for (const ActivityId id : ids) result.push_back(fluid.rate(id));
  fluid.check_invariants();
  const std::vector<double> reference = max_min_rates(problem);
  for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i] == Approx(reference[i]).epsilon(1e-12));
  return result;
}

void check_rates(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("D1: parking lot of n unit links, one long flow and one short flow on each: all rates 1/2") {
  for (const std::size_t n : {1U, 4U, 50U}) {
    std::vector<std::vector<std::size_t>> flows(1);
    for (std::size_t link = 0; link < n; ++link) flows[0].push_back(link);
    for (std::size_t link = 0; link < n; ++link) flows.push_back({link});
    check_rates(rates(std::vector<double>(n, 1.0), flows), std::vector<double>(n + 1, 0.5));
  }
}

TEST_CASE("D2: the parking lot is shared by max-min fairness, not proportional fairness") {
  // Proportional fairness would give the long flow 1/(n+1) and the short ones n/(n+1).
  const std::size_t n = 4;
  const std::vector<double> got = rates({1, 1, 1, 1}, {{0, 1, 2, 3}, {0}, {1}, {2}, {3}});
  CHECK(got[0] > 2.0 / (n + 1));
  CHECK(*std::max_element(got.begin(), got.end()) == *std::min_element(got.begin(), got.end()));
}

TEST_CASE("D3: links A=10 B=6 C=20; flows AB, A, B, BC, C") {
  // B is used up first: 3 x = 6. Then A: 10 - 2. Then C: 20 - 2.
  check_rates(rates({10, 6, 20}, {{0, 1}, {0}, {1}, {1, 2}, {2}}), {2, 8, 2, 2, 18});
}

TEST_CASE("D4: two 50 GB/s NICs over one 50 GB/s uplink (2:1) get 25 GB/s each") {
  check_rates(rates({50e9, 50e9, 50e9}, {{0, 2}, {1, 2}}), {25e9, 25e9});
}

TEST_CASE("D5: 31-to-1 incast on a 50 GB/s port: 50/31 GB/s each") {
  std::vector<double> capacity(32, 50e9);
  std::vector<std::vector<std::size_t>> flows;
  for (std::size_t sender = 1; sender < 32; ++sender) flows.push_back({sender, 0});
  check_rates(rates(capacity, flows), std::vector<double>(31, 50e9 / 31));
}

TEST_CASE("D6: weights 3 and 1 on 100: 75 and 25") { check_rates(rates({100}, {{0}, {0}}, {3, 1}), {75, 25}); }
