// parse_toml, read_toml_file, to_toml: places, order, round trip, and one message for each way of being unreadable.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

std::string parse_error(std::string_view text) {
  return message_of<BadInput>([&] { return parse_toml(text, "s.toml"); });
}

std::string file_error(const std::string& path) {
  return message_of<BadInput>([&] { return read_toml_file(path); });
}

}  // namespace

TEST_CASE("TOML values keep their kind and the line they stand on") {
  const Value value = parse_toml(
      "name = \"x\"\n"
      "[cluster]\n"
      "nodes = 4\n"
      "share = 0.5\n"
      "on = true\n"
      "sizes = [1, 2]\n"
      "[[jobs]]\n"
      "parallel = {tensor = 8}\n",
      "s.toml");
  CHECK(std::get<std::string>(value.find("name")->data) == "x");
  const Value* cluster = value.find("cluster");
  REQUIRE(cluster != nullptr);
  CHECK(std::get<std::int64_t>(cluster->find("nodes")->data) == 4);
  CHECK(std::get<double>(cluster->find("share")->data) == 0.5);
  CHECK(std::get<bool>(cluster->find("on")->data));
  CHECK(std::get<Value::Array>(cluster->find("sizes")->data).size() == 2);
  CHECK(cluster->find("nodes")->where.text() == "s.toml:3");
  const Value& job = std::get<Value::Array>(value.find("jobs")->data).at(0);
  CHECK(job.find("parallel")->find("tensor")->where.text() == "s.toml:8");
}

TEST_CASE("TOML tables keep the order of the file") {
  const Value value = parse_toml("zebra = 1\napple = 2\n[middle]\n[aaa]\n", "s.toml");
  std::vector<std::string> keys;
  for (const auto& [key, item] : std::get<Value::Table>(value.data)) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"zebra", "apple", "middle", "aaa"});
}

TEST_CASE("An empty text is an empty table") {
  CHECK(std::get<Value::Table>(parse_toml("", "s.toml").data).empty());
  CHECK(std::get<Value::Table>(parse_toml("# only a comment\n", "s.toml").data).empty());
}

TEST_CASE("TOML mistakes are reported with file, line and column") {
  CHECK(contains(parse_error("a = 1\nb = \n"), "s.toml:2:"));
  CHECK(contains(parse_error("a = 1\na = 2\n"), "s.toml:2:"));
  CHECK(contains(parse_error("[a]\n[a]\n"), "s.toml:2:"));
  CHECK(contains(parse_error("a = \"open\n"), "s.toml:1:"));
  CHECK(contains(parse_error("a = 400 Gb/s\n"), "s.toml:1:"));
  CHECK(contains(parse_error("x = 1\nwhen = 2024-05-01\n"), "s.toml:2: a date or time"));
  CHECK(contains(parse_error("at = 07:32:00\n"), "a date or time"));
}

TEST_CASE("Text that is not UTF-8 is named as such") {
  CHECK(contains(parse_error("a = 1\nb = \"\xC3\x28\"\n"), "s.toml:2:6: byte 0xc3 is not UTF-8"));
  CHECK(contains(parse_error("\xED\xA0\x80"), "not UTF-8"));      // a surrogate
  CHECK(contains(parse_error("\xC0\xAF"), "not UTF-8"));          // an overlong form
  CHECK(contains(parse_error("\xF4\x90\x80\x80"), "not UTF-8"));  // past the last code point
  CHECK(contains(parse_error("a = \"\xE2\x82"), "not UTF-8"));    // cut short
  CHECK(contains(parse_error(std::string_view("a = 1\n\0", 7)), "s.toml:2: a NUL byte"));
  CHECK(contains(parse_error(std::string_view("\xFF\xFE"
                                              "a\0",
                                              4)),
                 "UTF-16"));
  CHECK(parse_error("a = \"µs, 分, €, 𝄞\"\n").empty());
}

TEST_CASE("A key nested without end is refused instead of overflowing the stack") {
  std::string key = "a";
  for (int i = 0; i < 200; ++i) key += ".a";
  CHECK(contains(parse_error(key + " = 1\n"), "nested deeper"));
  for (int i = 0; i < 200000; ++i) key += ".a";
  CHECK(contains(parse_error(key + " = 1\n"), "cannot be nested that deep"));
  CHECK(contains(parse_error("a = " + std::string(100000, '[')), "s.toml:1:"));
}

TEST_CASE("Files that cannot be read each have their own message") {
  const TemporaryFolder folder;
  folder.write("scenario.toml", "a = 1\n");
  CHECK(std::get<std::int64_t>(read_toml_file(folder.file("scenario.toml")).find("a")->data) == 1);
  CHECK(contains(file_error(folder.file("scenari.toml")), "no such file (did you mean \"scenario.toml\"?)"));
  CHECK(contains(file_error(folder.file("none/scenario.toml")), "no such file"));
  CHECK(contains(file_error(folder.file("")), "is a folder"));
  CHECK(contains(file_error(folder.write("binary.toml", std::string_view("\x7F"
                                                                         "ELF\0\0",
                                                                         6))),
                 "not a text file"));
  CHECK(contains(file_error(folder.write("huge.toml", std::string((16 << 20) + 1, '#'))), "larger than 16 MiB"));
  CHECK(file_error(folder.write("empty.toml", "")).empty());
  CHECK(file_error(folder.write("large.toml", std::string(16 << 20, '#'))).empty());
  const std::string locked = folder.write("locked.toml", "a = 1\n");
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  if (geteuid() != 0) CHECK(contains(file_error(locked), "permissions"));  // root may read everything
}

TEST_CASE("Writing TOML and reading it again gives the same tree") {
  const std::string text =
      "name = \"a \\\"quoted\\\" \\\\ name\\nin two lines\"\n"
      "count = -12\n"
      "third = 0.3333333333333333\n"
      "whole = 2.0\n"
      "tiny = 1e-300\n"
      "on = false\n"
      "sizes = [1, 2, 3]\n"
      "points = [{\"a.b\" = 1}, {\"a.b\" = 2}]\n"
      "mixed = [1, \"two\", [3.5]]\n"
      "empty = []\n"
      "[cluster]\n"
      "nodes = 2\n"
      "[cluster.network]\n"
      "topology = \"fat-tree\"\n"
      "[[jobs]]\n"
      "parallel = {tensor = 8, pipeline = 2}\n"
      "[[jobs]]\n"
      "workload = \"second\"\n";
  const std::string once = to_toml(parse_toml(text, "s.toml"));
  const Value again = parse_toml(once, "again.toml");
  CHECK(to_toml(again) == once);
  CHECK(std::get<std::string>(again.find("name")->data) == "a \"quoted\" \\ name\nin two lines");
  CHECK(std::get<double>(again.find("third")->data) == 1.0 / 3.0);
  CHECK(std::get<double>(again.find("whole")->data) == 2.0);
  CHECK(std::get<double>(again.find("tiny")->data) == 1e-300);
  CHECK(std::get<Value::Array>(again.find("jobs")->data).size() == 2);
  CHECK(std::get<Value::Array>(again.find("points")->data).at(1).find("a.b") != nullptr);
  CHECK(std::get<std::string>(again.find("cluster")->find("network")->find("topology")->data) == "fat-tree");
}
