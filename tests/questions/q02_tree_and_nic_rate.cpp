// Why does a two-node all-reduce report more bus bandwidth than the NIC line rate, and what will it be on more nodes?
// (https://github.com/NVIDIA/nccl-tests/issues/196, https://github.com/NVIDIA/nccl/issues/812)
#include "models/catalog/catalog.hpp"
#include "models/collectives/collective.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

// Idealized constants, so that the ceilings are those of the line rate: a ring moves 2(p-1)/p S through a node's NICs,
// a tree over two nodes S.
double bus_bandwidth(const Cluster& cluster, const char* algorithm) {
  const std::vector<GpuId> gpus = all_gpus(cluster);
  const auto ranks = static_cast<std::int64_t>(gpus.size());
  const Bytes size = gibibytes(8);
  const double seconds =
      planned_seconds({cluster, gpus}, alpha_only(Picoseconds{0}, algorithm), Collective::all_reduce, size);
  return static_cast<double>(size.value()) / seconds * bus_bandwidth_factor(Collective::all_reduce, ranks) / 1e9;
}

}  // namespace

TEST_CASE("one NIC per node: ring at line rate, tree above it", "[questions]") {
  const NodeSpec node = Catalog::built_in().node("h100-pcie-8-1nic");
  REQUIRE(node.shape.nics == 1);
  const double line = node.shape.nic_rate.value() / 1e9;
  const auto two = make_cluster(node.shape, 2);
  CHECK(bus_bandwidth(*two, "ring") == Approx(line).epsilon(0.01));
  // 12.5 x 2 x 15/16 = 23.4 GB/s for a 100 Gb/s NIC.
  CHECK(bus_bandwidth(*two, "tree") == Approx(line * 2 * 15 / 16).epsilon(0.01));
  // On more nodes an inner node of the tree moves as much as the ring does: 2 S.
  const auto four = make_cluster(node.shape, 4);
  CHECK(bus_bandwidth(*four, "ring") == Approx(line).epsilon(0.01));
  CHECK(bus_bandwidth(*four, "tree") < line * 1.01);
}

TEST_CASE("eight NICs of 100 Gb/s per node", "[questions]") {
  // 2 DGX A100: tree ceiling 8 x 12.5 x 2 x 15/16 = 187.5 GB/s, ring 100 GB/s.
  NodeShape shape = Catalog::built_in().node("dgx-a100").shape;
  REQUIRE(shape.nics == 8);
  shape.nic_rate = gigabits_per_second(100);
  const auto two = make_cluster(shape, 2);
  CHECK(bus_bandwidth(*two, "ring") == Approx(100).epsilon(0.01));
  CHECK(bus_bandwidth(*two, "tree") == Approx(187.5).epsilon(0.01));
}

TEST_CASE("the automatic choice takes the tree on two nodes only", "[questions]") {
  const NodeShape shape = Catalog::built_in().node("dgx-a100").shape;
  CommunicationModel model;
  const auto chosen = [&](std::int64_t nodes) {
    const auto cluster = make_cluster(shape, nodes);
    const std::vector<GpuId> gpus = all_gpus(*cluster);
    return plan_collective({*cluster, gpus}, model, Collective::all_reduce, gibibytes(8));
  };
  CHECK(chosen(2).algorithm == "tree");
  CHECK(chosen(4).algorithm == "ring");
  // The reason names the rivals and their times.
  CHECK(chosen(4).reason.find("tree") != std::string::npos);
  CHECK(chosen(4).reason.find("ms") != std::string::npos);
}
