// Size ranges, rows and the printed table of the simulated nccl-tests.
#include "models/collectives/nccl_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "sim/errors.hpp"
#include "sim/text.hpp"

namespace clustersim {
namespace {

constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> kTypes{{{"int8", 1},
                                                                            {"uint8", 1},
                                                                            {"int32", 4},
                                                                            {"uint32", 4},
                                                                            {"int64", 8},
                                                                            {"uint64", 8},
                                                                            {"half", 2},
                                                                            {"float", 4},
                                                                            {"double", 8},
                                                                            {"bfloat16", 2},
                                                                            {"fp8_e4m3", 1},
                                                                            {"fp8_e5m2", 1}}};

std::int64_t type_size(const std::string& type) {
  std::vector<std::string> names;
  for (const auto& [name, size] : kTypes) {
    if (name == type) return size;
    names.emplace_back(name);
  }
  bad_input("element type \"{}\" is not known: expected one of {}{}", type, fmt::join(names, ", "),
            did_you_mean(type, names));
}

class SizeReader {
 public:
  SizeReader(std::string_view whole, const SourceLocation& where) : whole_(whole), where_(where.text()) {}

  [[noreturn]] void reject(std::string_view part, std::string_view fault) const {
    bad_input(
        "{}{}size range \"{}\": \"{}\" {}; expected for example \"8..8G\", \"8..8G*4\", \"1M..4M+1M\" or \"1M,32M\"",
        where_, where_.empty() ? "" : ": ", whole_, part, fault);
  }

  [[nodiscard]] std::int64_t integer(std::string_view text) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) {
      reject(text, "is not a count");
    }
    return value;
  }

  [[nodiscard]] std::int64_t size(std::string_view text) const {
    const std::string_view written = text;
    for (const std::string_view suffix : {"iB", "B"}) {
      if (text.size() > suffix.size() && text.ends_with(suffix)) {
        text.remove_suffix(suffix.size());
        break;
      }
    }
    while (text.size() > 1 && text[text.size() - 1] == ' ') text.remove_suffix(1);
    unsigned shift = 0;
    if (!text.empty()) {
      constexpr std::string_view kPrefixes = "KMGT";
      const std::size_t place = kPrefixes.find(text.back() == 'k' ? 'K' : text.back());
      if (place != std::string_view::npos) {
        shift = 10 * (static_cast<unsigned>(place) + 1);
        text.remove_suffix(1);
      }
    }
    while (text.size() > 1 && text[text.size() - 1] == ' ') text.remove_suffix(1);
    const std::int64_t value = integer(text);
    if (value > std::numeric_limits<std::int64_t>::max() >> shift) reject(written, "is too large");
    return value << shift;
  }

 private:
  std::string_view whole_;
  std::string where_;
};

std::vector<Bytes> stepped_range(const SizeReader& reader, std::string_view from, std::string_view rest) {
  const std::size_t sign = rest.find_first_of("*+");
  const std::string_view last = trimmed(rest.substr(0, sign));
  const std::int64_t begin = reader.size(trimmed(from));
  const std::int64_t end = reader.size(last);
  if (end < begin) reader.reject(last, "is below the start");
  const bool adds = sign != std::string_view::npos && rest[sign] == '+';
  std::int64_t step = 2;
  if (sign != std::string_view::npos) {
    const std::string_view written = trimmed(rest.substr(sign + 1));
    step = adds ? reader.size(written) : reader.integer(written);
    if (step < (adds ? 1 : 2)) reader.reject(written, adds ? "adds nothing" : "is no factor above 1");
  }
  if (begin == 0 && !adds) reader.reject(from, "never grows when multiplied");
  constexpr std::int64_t kMostRows = 100'000;
  if (adds && (end - begin) / step >= kMostRows) reader.reject(rest, "gives more than 100,000 sizes");
  std::vector<Bytes> sizes;
  for (std::int64_t size = begin; size <= end;) {
    sizes.emplace_back(size);
    if (adds ? size > end - step : size > end / step) break;
    size = adds ? size + step : size * step;
  }
  return sizes;
}

std::int64_t element_count(Collective operation, Bytes size, std::int64_t element, std::int64_t ranks) {
  const std::int64_t elements = size.value() / element;
  const bool per_rank = operation == Collective::all_gather || operation == Collective::reduce_scatter ||
                        operation == Collective::all_to_all;
  return per_rank ? elements / ranks : elements;
}

