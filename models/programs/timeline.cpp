// Writes trace events (Google, "Trace Event Format", complete events "X" and metadata events "M").
#include "models/programs/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

/// Picoseconds as microseconds in decimal, without passing through floating point.
std::string microseconds(Picoseconds time) {
  constexpr std::int64_t kPerMicrosecond = 1'000'000;
  return fmt::format("{}.{:06}", time.count() / kPerMicrosecond, time.count() % kPerMicrosecond);
}

std::string process_name(const RankClass& rank_class, const Job& job, const Cluster& cluster) {
  const GpuId gpu = job.gpu_of[rank_class.representative];
  std::string text =
      fmt::format("rank {} (node{}/gpu{})", rank_class.representative, cluster.node_of(gpu), cluster.local_index(gpu));
  if (rank_class.count > 1) text += fmt::format(", {} ranks alike", rank_class.count);
  return text;
}

}  // namespace

void write_chrome_trace(std::ostream& out, const StepResult& result, const Job& job, const Cluster& cluster) {
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  std::vector<std::pair<std::uint32_t, std::uint8_t>> threads;
  for (const TimelineInterval& interval : result.timeline) {
    ensure(interval.rank_class < result.rank_classes.size() && interval.label < job.labels.size(),
           "a timeline of another job");
    threads.emplace_back(interval.rank_class, interval.stream);
  }
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const auto [rank_class, stream] = threads[i];
    if (i == 0 || threads[i - 1].first != rank_class) {
      out << separator
          << fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}", rank_class,
                         json_text(process_name(result.rank_classes[rank_class], job, cluster)));
      separator = ",\n";
    }
    out << separator
        << fmt::format("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}",
                       rank_class, stream, stream == 0 ? "compute" : fmt::format("stream {}", stream));
  }
  for (const TimelineInterval& interval : result.timeline) {
    out << separator
        << fmt::format("{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}}}",
                       json_text(job.labels[interval.label]), name(interval.cause), interval.rank_class,
                       interval.stream, microseconds(interval.start), microseconds(interval.end - interval.start));
    separator = ",\n";
  }
  out << "\n]}\n";
}

}  // namespace clustersim
