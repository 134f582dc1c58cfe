// The inside of a node: interconnects, the PCIe tree, nearest NICs, refusals.
#include "topologies/node.hpp"

#include <set>

#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

/// A node laid alone into a network, so that local numbers are network numbers.
struct Laid {
  explicit Laid(const NodeShape& shape) : node(shape) { node.lay(network, 0); }
  [[nodiscard]] Route route(const NodeTemplate::LocalPath& path) const {
    Route result;
    for (const auto& hop : path) result.add_hop(hop.link, hop.latency);
    return result;
  }
  [[nodiscard]] DeviceId device(const std::string& name) const { return network.find_device("node0/" + name).value(); }
  [[nodiscard]] Rate narrowest(const NodeTemplate::LocalPath& path) const {
    Rate result = network.link(LinkId(path.front().link)).capacity;
    for (const auto& hop : path) result = std::min(result, network.link(LinkId(hop.link)).capacity);
    return result;
  }
  NodeTemplate node;
  Network network;
};

NodeShape with(std::string interconnect, std::uint32_t gpus, std::uint32_t nics) {
  NodeShape shape = small_node(gpus, nics);
  shape.interconnect = std::move(interconnect);
  shape.cpus = 2;
  shape.pcie_switches = 4;
  return shape;
}

TEST_CASE("the table of interconnects") {
  std::set<std::string_view> names;
  for (const NodeInterconnect& entry : node_interconnects()) {
    INFO(entry.name);
    CHECK_FALSE(entry.help.empty());
    CHECK(names.insert(entry.name).second);
    const Laid laid(with(std::string(entry.name), 8, 8));
    for (std::uint32_t from = 0; from < 8; ++from) {
      for (std::uint32_t to = 0; to < 8; ++to) {
        if (from == to) continue;
        check_hop_by_hop(laid.network, laid.device("gpu" + std::to_string(from)),
                         laid.device("gpu" + std::to_string(to)), laid.route(laid.node.gpu_to_gpu(from, to)));
        CHECK(laid.node.joined_by_scale_up(from, to) == (entry.name != "pcie"));
      }
      for (std::uint32_t nic = 0; nic < 8; ++nic) {
        const DeviceId gpu_device = laid.device("gpu" + std::to_string(from));
        const DeviceId nic_device = laid.device("nic" + std::to_string(nic));
        check_hop_by_hop(laid.network, gpu_device, nic_device, laid.route(laid.node.gpu_to_nic(from, nic)));
        check_hop_by_hop(laid.network, nic_device, gpu_device, laid.route(laid.node.nic_to_gpu(nic, from)));
      }
    }
  }
  CHECK(names.size() >= 4);
}

TEST_CASE("nvswitch: full rate to any GPU in two links, through one port each") {
  const Laid laid(with("nvswitch", 8, 8));
  const auto& path = laid.node.gpu_to_gpu(1, 6);
  REQUIRE(path.size() == 2);
  CHECK(laid.narrowest(path) == gigabytes_per_second(450));
  // The same port carries whatever GPU 1 sends, and in-network reduction uses it too.
  CHECK(laid.node.gpu_to_gpu(1, 2).front().link == path.front().link);
  REQUIRE(laid.node.gpu_to_switch(1).size() == 1);
  CHECK(laid.node.gpu_to_switch(1).front().link == path.front().link);
  CHECK(laid.node.switch_to_gpu(6).front().link == path.back().link);
  const Laid mesh(with("full-mesh", 8, 8));
  CHECK(mesh.node.gpu_to_switch(1).empty());
}

TEST_CASE("full mesh: one link per pair, the GPU's rate divided by its neighbours") {
  const Laid laid(with("full-mesh", 4, 4));
  REQUIRE(laid.node.gpu_to_gpu(0, 3).size() == 1);
  CHECK(laid.narrowest(laid.node.gpu_to_gpu(0, 3)) == gigabytes_per_second(150));
}

TEST_CASE("hybrid cube mesh: six links per GPU, four neighbours, others over a common neighbour") {
  const Laid laid(with("hybrid-cube-mesh", 8, 4));
  const Rate one = gigabytes_per_second(450) / 6;
  for (std::uint32_t from = 0; from < 8; ++from) {
    double links = 0;
    int neighbours = 0;
    for (const Link& link : laid.network.links()) {
      if (link.kind != LinkKind::nvlink || link.from != laid.device("gpu" + std::to_string(from))) continue;
      links += link.capacity / one;
      ++neighbours;
    }
    CHECK(links == Approx(6));
    CHECK(neighbours == 4);
    for (std::uint32_t to = 0; to < 8; ++to) {
      if (from != to) CHECK(laid.node.gpu_to_gpu(from, to).size() <= 2);
    }
  }
  // GPUs 0 and 3 share two links, 0 and 1 one; 0 and 7 are not joined, and their widest common neighbours (3 and 4, at
  // 2 + 1 and 2 + 2 links) make 4 the way.
  CHECK(laid.narrowest(laid.node.gpu_to_gpu(0, 3)) == one * 2.0);
  CHECK(laid.narrowest(laid.node.gpu_to_gpu(0, 1)) == one);
  const auto& far = laid.node.gpu_to_gpu(0, 7);
  REQUIRE(far.size() == 2);
  CHECK(laid.network.link(LinkId(far.front().link)).to == laid.device("gpu4"));
  CHECK(laid.narrowest(far) == one * 2.0);
  const std::string message = message_of<BadInput>([] { NodeTemplate(with("hybrid-cube-mesh", 4, 4)); });
  CHECK(contains(message, "exactly 8"));
}

