// A non-oversubscribed RoCE fat tree still loses collective bandwidth: what do ECMP hash collisions cost, and what do
// adaptive routing or several queue pairs buy? (https://github.com/NVIDIA/cluster-readiness-engine/pull/287)
#include <algorithm>
#include <cmath>
#include <map>

#include "models/collectives/collective.hpp"
#include "sim/statistics.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

constexpr std::int64_t kHosts = 8;  // per leaf, and as many uplinks
constexpr double kRate = 50e9;

// Two leaves of eight hosts, eight spines.
std::unique_ptr<Cluster> two_leaves(const Routing& routing) {
  return make_cluster(one_gpu_node(Rate(kRate)), 2 * kHosts, "fat-tree",
                      table({{"down", integers({kHosts, 2})}, {"up", integers({kHosts})}}), routing);
}

// Bytes per uplink of the first leaf when each of its hosts sends one unit to the host at its place on the other leaf.
std::vector<double> uplink_loads(const Cluster& cluster) {
  std::map<std::uint32_t, double> loads;
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    Route route;
    cluster.route(GpuId(host), GpuId(static_cast<std::uint32_t>(host + kHosts)), route);
    for (const PathShare& share : route.shares) {
      const Network& network = cluster.network();
      if (share.resource >= network.links().size()) continue;
      const Link& link = network.links()[share.resource];
      if (network.device(link.from).tier == 1 && network.device(link.to).tier == 2)
        loads[share.resource] += share.share;
    }
  }
  std::vector<double> result;
  for (const auto& [link, load] : loads) result.push_back(load);
  return result;
}

// A ring through pairs of neighbours on alternating leaves: four edges cross each way over eight uplinks, and all steps
// wait for the most loaded one.
double ring_seconds(const Routing& routing) {
  const auto cluster = two_leaves(routing);
  std::vector<GpuId> gpus;
  for (std::uint32_t host = 0; host < kHosts; host += 2) {
    for (const std::int64_t leaf : {std::int64_t{0}, kHosts}) {
      gpus.emplace_back(static_cast<std::uint32_t>(leaf) + host);
      gpus.emplace_back(static_cast<std::uint32_t>(leaf) + host + 1);
    }
  }
  return planned_seconds({*cluster, gpus}, alpha_only(Picoseconds{0}, "ring"), Collective::all_reduce, gibibytes(1));
}

}  // namespace

TEST_CASE("eight flows hashed on eight uplinks", "[questions]") {
  // Balls in bins, M = 8: busy links 8 (1 - (7/8)^8) = 5.251, so the flows together get 65.64 % of the line rate when
  // each link gives its all; mean of the fullest link 2.59723 flows; P(no collision) = 8!/8^8 = 0.24033 %.
  constexpr std::uint64_t kSeeds = 20000;
  SampleStatistics share;
  SampleStatistics fullest;
  SampleStatistics free_of_collision;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto cluster = two_leaves({RoutingPolicy::ecmp, seed, 1});
    const std::vector<double> loads = uplink_loads(*cluster);
    const double most = *std::max_element(loads.begin(), loads.end());
    share.add(static_cast<double>(loads.size()) / kHosts);
    fullest.add(most);
    free_of_collision.add(most == 1 ? 1 : 0);
  }
  const auto within_4_sigma = [](const SampleStatistics& sample, double expected) {
    return std::abs(sample.mean() - expected) <=
           4 * sample.standard_deviation() / std::sqrt(static_cast<double>(sample.count()));
  };
  CAPTURE(share.mean(), fullest.mean(), free_of_collision.mean());
  CHECK(within_4_sigma(share, 0.6564));
  CHECK(within_4_sigma(fullest, 2.59723));
  CHECK(within_4_sigma(free_of_collision, 40320.0 / 16777216.0));
}

TEST_CASE("spraying against hashing for a synchronous ring", "[questions]") {
  const double sprayed = ring_seconds({RoutingPolicy::spread, 0, 1});
  // Spreading gives the full line rate: 2 x 15/16 n / B.
  CHECK(sprayed == Approx(2.0 * 15 / 16 * static_cast<double>(gibibytes(1).value()) / kRate));
  std::vector<double> gains;
  for (const std::uint32_t queue_pairs : {1U, 2U, 4U, 8U}) {
    SampleStatistics gain;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      gain.add(ring_seconds({RoutingPolicy::ecmp, seed, queue_pairs}) / sprayed);
    }
    gains.push_back(gain.mean());
  }
  CAPTURE(gains);
  // Measured in the field: 1.7 from adaptive routing with split queue pairs.
  CHECK(gains[0] >= 1.5);
  CHECK(gains[0] <= 2.6);
  for (std::size_t i = 1; i < gains.size(); ++i) CHECK(gains[i] < gains[i - 1]);
  CHECK(gains.back() >= 1.0);
}