bool reduces(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce_scatter ||
         operation == Collective::reduce;
}

// Microseconds as nccl-tests prints them: fewer digits as the number grows.
std::string microseconds(Picoseconds time) {
  const double value = to_seconds(time) * 1e6;
  if (value >= 10000) return fmt::format("{:8.0f}", value);
  if (value >= 100) return fmt::format("{:8.1f}", value);
  return fmt::format("{:8.2f}", value);
}

}  // namespace

std::vector<Bytes> parse_size_range(std::string_view text, const SourceLocation& where) {
  const SizeReader reader(text, where);
  std::vector<Bytes> sizes;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view item = trimmed(rest.substr(0, comma));
    if (more) rest = rest.substr(comma + 1);
    const std::size_t dots = item.find("..");
    if (dots == std::string_view::npos) {
      sizes.emplace_back(reader.size(item));
    } else {
      const std::vector<Bytes> range = stepped_range(reader, item.substr(0, dots), item.substr(dots + 2));
      sizes.insert(sizes.end(), range.begin(), range.end());
    }
  }
  return sizes;
}

NcclTestForm parse_nccl_test_form(std::string_view text) {
  const std::vector<std::string> names{"pipelined", "stepped", "simulated"};
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<NcclTestForm>(found - names.begin());
  bad_input("form \"{}\" is not known: expected one of {}{}", text, fmt::join(names, ", "), did_you_mean(text, names));
}

std::vector<NcclTestRow> run_nccl_test(const Group& group, const CommunicationModel& model,
                                       const NcclTestOptions& options) {
  if (group.size() < 2) infeasible("a collective test needs at least two GPUs, the group has {}", group.size());
  const std::int64_t element = type_size(options.type);
  std::vector<NcclTestRow> rows;
  for (const Bytes size : options.sizes) {
    NcclTestRow row;
    row.size = size;
    row.count = element_count(options.operation, size, element, group.size());
    row.type = options.type;
    row.reduction = reduces(options.operation) ? options.reduction : "none";
    row.root = options.operation == Collective::broadcast || options.operation == Collective::reduce ? 0 : -1;
    AlgorithmChoice choice = choose_algorithm(group, model, options.operation, size);
    row.algorithm = choice.algorithm->name;
    row.reason = std::move(choice.reason);
    if (options.form == NcclTestForm::simulated) {
      CommunicationModel chosen = model;
      chosen.algorithm = row.algorithm;
      row.time = run_step_by_step(group, chosen, options.operation, size, StepSynchronization::dependency).time;
    } else {
      const Schedule schedule = choice.algorithm->schedule(options.operation, group, model);
      const bool pipelined = schedule.pipelined && options.form == NcclTestForm::pipelined;
      const CollectivePlan plan = plan_schedule(group, model, schedule, size, pipelined);
      row.time = uncontended_time(plan, group.cluster.network(), model);
    }
    const double seconds = to_seconds(row.time);
    if (seconds > 0) row.algorithm_bandwidth = Rate(static_cast<double>(size.value()) / seconds);
    row.bus_bandwidth = row.algorithm_bandwidth * bus_bandwidth_factor(options.operation, group.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string nccl_test_table(const std::vector<NcclTestRow>& rows) {
  std::string text;
  text += fmt::format("# {:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {}\n", "size", "count", "type",
                      "redop", "root", "time", "algbw", "busbw", "algorithm");
  text += fmt::format("# {:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}\n", "(B)", "(elements)", "", "", "",
                      "(us)", "(GB/s)", "(GB/s)");
  double sum = 0;
  for (const NcclTestRow& row : rows) {
    text += fmt::format("{:>13}  {:>12}  {:>8}  {:>6}  {:>6} {}  {:>6.2f}  {:>6.2f}  {}\n", row.size.value(), row.count,
                        row.type, row.reduction, row.root, microseconds(row.time),
                        row.algorithm_bandwidth.value() / 1e9, row.bus_bandwidth.value() / 1e9, row.algorithm);
    sum += row.bus_bandwidth.value() / 1e9;
  }
  if (!rows.empty()) text += fmt::format("# Avg bus bandwidth    : {:g}\n", sum / static_cast<double>(rows.size()));
  return text;
}

}  // namespace clustersim
