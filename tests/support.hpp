// What several test programs need: a folder of their own, what a file or an error says, one small scenario.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "tests/catch.hpp"

namespace clustersim::testing {

/// One step of Llama 3 8B on 16 GPUs in two nodes: the base that tests vary with --set or by more text behind it.
inline const std::string kSmallScenario = R"(name = "small"
[cluster]
node = "dgx-h100"
nodes = 2
[cluster.network]
topology = "single-switch"
[[jobs]]
workload = "transformer-training"
model = "llama3-8b"
global_batch = 16
sequence_length = 2048
parallel = {tensor = 2, data = 8}
zero_stage = 1
)";

/// A folder of a test's own, gone with all that is in it when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "clustersim-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file, with the folders above it, and returns its path.
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream stream(path_ / name, std::ios::binary);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    REQUIRE(stream.flush().good());
    return file(name);
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// What the Error of an action says; "" when it throws none.
template <class Error, class Action>
std::string message_of(Action&& action) {
  try {
    static_cast<void>(action());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace clustersim::testing
