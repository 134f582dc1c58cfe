// The result as one self-describing file: HDF5 that is also valid netCDF-4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/result.hpp"

namespace clustersim {

/// Of the layout below; grows when a name or a meaning changes.
inline constexpr std::int64_t kResultSchemaVersion = 1;

/// The complete file. The same result gives the same bytes: no wall time, no dates.
///
/// Root attributes: schema_version, program, version, scenario, description, scenario_hash, scenario_toml, seed,
/// cluster, assumptions. Every variable has `units` and `description`. Dimensions are coordinate variables. A step:
/// scalars (step_time, total_time, mfu, ...), ledger(cause, rank_class), rank_class_*(rank_class),
/// resource_*(resource), communication_*(communication), memory(memory_item), flop(flop_term), and where it was
/// recorded timeline_*(interval). A table of collectives: time, algorithm_bandwidth, ... (size). A study: the scalars
/// by point, and a group point_N with everything of each point. Lists that are empty are absent.
std::vector<std::byte> hdf5_image(const Result& result);

}  // namespace clustersim
