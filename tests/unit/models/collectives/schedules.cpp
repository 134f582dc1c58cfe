// What schedules promise: every algorithm moves the right bytes, on any group, and says no to what it cannot do.
#include <algorithm>
#include <map>
#include <set>

#include "models/collectives/collective.hpp"
#include "models/collectives/rounds.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

constexpr Collective kAll[] = {Collective::all_reduce,  Collective::all_gather, Collective::reduce_scatter,
                               Collective::broadcast,   Collective::reduce,     Collective::all_to_all,
                               Collective::send_receive};

NodeShape reducing_node() {
  NodeShape shape = switched_node(8, Rate(450e9), 8, Rate(50e9));
  shape.in_network_reduction = true;
  return shape;
}

// Point-to-point bytes that each member receives, per byte of the operation.
std::vector<double> received(const Schedule& schedule, std::size_t members) {
  std::vector<double> bytes(members, 0);
  for (const Round& round : schedule.rounds) {
    for (const Transfer& transfer : round.transfers) {
      if (transfer.via == Transfer::Via::point_to_point) {
        bytes[transfer.to] += transfer.bytes_per_byte * static_cast<double>(round.repeats);
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("every algorithm has a help line and runs where it says it can", "[collectives]") {
  const auto cluster = make_cluster(reducing_node(), 3, "single-switch", table({}), {}, Picoseconds{0}, true);
  const std::vector<GpuId> everyone = all_gpus(*cluster);
  std::set<std::string_view> names;
  std::set<std::string_view> ran;
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    CHECK(algorithm.help.size() > 10);
    CHECK(names.insert(algorithm.name).second);
    CHECK(&find_algorithm(algorithm.name) == &algorithm);
    for (const std::size_t members : {2U, 3U, 5U, 8U, 12U, 16U, 24U}) {
      const Group group{*cluster, std::span(everyone).first(members)};
      for (const Collective collective : kAll) {
        if (!algorithm.supports(collective, group)) continue;
        ran.insert(algorithm.name);
        CAPTURE(algorithm.name, name(collective), members);
        CommunicationModel model = alpha_only(Picoseconds{1'000'000}, std::string(algorithm.name));
        model.launch = Picoseconds{1'000'000};
        const CollectivePlan plan = plan_collective(group, model, collective, mebibytes(1));
        CHECK(plan.amount > 0);
        CHECK(plan.latency > model.launch);
        CHECK(std::is_sorted(plan.uses.begin(), plan.uses.end(),
                             [](const PlanUse& a, const PlanUse& b) { return a.resource < b.resource; }));
        const Picoseconds planned = uncontended_time(plan, cluster->network(), model);
        // Transfer by transfer, without pipelining, nothing can be faster than half the overlapped estimate, and the
        // run ends: no transfer waits for one that never comes.
        const StepByStepResult run =
            run_step_by_step(group, model, collective, mebibytes(1), StepSynchronization::dependency);
        CHECK(2 * run.time > planned);
        const StepByStepResult barrier =
            run_step_by_step(group, model, collective, mebibytes(1), StepSynchronization::barrier);
        // A barrier never helps a ring. It may help where a member that starts early crowds out a transfer that others
        // wait for, but not by more than a factor two here.
        CHECK(barrier.time >= (algorithm.name == "ring" ? run.time - Picoseconds{1000} : run.time / 2));
        for (const PlanUse& use : plan.uses) {
          CHECK(run.carried[use.resource] == Approx(plan.amount * use.coefficient));
          CHECK(barrier.carried[use.resource] == Approx(plan.amount * use.coefficient));
        }
      }
    }
  }
  // All but the one that needs a torus.
  CHECK(ran.size() + 1 == names.size());
}

TEST_CASE("members receive what the operation needs", "[collectives]") {
  // Lower bounds that these algorithms meet exactly on p members: all_reduce by ring 2(p-1)/p, gathering (p-1)/p,
  // all-to-all (p-1)/p, broadcast 1 for all but the root, reduce 1 in all for the root of a chain.
  const auto cluster = make_cluster(switched_node(8, Rate(450e9), 8, Rate(50e9)), 3);
  const std::vector<GpuId> everyone = all_gpus(*cluster);
  for (const std::size_t members : {2U, 5U, 8U, 13U, 24U}) {
    const Group group{*cluster, std::span(everyone).first(members)};
    const double p = static_cast<double>(members);
    const auto bytes = [&](const char* algorithm, Collective collective) {
      return received(find_algorithm(algorithm).schedule(collective, group, {}), members);
    };
    CAPTURE(members);
    for (const double each : bytes("ring", Collective::all_reduce)) CHECK(each == Approx(2 * (p - 1) / p));
    for (const double each : bytes("ring", Collective::all_gather)) CHECK(each == Approx((p - 1) / p));
    for (const double each : bytes("pairwise", Collective::all_to_all)) CHECK(each == Approx((p - 1) / p));
    for (const double each : bytes("direct", Collective::all_to_all)) CHECK(each == Approx((p - 1) / p));
    for (const char* algorithm : {"ring", "binomial"}) {
      const std::vector<double> each = bytes(algorithm, Collective::broadcast);
      CHECK(each[0] == 0);
      for (std::size_t i = 1; i < members; ++i) CHECK(each[i] == Approx(1));
    }
    CHECK(bytes("ring", Collective::reduce)[0] == Approx(1));
  }
}

TEST_CASE("rings of an even number of nodes stay on their rails", "[collectives]") {
  const auto cluster = make_cluster(switched_node(8, Rate(450e9), 8, Rate(50e9)), 5);
  const std::vector<GpuId> everyone = all_gpus(*cluster);
  for (const std::uint32_t nodes : {2U, 3U, 4U, 5U}) {
    const Group group{*cluster, std::span(everyone).first(std::size_t{8} * nodes)};
    const GroupLayout layout(group, {});
    CHECK(layout.channels() == 8);
    const Round round = ring_round(layout, 0.125, 1);
    int crossings = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> out;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> in;
    for (const Transfer& transfer : round.transfers) {
      const std::uint32_t from = cluster->node_of(group.members[transfer.from]);
      const std::uint32_t to = cluster->node_of(group.members[transfer.to]);
      if (from == to) continue;
      crossings += transfer.from_nic != transfer.to_nic ? 1 : 0;
      ++out[{from, transfer.from_nic}];
      ++in[{to, transfer.to_nic}];
    }
    // Every NIC carries one ring out and one in; an odd number of nodes crosses rails once per ring.
    CHECK(crossings == (nodes % 2 == 0 ? 0 : 8));
    CHECK(out.size() == 8U * nodes);
    CHECK(in.size() == 8U * nodes);
    for (const auto& [nic, rings] : out) CHECK(rings == 1);
    for (const auto& [nic, rings] : in) CHECK(rings == 1);
  }
}

TEST_CASE("each ring visits every member once", "[collectives]") {
  const auto cluster = make_cluster(switched_node(8, Rate(450e9), 4, Rate(50e9)), 4);
  // 1 to 8 members per node, members in scattered order.
  const std::vector<std::uint32_t> numbers{3, 9, 0, 31, 8, 17, 1, 10, 25, 2, 11, 24};
  std::vector<GpuId> gpus;
  for (const std::uint32_t number : numbers) gpus.emplace_back(number);
  const Group group{*cluster, gpus};
  const GroupLayout layout(group, {});
  CHECK(layout.nodes() == 4);
  const Round round = ring_round(layout, 1, 1);
  REQUIRE(round.ring == gpus.size());
  for (std::size_t begin = 0; begin < round.transfers.size(); begin += round.ring) {
    std::set<std::uint32_t> visited;
    for (std::size_t i = 0; i < round.ring; ++i) {
      const Transfer& here = round.transfers[begin + i];
      const Transfer& next = round.transfers[begin + (i + 1) % round.ring];
      CHECK(here.to == next.from);
      visited.insert(here.from);
    }
    CHECK(visited.size() == gpus.size());
  }
}

TEST_CASE("no rank has more than four edges in the two trees", "[collectives]") {
  // Half of the data goes up and down each edge, so four edges are twice the data in and out: what a ring moves.
  for (std::uint32_t ranks = 1; ranks <= 67; ++ranks) {
    const BinaryTree trees[] = {binary_tree(ranks, false), binary_tree(ranks, true)};
    std::vector<int> edges(ranks, 0);
    for (const BinaryTree& tree : trees) {
      std::vector<int> children(ranks, 0);
      int roots = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (tree.parent[rank] == BinaryTree::kRoot) {
          ++roots;
        } else {
          ++children[tree.parent[rank]];
          ++edges[rank];
          ++edges[tree.parent[rank]];
          CHECK(tree.depth[rank] == tree.depth[tree.parent[rank]] + 1);
        }
      }
      CHECK(roots == 1);
      CHECK(*std::max_element(children.begin(), children.end()) <= 2);
      // Depth stays logarithmic: at most ceil(log2 ranks).
      CHECK((1U << tree.height) < 2 * ranks + 1);
    }
    CHECK(*std::max_element(edges.begin(), edges.end()) <= 4);
  }
}

TEST_CASE("names are found or explained", "[collectives]") {
  CHECK(parse_collective("all_reduce") == Collective::all_reduce);
  for (const Collective collective : kAll) CHECK(parse_collective(name(collective)) == collective);
  const auto message = [](const auto& action) {
    try {
      action();
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([] { parse_collective("all_reduc"); }).find("did you mean \"all_reduce\"") != std::string::npos);
  CHECK(message([] { find_algorithm("rings"); }).find("did you mean \"ring\"") != std::string::npos);

  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 4);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  CommunicationModel model;
  model.algorithm = "nvls";
  const std::string refused = message([&] { plan_collective(group, model, Collective::all_reduce, Bytes(1)); });
  CHECK(refused.find("nvls cannot do all_reduce") != std::string::npos);
  CHECK(refused.find("ring") != std::string::npos);
}

TEST_CASE("an algorithm can be forced for one operation", "[collectives]") {
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 4);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  CommunicationModel model;
  const auto chosen = [&](Collective collective) {
    return choose_algorithm(group, model, collective, mebibytes(1)).algorithm->name;
  };
  model.algorithm = "all_reduce:recursive-doubling, all_to_all:bruck";
  CHECK(chosen(Collective::all_reduce) == "recursive-doubling");
  CHECK(chosen(Collective::all_to_all) == "bruck");
  CHECK(chosen(Collective::all_gather) == "ring");
  // Like NCCL_ALGO, a bare name leaves point-to-point operations alone.
  model.algorithm = "tree";
  CHECK(chosen(Collective::all_reduce) == "tree");
  CHECK(chosen(Collective::send_receive) == "point-to-point");
  CHECK_THROWS_AS(chosen(Collective::all_gather), Infeasible);
}

TEST_CASE("groups of one have nothing to do", "[collectives]") {
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 2);
  const std::vector<GpuId> one{GpuId(0U)};
  const CollectivePlan plan = plan_collective({*cluster, one}, {}, Collective::all_reduce, mebibytes(1));
  CHECK(plan.amount == 0);
  CHECK(plan.latency == Picoseconds{0});
  CHECK(plan.uses.empty());
}
