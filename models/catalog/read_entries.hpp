// From a resolved, complete entry to the typed specification that the models use.
#pragma once

#include <string>

#include "models/catalog/catalog.hpp"

namespace clustersim {

GpuSpec read_gpu(const std::string& name, const Value& resolved);
NicSpec read_nic(const std::string& name, const Value& resolved);
SwitchSpec read_switch(const std::string& name, const Value& resolved);
/// Fills the shape's rates from the GPU and the NIC that the entry names.
NodeSpec read_node(const std::string& name, const Value& resolved, const Catalog& catalog);

}  // namespace clustersim
