// Pipeline schedules: the order in which a stage runs forward and backward passes of micro-batches.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/units.hpp"

namespace clustersim {

enum class PipelineSchedule : std::uint8_t { gpipe, one_forward_one_backward, interleaved };
std::string_view name(PipelineSchedule schedule);                 // "gpipe", "1f1b", "interleaved-1f1b"
PipelineSchedule parse_pipeline_schedule(std::string_view text);  // throws BadInput with the nearest name

/// One pass of one micro-batch through one model chunk of a stage.
struct StageCall {
  bool backward = false;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;
  bool operator==(const StageCall&) const = default;
};

/// A pipeline of `stages` devices, each holding `chunks` model chunks (virtual stages): chunk c of stage s is position
/// c x stages + s of the model.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::uint32_t stages = 1;
  std::uint32_t micro_batches = 1;
  std::uint32_t chunks = 1;
};

/// What a stage does, in order. The order on every link agrees at both ends, so the pipeline cannot deadlock.
std::vector<StageCall> stage_calls(const PipelineShape& shape, std::uint32_t stage);

/// The most activations a stage holds at once, in units of `weight_of_chunk` (layers or bytes per micro-batch).
double peak_in_flight(const std::vector<StageCall>& calls, const std::vector<double>& weight_of_chunk);

/// One controller process launches every call of every stage (JAX's single-controller model), in the order of the
/// calls' earliest starts, lower stages first. Per stage and call: launches done once that call's own is, when a call
/// whose output goes to another stage costs `launches_per_transfer` more after its own.
std::vector<std::vector<std::uint32_t>> controller_launches(const PipelineShape& shape,
                                                            std::uint32_t launches_per_transfer);

}  // namespace clustersim
