// Collectives against their closed forms: alpha-beta costs, hierarchies, LogGP rings, ECMP collisions, torus rings.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/collectives/collective.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

constexpr double kAlpha = 5e-6;
constexpr double kRate = 50e9;
constexpr std::int64_t kRanks = 64;

// One rounding to the clock per plan, and coefficients of 40 bits.
Approx close_to(double seconds) { return Approx(seconds).epsilon(1e-11).margin(2e-12); }

struct FlatCluster {
  std::unique_ptr<Cluster> cluster;
  std::vector<GpuId> gpus;
  explicit FlatCluster(std::int64_t ranks)
      : cluster(make_cluster(one_gpu_node(Rate(kRate)), ranks)), gpus(all_gpus(*cluster)) {}
  [[nodiscard]] double seconds(const std::string& algorithm, Collective collective, Bytes bytes) const {
    return planned_seconds({*cluster, gpus}, alpha_only(from_seconds<Picoseconds>(kAlpha), algorithm), collective,
                           bytes);
  }
};

}  // namespace

TEST_CASE("all-reduce costs in the alpha-beta model", "[collectives]") {
  // p ranks, n bytes, alpha per step, beta = 1/B, full-duplex single port (Thakur et al., IJHPCA 19, 2005):
  //   ring                  2(p-1) alpha + 2(p-1)/p n beta
  //   recursive doubling    log2 p (alpha + n beta)
  //   Rabenseifner          2 log2 p alpha + 2(p-1)/p n beta
  //   binomial              2 log2 p (alpha + n beta)
  const FlatCluster flat(kRanks);
  const double p = kRanks;
  const double steps = std::log2(p);
  for (const std::int64_t bytes : {std::int64_t{8192}, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
    const double transfer = static_cast<double>(bytes) / kRate;
    const auto seconds = [&](const char* algorithm) {
      return flat.seconds(algorithm, Collective::all_reduce, Bytes(bytes));
    };
    CHECK(seconds("ring") == close_to(2 * (p - 1) * kAlpha + 2 * (p - 1) / p * transfer));
    CHECK(seconds("recursive-doubling") == close_to(steps * (kAlpha + transfer)));
    CHECK(seconds("rabenseifner") == close_to(2 * steps * kAlpha + 2 * (p - 1) / p * transfer));
    CHECK(seconds("binomial") == close_to(2 * steps * (kAlpha + transfer)));
  }
}

TEST_CASE("the other collectives in the alpha-beta model", "[collectives]") {
  const FlatCluster flat(kRanks);
  const double p = kRanks;
  const Bytes gibibyte = gibibytes(1);
  const double transfer = static_cast<double>(gibibyte.value()) / kRate;
  // (p-1) alpha + (p-1)/p n beta
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    CHECK(flat.seconds("ring", collective, gibibyte) == close_to((p - 1) * (kAlpha + transfer / p)));
  }
  // (p-1)(alpha + n/p beta)
  CHECK(flat.seconds("pairwise", Collective::all_to_all, gibibyte) == close_to((p - 1) * (kAlpha + transfer / p)));
  // log2 p (alpha + n/2 beta)
  CHECK(flat.seconds("bruck", Collective::all_to_all, Bytes(8192)) ==
        close_to(std::log2(p) * (kAlpha + 8192 / kRate / 2)));
  // scatter and all-gather: (log2 p + p-1) alpha + 2(p-1)/p n beta
  CHECK(flat.seconds("scatter-allgather", Collective::broadcast, gibibyte) ==
        close_to((std::log2(p) + p - 1) * kAlpha + 2 * (p - 1) / p * transfer));
  // binomial broadcast and reduce: log2 p (alpha + n beta)
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    CHECK(flat.seconds("binomial", collective, gibibyte) == close_to(std::log2(p) * (kAlpha + transfer)));
  }
}

TEST_CASE("ring and recursive doubling cross where their costs are equal", "[collectives]") {
  // n* = alpha (2(p-1) - log2 p) / (beta (log2 p - 2(p-1)/p)): 7.44 MB at 64 ranks, 5 us and 50 GB/s.
  const FlatCluster flat(kRanks);
  const double p = kRanks;
  const double crossover = kAlpha * (2 * (p - 1) - std::log2(p)) * kRate / (std::log2(p) - 2 * (p - 1) / p);
  CHECK(crossover == Approx(7.44186e6).epsilon(1e-5));
  const auto ring_wins = [&](double bytes) {
    const Bytes size(std::llround(bytes));
    return flat.seconds("ring", Collective::all_reduce, size) <
           flat.seconds("recursive-doubling", Collective::all_reduce, size);
  };
  CHECK_FALSE(ring_wins(crossover * 0.9999));
  CHECK(ring_wins(crossover * 1.0001));
}

