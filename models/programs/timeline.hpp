// A step's timeline in the trace event format that Perfetto and chrome://tracing read.
#pragma once

#include <iosfwd>

#include "models/programs/execute.hpp"
#include "models/programs/program.hpp"

namespace clustersim {

/// Writes the recorded intervals as JSON: one process per rank class (the representative rank, named with its GPU and
/// with how many ranks do the same), one thread per stream, times in microseconds.
/// The result must come from an execution with ExecutionOptions::record_timeline.
void write_chrome_trace(std::ostream& out, const StepResult& result, const Job& job, const Cluster& cluster);

}  // namespace clustersim