TEST_CASE("PCIe: two links under a switch, more through root complexes and sockets, and the uplink is shared") {
  const Laid laid(with("pcie", 8, 8));  // 2 sockets x 2 switches x 2 GPUs
  CHECK(laid.node.gpu_to_gpu(0, 1).size() == 2);
  CHECK(laid.node.gpu_to_gpu(0, 2).size() == 4);  // switch, socket, switch
  CHECK(laid.node.gpu_to_gpu(0, 4).size() == 5);  // switch, socket, socket, switch
  CHECK(laid.narrowest(laid.node.gpu_to_gpu(0, 4)) == gigabytes_per_second(60));
  const auto& a = laid.node.gpu_to_gpu(0, 2);
  const auto& b = laid.node.gpu_to_gpu(1, 3);
  CHECK(a[1].link == b[1].link);
  CHECK(a[2].link == b[2].link);
  CHECK(laid.node.gpu_to_cpu(0).size() == 2);
  CHECK(laid.network.link(LinkId(laid.node.gpu_to_cpu(7).back().link)).to == laid.device("cpu1"));
}

TEST_CASE("the nearest NIC shares the GPU's switch when counts allow") {
  for (const auto& [gpus, nics] : {std::pair{8U, 8U}, {8U, 4U}, {4U, 8U}, {8U, 2U}, {8U, 1U}, {6U, 3U}}) {
    NodeShape shape = with("nvswitch", gpus, nics);
    shape.pcie_switches = std::min({gpus, nics, 4U});
    const NodeTemplate node(shape);
    std::uint32_t together = 0;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      CHECK(node.nearest_nic(gpu) == gpu * nics / gpus);
      together += node.gpu_to_nic(gpu, node.nearest_nic(gpu)).size() == 2 ? 1 : 0;
    }
    INFO(gpus << " GPUs, " << nics << " NICs");
    CHECK(together == gpus);
  }
  SECTION("also when the catalog names the nearest NIC") {
    NodeShape shape = with("nvswitch", 4, 4);
    shape.nic_of_gpu = {3, 2, 1, 0};
    const NodeTemplate node(shape);
    for (std::uint32_t gpu = 0; gpu < 4; ++gpu) CHECK(node.gpu_to_nic(gpu, 3 - gpu).size() == 2);
  }
}

TEST_CASE("NIC latency is paid once on the way out") {
  const Laid laid(with("nvswitch", 8, 8));
  // GPU to switch (PCIe) and switch to NIC (PCIe plus the adapter): 2 x 150 ns + 300 ns.
  CHECK(laid.route(laid.node.gpu_to_nic(0, 0)).latency == Picoseconds(600'000));
}

TEST_CASE("a node that cannot be is refused with key and value") {
  const auto refusal = [](auto change) {
    NodeShape shape = with("nvswitch", 8, 8);
    change(shape);
    return message_of<BadInput>([&] { const NodeTemplate node(shape); });
  };
  CHECK(contains(refusal([](NodeShape& s) { s.interconnect = "nvswich"; }), "did you mean \"nvswitch\""));
  CHECK(contains(refusal([](NodeShape& s) { s.gpus = 0; }), "gpus = 0"));
  CHECK(contains(refusal([](NodeShape& s) { s.gpus = 100'000; }), "between 1 and"));
  CHECK(contains(refusal([](NodeShape& s) { s.nics = 100'000; }), "nics = 100000"));
  CHECK(contains(refusal([](NodeShape& s) { s.gpu_link = Rate(0); }), "gpu_link"));
  CHECK(contains(refusal([](NodeShape& s) { s.nic_rate = Rate(0); }), "nic_rate"));
  CHECK(contains(refusal([](NodeShape& s) { s.pcie_rate = Rate(0); }), "pcie_rate"));
  CHECK(contains(refusal([](NodeShape& s) { s.cpus = 0; }), "cpus = 0"));
  CHECK(contains(refusal([](NodeShape& s) { s.nic_of_gpu = {1, 2}; }), "nic_of_gpu has 2"));
  CHECK(contains(refusal([](NodeShape& s) { s.nic_of_gpu.assign(8, 9); }), "NIC 9"));
}

TEST_CASE("sockets that are not joined have no way between them") {
  NodeShape shape = with("pcie", 8, 8);
  shape.cpu_link = Rate(0);
  const NodeTemplate node(shape);
  CHECK(node.gpu_to_gpu(0, 3).size() == 4);
  CHECK(contains(message_of<Infeasible>([&] { return node.gpu_to_gpu(0, 4).size(); }), "cpu_link"));
  CHECK(contains(message_of<Infeasible>([&] { return node.gpu_to_nic(0, 7).size(); }), "nearest NIC is 0"));
  CHECK(contains(message_of<Infeasible>([&] { return node.nic_to_gpu(7, 0).size(); }), "nearest NIC is 0"));
}

}  // namespace
}  // namespace clustersim::testing