TEST_CASE("bus bandwidth factors", "[collectives]") {
  // nccl-tests, PERFORMANCE.md, at 16 ranks: 30/16, 15/16, 1.
  CHECK(bus_bandwidth_factor(Collective::all_reduce, 16) == Approx(1.875));
  CHECK(bus_bandwidth_factor(Collective::all_gather, 16) == Approx(0.9375));
  CHECK(bus_bandwidth_factor(Collective::reduce_scatter, 16) == Approx(0.9375));
  CHECK(bus_bandwidth_factor(Collective::all_to_all, 16) == Approx(0.9375));
  CHECK(bus_bandwidth_factor(Collective::broadcast, 16) == Approx(1));
  CHECK(bus_bandwidth_factor(Collective::reduce, 16) == Approx(1));
}

TEST_CASE("hierarchical all-reduce and flat multi-ring", "[collectives]") {
  // 1 GB over N = 16 nodes of G = 8 GPUs, NVLink 370 GB/s, one 49 GB/s rail per GPU, no latencies.
  constexpr double kNvlink = 370e9;
  constexpr double kRail = 49e9;
  constexpr double kBytes = 1e9;
  const auto cluster = make_cluster(switched_node(8, Rate(kNvlink), 8, Rate(kRail)), 16);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  const CommunicationModel model = alpha_only(Picoseconds{0}, "hierarchical");
  const double inside = 2.0 * 7 / 8 * kBytes / kNvlink;
  const double between = 2.0 * 15 / 16 * kBytes / 8 / kRail;

  // Stage after stage: 2(G-1)/G n/Bnv + 2(N-1)/N (n/G)/Bnic = 9.51289 ms. Overlapped: the larger, 4.78316 ms.
  const Schedule schedule = find_algorithm("hierarchical").schedule(Collective::all_reduce, group, model);
  const auto seconds = [&](bool pipelined) {
    return to_seconds(uncontended_time(plan_schedule(group, model, schedule, Bytes(1'000'000'000), pipelined),
                                       cluster->network(), model));
  };
  CHECK(seconds(false) == close_to(inside + between));
  CHECK(seconds(false) == Approx(9.51289e-3).epsilon(1e-6));
  CHECK(seconds(true) == close_to(std::max(inside, between)));

  // Eight rings over all 128 GPUs: NVLink 2(p-1)/p n/Bnv = 5.36318 ms binds, the NICs need 2(p-1)/p n/(G Bnic).
  const double share = 2.0 * 127 / 128;
  CHECK(planned_seconds(group, alpha_only(Picoseconds{0}, "ring"), Collective::all_reduce, Bytes(1'000'000'000)) ==
        close_to(share * kBytes / kNvlink));
  const auto wide = make_cluster(switched_node(8, Rate(10 * kNvlink), 8, Rate(kRail)), 16);
  CHECK(planned_seconds({*wide, gpus}, alpha_only(Picoseconds{0}, "ring"), Collective::all_reduce,
                        Bytes(1'000'000'000)) == close_to(share * kBytes / (8 * kRail)));
}

TEST_CASE("a tree over two nodes passes the NIC rate", "[collectives]") {
  // A tree moves S through a node's NICs, a ring 2(p-1)/p S: bus bandwidth up to 400 x 2 x 15/16 = 750 GB/s with eight
  // 50 GB/s NICs, where the ring has 400. NVLink made too wide to bind.
  const auto cluster = make_cluster(switched_node(8, Rate(1e15), 8, Rate(50e9)), 2);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const auto bus_bandwidth = [&](const char* algorithm) {
    const double seconds =
        planned_seconds({*cluster, gpus}, alpha_only(Picoseconds{0}, algorithm), Collective::all_reduce, gibibytes(1));
    return static_cast<double>(gibibytes(1).value()) / seconds * bus_bandwidth_factor(Collective::all_reduce, 16);
  };
  CHECK(bus_bandwidth("tree") == Approx(750e9).epsilon(1e-9));
  CHECK(bus_bandwidth("ring") == Approx(400e9).epsilon(1e-9));
}

TEST_CASE("two long links in a ring", "[collectives]") {
  // 32 ranks, 1 GB, 48.5 GB/s, 5 us links but two of 20 or 300 us. Members that wait only for their data and their port
  // follow the LogGP recursion start = max(data there, port free); with a barrier per step all wait for the longest.
  constexpr int kMembers = 32;
  constexpr double kPort = 48.5e9;
  constexpr double kBytes = 1e9;
  const auto cluster = make_cluster(one_gpu_node(Rate(kPort)), kMembers, "single-switch", table({}), {},
                                    Picoseconds{2'500'000});  // two hops of 2.5 us
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  const CommunicationModel model = alpha_only(Picoseconds{0}, "ring");
  const auto bus_bandwidth = [&](double seconds) { return kBytes / seconds * 2 * 31 / 32 / 1e9; };
  for (const auto& [long_link, published] : {std::pair{20e-6, 48.0549}, std::pair{300e-6, 46.7561}}) {
    const ExtraLatency extra = [&](std::uint32_t from, std::uint32_t) {
      return from == 15 || from == 31 ? from_seconds<Picoseconds>(long_link - 5e-6) : Picoseconds{0};
    };
    const double send = kBytes / kMembers / kPort;
    std::vector<double> ready(kMembers, 0);
    std::vector<double> busy(kMembers, 0);
    for (int step = 0; step < 2 * (kMembers - 1); ++step) {
      std::vector<double> start(kMembers);
      for (std::size_t i = 0; i < kMembers; ++i) start[i] = std::max(ready[i], busy[i]);
      for (std::size_t i = 0; i < kMembers; ++i) {
        const std::size_t left = (i + kMembers - 1) % kMembers;
        busy[i] = start[i] + send;
        ready[i] = start[left] + send + (left == 15 || left == 31 ? long_link : 5e-6);
      }
    }
    const double recursion = *std::max_element(ready.begin(), ready.end());
    const auto seconds = [&](StepSynchronization synchronization) {
      return to_seconds(
          run_step_by_step(group, model, Collective::all_reduce, Bytes(1'000'000'000), synchronization, extra).time);
    };
    // Each of the 62 steps may be rounded by a tick.
    const double dependent = seconds(StepSynchronization::dependency);
    CHECK(dependent == Approx(recursion).epsilon(0).margin(62e-12));
    CHECK(bus_bandwidth(dependent) == Approx(published).margin(5e-5));
    const double barrier = seconds(StepSynchronization::barrier);
    CHECK(barrier == Approx(62 * (send + long_link)).epsilon(0).margin(62e-12));
  }
}

TEST_CASE("a window limits a flow to window over round trip", "[collectives]") {
  // 4 MiB in flight over a round trip of 600 us: 6.99051 GB/s on a 50 GB/s link.
  const auto cluster = make_cluster(one_gpu_node(Rate(kRate)), 2, "single-switch", table({}), {},
                                    Picoseconds{150'000'000});  // two hops of 150 us: 300 us one way
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  CommunicationModel model = alpha_only(Picoseconds{0}, "point-to-point");
  model.window = mebibytes(4);
  const double rate = static_cast<double>(mebibytes(4).value()) / 600e-6;
  CHECK(rate == Approx(6.99051e9).epsilon(1e-6));
  const double expected = 300e-6 + 1e9 / rate;
  CHECK(planned_seconds(group, model, Collective::send_receive, Bytes(1'000'000'000)) == close_to(expected));
  const StepByStepResult run =
      run_step_by_step(group, model, Collective::send_receive, Bytes(1'000'000'000), StepSynchronization::dependency);
  CHECK(to_seconds(run.time) == close_to(expected));
}

namespace {

// A torus that tells its side lengths, whatever the fabric underneath does.
class ToldTorus final : public Fabric {
 public:
  explicit ToldTorus(std::unique_ptr<Fabric> wired) : wired_(std::move(wired)) {}
  void route(std::uint32_t from, std::uint32_t to, const Routing& routing, Route& out) const override {
    wired_->route(from, to, routing, out);
  }
  [[nodiscard]] FabricFigures figures() const override { return wired_->figures(); }
  [[nodiscard]] std::span<const std::uint32_t> torus_sides() const override { return kSides; }

 private:
  static constexpr std::uint32_t kSides[] = {4, 4, 4};
  std::unique_ptr<Fabric> wired_;
};

std::unique_ptr<Fabric> build_told_torus(const FabricContext& context, const Settings& settings) {
  return std::make_unique<ToldTorus>(find_fabric("torus").build(context, settings));
}

}  // namespace

TEST_CASE("rotated rings keep all ports of a torus busy", "[collectives]") {
  // 4 x 4 x 4 torus, 50 GB/s per link and direction, 1 GB: three parts, each along another side, in both directions:
  // 2(p-1)/p n / (6 b) = 6.5625 ms.
  const FabricEntry entry{"told-torus", "", find_fabric("torus").schema, build_told_torus};
  const Settings settings = check_settings(table({{"dims", integers({4, 4, 4})}}), entry.schema, "network");
  ClusterSpec spec;
  spec.nodes = {{one_gpu_node(Rate(kRate)), 64}};
  spec.fabric = &entry;
  spec.fabric_settings = &settings;
  const auto cluster = std::make_unique<Cluster>(spec);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const double ideal = 2.0 * 63 / 64 * 1e9 / (6 * kRate);
  CHECK(ideal == Approx(6.5625e-3));
  CHECK(planned_seconds({*cluster, gpus}, alpha_only(Picoseconds{0}, "torus-ring"), Collective::all_reduce,
                        Bytes(1'000'000'000)) == close_to(ideal));
}
