// What may be written in a scenario file, section by section.
#pragma once

#include <span>

#include "sim/settings.hpp"

namespace clustersim {

std::span<const Parameter> scenario_schema();       // the top level
std::span<const Parameter> catalog_schema();        // [catalog]
std::span<const Parameter> cluster_schema();        // [cluster]
std::span<const Parameter> network_schema();        // [cluster.network], next to the topology's own keys
std::span<const Parameter> communication_schema();  // [communication]
std::span<const Parameter> job_schema();            // [[jobs]], next to the workload's own keys
std::span<const Parameter> nccl_test_schema();      // [nccl_test]
std::span<const Parameter> study_schema();          // [study]

}  // namespace clustersim
