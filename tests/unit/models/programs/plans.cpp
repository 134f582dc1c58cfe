// Plans shared by pattern are the plans of each communicator by itself.
#include "models/programs/plans.hpp"

#include <map>
#include <vector>

#include "small_jobs.hpp"
#include "tests/catch.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Value tier(std::int64_t down, std::int64_t up) {
  return Value{Value::Table{{"down", Value{down, {}}}, {"up", Value{up, {}}}}, {}};
}

/// 16 nodes of 4 GPUs and 2 NICs; leaves of 2 nodes, pods of 2 leaves.
std::unique_ptr<Cluster> tree(RoutingPolicy policy) {
  const Value tiers{Value::Array{tier(4, 2), tier(2, 1), Value{Value::Table{}, {}}}, {}};
  const Value written{Value::Table{{"tiers", tiers}}, {}};
  const FabricEntry& fabric = find_fabric("fat-tree");
  const Settings settings = check_settings(written, fabric.schema, "network");
  ClusterSpec spec;
  spec.nodes.push_back({node_of(4, 2), 16});
  spec.fabric = &fabric;
  spec.fabric_settings = &settings;
  spec.routing.policy = policy;
  return std::make_unique<Cluster>(spec);
}

enum : std::uint16_t { inside, across, out, in };

/// Groups inside nodes, one across all nodes for each seat, and messages round a ring of nodes.
Job job_of_groups(const Cluster& cluster) {
  Job job = job_on(cluster, cluster.gpus(), 4);
  for (std::uint32_t node = 0; node < 16; ++node) {
    join(job, {4 * node, 4 * node + 1, 4 * node + 2, 4 * node + 3}, {inside, inside, inside, inside});
    for (std::uint32_t seat = 0; seat < 4; ++seat) {
      join(job, {4 * node + seat, 4 * ((node + 1) % 16) + seat}, {out, in});
    }
  }
  for (std::uint32_t seat = 0; seat < 4; ++seat) {
    std::vector<RankId> members;
    for (std::uint32_t node = 0; node < 16; ++node) members.emplace_back(4 * node + seat);
    job.add_communicator(members, std::vector<std::uint16_t>(16, across));
  }
  ProgramBuilder builder(job, 3);
  builder.collective(0, inside, {Collective::all_reduce, mebibytes(8), Cause::exposed_tensor}, "inside");
  builder.collective(0, across, {Collective::all_reduce, mebibytes(64), Cause::exposed_data}, "across");
  builder.collective(0, across, {Collective::all_gather, mebibytes(1), Cause::exposed_data}, "across");
  builder.collective(1, out, {Collective::send_receive, mebibytes(2), Cause::exposed_pipeline}, "out");
  builder.collective(2, in, {Collective::send_receive, mebibytes(2), Cause::exposed_pipeline}, "in");
  builder.finish();
  return job;
}

CommunicatorPlans plans_of(const Job& job, const Cluster& cluster) {
  return plan_communicators(job, std::vector{compile_program(job, 0)}, cluster, {});
}

void check_plans(const Job& job, const Cluster& cluster, const CommunicatorPlans& plans) {
  for (std::uint32_t c = 0; c < job.communicators(); ++c) {
    std::vector<GpuId> gpus;
    for (const RankId rank : job.communicator(CommunicatorId(c))) gpus.push_back(job.gpu_of[rank.index()]);
    const std::uint32_t pattern = plans.pattern_of[c];
    const OperationSequence& sequence = plans.sequence(c);
    REQUIRE(plans.plans_of(c).size() == sequence.distinct.size());
    for (std::size_t i = 0; i < sequence.distinct.size(); ++i) {
      const NetworkOperation& operation = plans.operations[sequence.distinct[i]];
      const CollectivePlan alone = plan_collective({cluster, gpus}, {}, operation.collective, Bytes(operation.bytes));
      const OperationPlan& shared = plans.plans_of(c)[i];
      REQUIRE(shared.amount == alone.amount);
      REQUIRE(shared.rate_cap == alone.rate_cap);
      REQUIRE(shared.latency == alone.latency);
      REQUIRE(plans.algorithms[shared.algorithm].algorithm == alone.algorithm);
      std::map<std::uint32_t, double> uses;
      for (const PatternUse& use : plans.uses_of(pattern, shared.shape)) {
        uses[plans.places[plans.places_of(c)[use.place]].resource(use.offset)] = use.coefficient;
      }
      REQUIRE(uses.size() == alone.uses.size());
      for (const PlanUse& use : alone.uses) REQUIRE(uses.at(use.resource) == use.coefficient);
    }
  }
}

}  // namespace

TEST_CASE("communicators that sit alike share a pattern, and its plans are those of each") {
  const auto cluster = tree(RoutingPolicy::spread);
  const Job job = job_of_groups(*cluster);
  const CommunicatorPlans plans = plans_of(job, *cluster);
  CHECK(plans.relative);
  // One inside nodes. Per seat one across, and messages under a leaf, within a pod, between pods, and round the end.
  CHECK(plans.patterns() <= 1 + 4 * (1 + 4));
  check_plans(job, *cluster, plans);
}

TEST_CASE("a slow link gives those that may cross it patterns of their own") {
  const auto cluster = tree(RoutingPolicy::spread);
  const Job job = job_of_groups(*cluster);
  const std::size_t healthy = plans_of(job, *cluster).patterns();
  Network& network = cluster->network();
  const LinkId slow = *network.find_link("node5/nic1 -> leaf2");
  network.set_capacity(slow, network.link(slow).capacity * 0.3);
  const CommunicatorPlans plans = plans_of(job, *cluster);
  CHECK(plans.patterns() > healthy);
  check_plans(job, *cluster, plans);
}

TEST_CASE("hashed routes: what stays inside a node shares, what leaves it does not") {
  const auto cluster = tree(RoutingPolicy::ecmp);
  const Job job = job_of_groups(*cluster);
  const CommunicatorPlans plans = plans_of(job, *cluster);
  CHECK_FALSE(plans.relative);
  for (std::uint32_t c = 0; c < job.communicators(); ++c) {
    if (job.communicator(CommunicatorId(c)).size() == 4) CHECK(plans.pattern_of[c] == plans.pattern_of[0]);
  }
  check_plans(job, *cluster, plans);
}

TEST_CASE("two ranks on one GPU: places do not say who is who") {
  const auto cluster = single_switch(2);
  Job job = job_on(*cluster, 4, 1);
  join_all(job, 0);
  ProgramBuilder builder(job, 1);
  builder.kernel(0, Cause::compute, "work", Picoseconds(1));
  builder.finish();
  CHECK_FALSE(plans_of(job, *cluster).relative);
}
