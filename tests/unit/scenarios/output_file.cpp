// Output files are complete or absent, and checked before any work.
#include "scenarios/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

namespace fs = std::filesystem;

std::string refusal(const std::string& path) {
  return message_of<BadInput>([&] { return OutputFile(path, "--output"); });
}

}  // namespace

TEST_CASE("checking leaves nothing behind, writing leaves exactly the file") {
  const TemporaryFolder folder;
  const OutputFile file(folder.file("out.bin"), "--output");
  CHECK(folder.entries() == 0);
  file.write("first");
  CHECK(read_file(folder.file("out.bin")) == "first");
  file.write("second");
  CHECK(read_file(folder.file("out.bin")) == "second");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a new file has the permissions of any other new file") {
  const TemporaryFolder folder;
  OutputFile(folder.file("out.bin"), "--output").write("x");
  std::ofstream(folder.file("ordinary")) << "x";
  struct stat ours{};
  struct stat ordinary{};
  REQUIRE(stat(folder.file("out.bin").c_str(), &ours) == 0);
  REQUIRE(stat(folder.file("ordinary").c_str(), &ordinary) == 0);
  CHECK(ours.st_mode == ordinary.st_mode);
}

TEST_CASE("a link is written through") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("target")) << "old";
  fs::create_symlink(folder.file("target"), folder.file("link"));
  OutputFile(folder.file("link"), "--output").write("new");
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(read_file(folder.file("target")) == "new");
}

TEST_CASE("what cannot be written is refused with the reason") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("results"));
  CHECK(contains(refusal(folder.file("results")), "is a folder"));
  CHECK(contains(refusal(folder.file("other/")), "is a folder"));
  CHECK(contains(refusal(folder.file("reslts/out.h5")), "did you mean \"results\"?"));
  CHECK(contains(refusal("/dev/null"), "not an ordinary file"));
  CHECK(contains(refusal(""), "empty"));
  CHECK(refusal(folder.file("results/out.h5")).empty());
}

TEST_CASE("a folder that disappears meanwhile is an error, not a crash") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("results"));
  const OutputFile file(folder.file("results/out.h5"), "--output");
  fs::remove(folder.file("results"));
  CHECK_THROWS_AS(file.write("x"), BadInput);
}
