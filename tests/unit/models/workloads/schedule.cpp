// Pipeline schedules: every pass once, in an order that works; names; launches of a single controller.
#include <set>
#include <tuple>

#include "models/workloads/schedule.hpp"
#include "sim/errors.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

PipelineShape shape_of(PipelineSchedule schedule, std::uint32_t stages, std::uint32_t micro_batches,
                       std::uint32_t chunks) {
  return {schedule, stages, micro_batches, chunks};
}

}  // namespace

TEST_CASE("Every stage runs each micro-batch once forward and once backward per chunk, forward first") {
  const auto shape =
      GENERATE(shape_of(PipelineSchedule::gpipe, 4, 6, 1), shape_of(PipelineSchedule::gpipe, 3, 5, 2),
               shape_of(PipelineSchedule::one_forward_one_backward, 4, 6, 1),
               shape_of(PipelineSchedule::one_forward_one_backward, 8, 3, 1),
               shape_of(PipelineSchedule::interleaved, 4, 8, 2), shape_of(PipelineSchedule::interleaved, 4, 4, 3));
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    std::set<std::tuple<bool, std::uint32_t, std::uint32_t>> seen;
    for (const StageCall& call : stage_calls(shape, stage)) {
      CHECK(seen.emplace(call.backward, call.micro_batch, call.chunk).second);
      if (call.backward) CHECK(seen.count({false, call.micro_batch, call.chunk}) == 1);
      CHECK(call.micro_batch < shape.micro_batches);
      CHECK(call.chunk < shape.chunks);
    }
    CHECK(seen.size() == std::size_t{2} * shape.micro_batches * shape.chunks);
  }
}

TEST_CASE("1F1B on 4 stages: the last alternates, the first runs three ahead") {
  const PipelineShape shape = shape_of(PipelineSchedule::one_forward_one_backward, 4, 5, 1);
  CHECK(stage_calls(shape, 3)[0] == StageCall{false, 0, 0});
  CHECK(stage_calls(shape, 3)[1] == StageCall{true, 0, 0});
  const std::vector<StageCall> first = stage_calls(shape, 0);
  CHECK(first[3] == StageCall{false, 3, 0});
  CHECK(first[4] == StageCall{true, 0, 0});
  CHECK(first[5] == StageCall{false, 4, 0});
}

TEST_CASE("Interleaved: chunk 0 of as many micro-batches as stages, then chunk 1 of the same; backward from the last") {
  const std::vector<StageCall> calls = stage_calls(shape_of(PipelineSchedule::interleaved, 2, 4, 2), 0);
  CHECK(calls[0] == StageCall{false, 0, 0});
  CHECK(calls[1] == StageCall{false, 1, 0});
  CHECK(calls[2] == StageCall{false, 0, 1});
  CHECK(calls[3] == StageCall{false, 1, 1});
  CHECK(calls.back() == StageCall{true, 3, 0});
}

TEST_CASE("Schedule names round-trip, and a slip is answered with the nearest") {
  for (const auto schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward, PipelineSchedule::interleaved}) {
    CHECK(parse_pipeline_schedule(name(schedule)) == schedule);
  }
  try {
    (void)parse_pipeline_schedule("1f1");
    FAIL("accepted");
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()).find("did you mean \"1f1b\"") != std::string::npos);
  }
}

TEST_CASE("A controller launches each call once and each transfer per receiving GPU") {
  // 2 stages, 1 micro-batch: forward 0 (launch 1, transfers 2 and 3), forward 1 (4), backward 1 (5; 6 and 7), backward
  // 0.
  const auto launches = controller_launches(shape_of(PipelineSchedule::gpipe, 2, 1, 1), 2);
  CHECK(launches[0] == std::vector<std::uint32_t>{1, 8});
  CHECK(launches[1] == std::vector<std::uint32_t>{4, 5});
}
