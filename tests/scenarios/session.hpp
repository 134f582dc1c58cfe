// The program as a user runs it: in a folder of its own, with what it prints and its exit code.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support.hpp"

namespace clustersim::testing {

struct Outcome {
  int code = -1;
  std::string output;
  std::string error;
};

/// Text as one word of a shell's line.
inline std::string quote(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// A folder to work in, empty at first and removed at the end. Standard input is empty, and what is printed is kept
/// outside the folder.
class Session {
 public:
  Session() { std::filesystem::create_directory(folder()); }
  [[nodiscard]] std::filesystem::path folder() const { return folder_.file("here"); }
  void write(const std::string& name, std::string_view text) const { folder_.write("here/" + name, text); }
  /// Paths of all that is in the folder, sorted.
  [[nodiscard]] std::vector<std::string> listing() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
      paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  [[nodiscard]] Outcome shell(const std::string& line) const {
    const std::string command = "cd " + quote(folder_.file("here")) + " && { " + line + "\n} </dev/null >" +
                                quote(folder_.file("output")) + " 2>" + quote(folder_.file("error"));
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_.file("output")),
            read_file(folder_.file("error"))};
  }
  /// Runs the program with arguments as a shell would read them.
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return shell(quote(CLUSTERSIM_PROGRAM) + " " + arguments);
  }
  /// Runs the program with exactly these arguments.
  [[nodiscard]] Outcome run_exactly(const std::vector<std::string>& arguments) const {
    std::string words;
    for (const std::string& argument : arguments) words += " " + quote(argument);
    return run(words);
  }
  /// What a run prints that has to succeed.
  [[nodiscard]] std::string good(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    INFO(arguments << "\n" << outcome.error);
    REQUIRE(outcome.code == 0);
    return outcome.output;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace clustersim::testing
