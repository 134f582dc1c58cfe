// Merging what a scenario extends, and settings by key path.
#include "scenarios/tree.hpp"

#include <string>
#include <variant>

#include "models/catalog/catalog.hpp"
#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Value toml(const std::string& text) { return parse_toml(text, "t.toml"); }

std::string merged(const std::string& parent, const std::string& child) {
  return to_toml(merge_trees(toml(parent), toml(child)));
}

std::string with_set(const std::string& text, const std::string& assignment) {
  Value tree = toml(text);
  apply_set(tree, assignment);
  return to_toml(tree);
}

std::string refusal(const std::string& text, const std::string& assignment) {
  return message_of<BadInput>([&] { return with_set(text, assignment); });
}

}  // namespace

TEST_CASE("tables merge key by key; values and arrays of the child replace") {
  CHECK(merged("a = 1\n[t]\nx = 1\ny = 2\n", "a = 3\n[t]\ny = 4\nz = 5\n") ==
        to_toml(toml("a = 3\n[t]\nx = 1\ny = 4\nz = 5\n")));
  CHECK(merged("a = [1, 2, 3]", "a = [9]") == to_toml(toml("a = [9]")));
  CHECK(merged("[t.u]\nx = 1\n", "[t.u]\ny = 2\n") == to_toml(toml("[t.u]\nx = 1\ny = 2\n")));
  CHECK(merged("a = 1", "[a]\nb = 2\n") == to_toml(toml("[a]\nb = 2\n")));
  CHECK(merged("[a]\nb = 2\n", "a = 1") == to_toml(toml("a = 1")));
}

TEST_CASE("another topology or workload starts afresh; the same one merges") {
  const std::string parent = "[network]\ntopology = \"fat-tree\"\nlevels = 3\n";
  CHECK(merged(parent, "[network]\ntopology = \"torus\"\ndims = [2]\n") ==
        to_toml(toml("[network]\ntopology = \"torus\"\ndims = [2]\n")));
  CHECK(merged(parent, "[network]\ntopology = \"fat-tree\"\nradix = 4\n") ==
        to_toml(toml("[network]\ntopology = \"fat-tree\"\nlevels = 3\nradix = 4\n")));
  CHECK(merged(parent, "[network]\nradix = 4\n") ==
        to_toml(toml("[network]\ntopology = \"fat-tree\"\nlevels = 3\nradix = 4\n")));
}

TEST_CASE("of two exclusive keys the child's choice stays") {
  CHECK(merged("node = \"a\"\nnodes = 4\n", "groups = [{node = \"b\"}]") == to_toml(toml("groups = [{node = \"b\"}]")));
  CHECK(merged("groups = [{node = \"b\"}]", "node = \"a\"") == to_toml(toml("node = \"a\"")));
  CHECK(merged("[[jobs]]\na = 1\n", "[nccl_test]\nop = \"broadcast\"\n") ==
        to_toml(toml("[nccl_test]\nop = \"broadcast\"\n")));
  CHECK(merged("[nccl_test]\nop = \"broadcast\"\n", "[[jobs]]\na = 1\n") == to_toml(toml("[[jobs]]\na = 1\n")));
}

TEST_CASE("a merged value keeps the place where it was written") {
  const Value result = merge_trees(parse_toml("\n\na = 1\n", "parent.toml"), parse_toml("b = 2", "child.toml"));
  CHECK(result.find("a")->where.text() == "parent.toml:3");
  CHECK(result.find("b")->where.text() == "child.toml:1");
}

TEST_CASE("--set writes TOML values, and plain text where it is no TOML") {
  CHECK(with_set("a = 1", "a=2") == to_toml(toml("a = 2")));
  CHECK(with_set("a = 1", "a = 2.5") == to_toml(toml("a = 2.5")));
  CHECK(with_set("a = 1", "a=true") == to_toml(toml("a = true")));
  CHECK(with_set("a = 1", "a=400 Gb/s") == to_toml(toml("a = \"400 Gb/s\"")));
  CHECK(with_set("a = 1", "a=\"2\"") == to_toml(toml("a = \"2\"")));
  CHECK(with_set("a = 1", "a=[1, 2]") == to_toml(toml("a = [1, 2]")));
  CHECK(with_set("a = 1", "a=x=y") == to_toml(toml("a = \"x=y\"")));
  CHECK(with_set("[a]\nb = 1\nc = 2\n", "a={d = 3}") == to_toml(toml("[a]\nd = 3\n")));
}

TEST_CASE("--set follows tables and array elements, and makes tables that are missing") {
  CHECK(with_set("[[a]]\nb = {c = 1}\n[[a]]\nb = {c = 2}\n", "a[1].b.c=7") ==
        to_toml(toml("[[a]]\nb = {c = 1}\n[[a]]\nb = {c = 7}\n")));
  CHECK(with_set("a = [[1, 2], [3, 4]]", "a[1][0]=9") == to_toml(toml("a = [[1, 2], [9, 4]]")));
  CHECK(with_set("x = 1", "a.b-c.d_e=1") == to_toml(toml("x = 1\n[a.b-c]\nd_e = 1\n")));
}

TEST_CASE("--set says what is wrong with a path or a value") {
  CHECK(contains(refusal("a = 1", "a"), "key.path=value"));
  CHECK(contains(refusal("a = 1", "a.b=1"), "a is 1, not a table"));
  CHECK(contains(refusal("a = 1", "a[0]=1"), "a is 1, not an array"));
  CHECK(contains(refusal("a = [1]", "a[1]=1"), "a[1] does not exist: there is 1 element"));
  CHECK(contains(refusal("a = 1", "a[-1]=1"), "number"));
  CHECK(contains(refusal("a = 1", "a b=1"), "unexpected ' '"));
  CHECK(contains(refusal("a = 1", "a=1\nb = 2"), "one line"));
  CHECK(contains(refusal("a = 1", "a=[1"), "not valid TOML"));
  CHECK(contains(refusal("a = 1", "study.points=1"), "scenario file"));
  const std::string deep = "a" + [] {
    std::string path;
    for (int i = 0; i < 10'000; ++i) path += ".a";
    return path;
  }();
  CHECK(contains(refusal("a = {}", deep + "=1"), "deep"));
}

TEST_CASE("a value set keeps --set as its place") {
  Value tree = toml("a = 1");
  apply_set(tree, "b.c=2");
  CHECK(tree.find("b")->find("c")->where.text() == "--set");
}
