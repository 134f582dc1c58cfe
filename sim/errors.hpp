// Three families of failure: the user's input is wrong, the ask is impossible, or this program broke its own contract.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace clustersim {

/// Where a value was written. `file` is empty for values that come from code or the command line.
struct SourceLocation {
  std::string file;
  std::uint32_t line = 0;
  [[nodiscard]] std::string text() const;  // "scenario.toml:12", "--set", or ""
};

/// The user's input is wrong; exit code 2. The message names place, key, value, what was expected, nearest valid name.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The ask is well formed but impossible; exit code 3. The message gives the reason and the nearest thing that works.
class Infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program caught itself in an impossible state (a bug). Contracts stay on in release builds.
class BrokenContract : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class... Arguments>
[[noreturn]] void bad_input(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw BadInput(fmt::format(text, std::forward<Arguments>(arguments)...));
}

template <class... Arguments>
[[noreturn]] void infeasible(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw Infeasible(fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Throws BrokenContract with the text unless `holds`.
template <class... Arguments>
void ensure(bool holds, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  if (!holds) [[unlikely]] {
    throw BrokenContract(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
}

/// The candidate closest to `word` in edit distance, or "" when none is close enough to be a likely slip.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// " (did you mean \"x\"?)" or "", ready to append to a message.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace clustersim
