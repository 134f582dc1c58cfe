// How a failure names its place, and how a slip of the keyboard finds the name that was meant.
#include "sim/errors.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace clustersim {
namespace {

/// Case and the choice between '-' and '_' are never what distinguishes two valid names.
std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours cost 1 each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({substituted, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string SourceLocation::text() const {
  if (file.empty() || line == 0) return file;
  return fmt::format("{}:{}", file, line);
}

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  // Inputs far longer than any name are not slips of one, and the distance is quadratic.
  constexpr std::size_t kLongestWord = 100;
  if (word.empty() || word.size() > kLongestWord) return "";
  const std::string wanted = folded(word);

  const std::string* nearest = nullptr;
  std::size_t nearest_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    // A distance of the whole length shares nothing with the word.
    if (distance >= std::max(wanted.size(), candidate.size())) continue;
    // "nodez" is as far from "node" as from "nodes": a wrong letter is likelier than one too many.
    const bool same_length = candidate.size() == wanted.size();
    if (distance < nearest_distance || (nearest != nullptr && distance == nearest_distance && same_length)) {
      nearest = &candidate;
      nearest_distance = distance;
    }
  }
  if (nearest != nullptr) return *nearest;

  // "h100" for "h100-sxm", or "nodes_total" for "nodes".
  constexpr std::size_t kShortestPrefix = 3;
  for (const std::string& candidate : candidates) {
    const std::string name = folded(candidate);
    const bool prefix = (wanted.size() >= kShortestPrefix && name.starts_with(wanted)) ||
                        (name.size() >= kShortestPrefix && wanted.starts_with(name));
    if (prefix && (nearest == nullptr || candidate.size() < nearest->size())) nearest = &candidate;
  }
  return nearest == nullptr ? "" : *nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string name = nearest_name(word, candidates);
  return name.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", name);
}

}  // namespace clustersim
