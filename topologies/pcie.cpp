// GPUs without scale-up links: traffic between them crosses the PCIe tree that every node has.
#include "topologies/node.hpp"

namespace clustersim {
namespace {

void add(NodeTemplate&, std::span<const std::uint32_t>, const NodeShape&) {}

}  // namespace

extern constinit const NodeInterconnect kPcie{
    "pcie", "no scale-up links: GPUs reach each other through PCIe switches and CPUs", add};

}  // namespace clustersim
