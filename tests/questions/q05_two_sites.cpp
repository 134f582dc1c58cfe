// Ring all-reduce across two buildings: why does the bandwidth halve at a few hundred microseconds with 32 GPUs?
// (https://github.com/NVIDIA/nccl-tests/issues/241)
#include "models/collectives/collective.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

constexpr double kPort = 48.5e9;
constexpr std::int64_t kBytes = 1'000'000'000;

// A ring of `members`, half of them in each building, 5 us between neighbours.
struct TwoSites {
  std::unique_ptr<Cluster> cluster;
  std::vector<GpuId> gpus;
  explicit TwoSites(std::int64_t members)
      : cluster(
            make_cluster(one_gpu_node(Rate(kPort)), members, "single-switch", table({}), {}, Picoseconds{2'500'000})),
        gpus(all_gpus(*cluster)) {}

  // GB/s of bus bandwidth with the long way of `cross` seconds between the buildings.
  [[nodiscard]] double bus_bandwidth(double cross, StepSynchronization synchronization, Bytes window) const {
    CommunicationModel model = alpha_only(Picoseconds{0}, "ring");
    model.window = window;
    const auto half = static_cast<std::uint32_t>(gpus.size() / 2);
    const ExtraLatency extra = [&](std::uint32_t from, std::uint32_t to) {
      return from / half != to / half ? from_seconds<Picoseconds>(cross - 5e-6) : Picoseconds{0};
    };
    const Group group{*cluster, gpus};
    const double seconds =
        to_seconds(run_step_by_step(group, model, Collective::all_reduce, Bytes(kBytes), synchronization, extra).time);
    return static_cast<double>(kBytes) / seconds * bus_bandwidth_factor(Collective::all_reduce, group.size()) / 1e9;
  }
};

}  // namespace

TEST_CASE("three ways to meet a long latency", "[questions]") {
  const TwoSites sites(32);
  // Members that wait only for their data lose 3 %.
  CHECK(sites.bus_bandwidth(300e-6, StepSynchronization::dependency, Bytes(0)) == Approx(46.7561).epsilon(1e-5));
  CHECK(sites.bus_bandwidth(20e-6, StepSynchronization::dependency, Bytes(0)) == Approx(48.0549).epsilon(1e-5));
  // Steps synchronized over all members lose a third: 62 (n/p/B + 300 us) gives 33.09 GB/s, 20 us 47.04.
  CHECK(sites.bus_bandwidth(300e-6, StepSynchronization::barrier, Bytes(0)) == Approx(33.09).epsilon(1e-3));
  CHECK(sites.bus_bandwidth(20e-6, StepSynchronization::barrier, Bytes(0)) == Approx(47.04).epsilon(1e-3));
  // A window of 4 MiB holds the two long connections to window / RTT = 6.99 GB/s, and with them the ring.
  const double windowed = sites.bus_bandwidth(300e-6, StepSynchronization::dependency, mebibytes(4));
  CHECK(windowed < 6.99051);
  CHECK(windowed > 0.9 * 6.99051);
}

TEST_CASE("within one building nothing changes", "[questions]") {
  // The 16-GPU run stayed in one building: its ring has no long link, whatever the distance to the other.
  const TwoSites sites(32);
  const std::vector<GpuId> half(sites.gpus.begin(), sites.gpus.begin() + 16);
  const Group group{*sites.cluster, half};
  const auto seconds = [&](double cross) {
    const ExtraLatency extra = [&](std::uint32_t from, std::uint32_t to) {
      return from / 16 != to / 16 ? from_seconds<Picoseconds>(cross) : Picoseconds{0};
    };
    return run_step_by_step(group, alpha_only(Picoseconds{0}, "ring"), Collective::all_reduce, Bytes(kBytes),
                            StepSynchronization::dependency, extra)
        .time;
  };
  CHECK(seconds(300e-6) == seconds(0));
}
