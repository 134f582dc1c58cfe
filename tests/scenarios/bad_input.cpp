// Everything a user can get wrong: each case through the program itself, with its exit code, its message, and no trace
// left behind: the result file of an earlier run stays as it was and there is no temporary file.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/scenarios/session.hpp"

namespace {

namespace fs = std::filesystem;
using namespace clustersim::testing;

constexpr std::string_view kBase = R"(name = "base"

[cluster]
node = "dgx-h100"
nodes = 2

[cluster.network]
topology = "fat-tree"
link_rate = "400 Gb/s"

[communication]
window = "4 MiB"

[[jobs]]
workload = "transformer-training"
model = "llama3-8b"
sequence_length = 4096
global_batch = 16
micro_batch = 1
precision = "bf16"
parallel = {tensor = 2, data = 8}
zero_stage = 1
)";

constexpr std::string_view kPrecious = "the result of an earlier run";

std::string edited(std::string_view from, std::string_view to) {
  std::string text(kBase);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// Runs the arguments in a folder that holds what `prepare` put there, and checks code, message and traces.
template <class Prepare>
void expect_refusal(const Prepare& prepare, const std::vector<std::string>& arguments, int code,
                    const std::vector<std::string>& fragments) {
  const Session session;
  prepare(session);
  session.write("out.h5", kPrecious);
  const std::vector<std::string> before = session.listing();
  const Outcome outcome = session.run_exactly(arguments);
  INFO("message: " << outcome.error);
  CHECK(outcome.code == code);
  CHECK(outcome.output.empty());
  CHECK(outcome.error.find("internal error") == std::string::npos);
  for (const std::string& fragment : fragments) {
    INFO("expected in the message: " << fragment);
    CHECK(outcome.error.find(fragment) != std::string::npos);
  }
  CHECK(session.listing() == before);
  CHECK(read_file(session.folder() / "out.h5") == kPrecious);
}

struct Edit {
  const char* title;
  std::string_view from;
  std::string_view to;
  int code;
  std::vector<std::string> fragments;
};

void run_edits(const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    INFO(edit.title);
    const std::string text = edited(edit.from, edit.to);
    expect_refusal([&](const Session& session) { session.write("s.toml", text); }, {"run", "s.toml", "-o", "out.h5"},
                   edit.code, edit.fragments);
  }
}

struct Setting {
  const char* title;
  std::vector<std::string> set;
  int code;
  std::vector<std::string> fragments;
};

}  // namespace

TEST_CASE("the scenario that every other case damages is itself fine") {
  const Session session;
  session.write("s.toml", kBase);
  const Outcome checked = session.run_exactly({"check", "s.toml"});
  INFO(checked.error);
  REQUIRE(checked.code == 0);
  CHECK(checked.output.find("ok: base: 16 GPUs") == 0);
  const Outcome ran = session.run_exactly({"run", "s.toml", "-o", "out.h5", "--json"});
  INFO(ran.error);
  REQUIRE(ran.code == 0);
  CHECK(ran.output.find("\"step_time_s\"") != std::string::npos);
  CHECK(session.listing().size() == 2);  // s.toml and out.h5
}

TEST_CASE("unknown keys, at every level, with the nearest name") {
  run_edits({
      {"top level", "name = \"base\"", "name = \"base\"\nsede = 2", 2, {"s.toml:2", "sede", "did you mean \"seed\"?"}},
      {"cluster", "nodes = 2", "nodez = 2", 2, {"s.toml:5", "cluster.nodez", "did you mean \"nodes\"?"}},
      {"network, common key", "link_rate", "link_rat", 2, {"s.toml:9", "cluster.network.link_rat", "\"link_rate\""}},
      {"network, topology's key", "link_rate = \"400 Gb/s\"", "teirs = []", 2, {"cluster.network.teirs", "\"tiers\""}},
      {"network, selector", "topology =", "topolgy =", 2, {"cluster.network.topolgy", "did you mean \"topology\"?"}},
      {"communication", "window", "windw", 2, {"s.toml:12", "communication.windw", "\"window\""}},
      {"job", "global_batch", "globl_batch", 2, {"s.toml:18", "jobs[0].globl_batch", "\"global_batch\""}},
      {"job, selector", "workload =", "workloda =", 2, {"jobs[0].workloda", "did you mean \"workload\"?"}},
      {"job, nested table", "tensor = 2", "tensr = 2", 2, {"jobs[0].parallel.tensr", "did you mean \"tensor\"?"}},
      {"degraded",
       "[cluster.network]",
       "[[cluster.degraded]]\ngpuu = 1\n[cluster.network]",
       2,
       {"cluster.degraded[0].gpuu", "\"gpu\""}},
      {"study", "[communication]", "[study]\npoint = []\n[communication]", 2, {"study.point", "\"points\""}},
      {"catalog",
       "[communication]",
       "[catalog]\nfile = [\"x.toml\"]\n[communication]",
       2,
       {"catalog.file", "\"files\""}},
  });
}

TEST_CASE("units: missing, of another kind, bits for bytes") {
  run_edits({
      {"no unit", "\"400 Gb/s\"", "\"400\"", 2, {"s.toml:9", "link_rate", "unit"}},
      {"a bare number", "\"400 Gb/s\"", "400", 2, {"s.toml:9", "link_rate = 400", "in quotes with its unit"}},
      {"bytes for a rate", "\"400 Gb/s\"", "\"400 GB\"", 2, {"s.toml:9", "link_rate = \"400 GB\"", "400 GB/s"}},
      {"bits for bytes", "\"4 MiB\"", "\"4 Mib\"", 2, {"s.toml:12", "window = \"4 Mib\"", "bits"}},
      {"a time for data", "\"4 MiB\"", "\"4 ms\"", 2, {"s.toml:12", "window = \"4 ms\""}},
      {"unknown unit", "\"400 Gb/s\"", "\"400 furlongs\"", 2, {"furlongs"}},
      {"zero rate", "\"400 Gb/s\"", "\"0 Gb/s\"", 2, {"s.toml:9", "link_rate"}},
      {"negative size", "\"4 MiB\"", "\"-4 MiB\"", 2, {"s.toml:12", "window"}},
  });
}

TEST_CASE("values out of range or of the wrong type") {
  run_edits({
      {"no nodes", "nodes = 2", "nodes = 0", 2, {"s.toml:5", "cluster.nodes = 0", "between 1 and 1000000"}},
      {"negative nodes", "nodes = 2", "nodes = -3", 2, {"s.toml:5", "cluster.nodes = -3", "between 1 and"}},
      {"a trillion nodes", "nodes = 2", "nodes = 1000000000000", 2, {"s.toml:5", "cluster.nodes = 1000000000000"}},
      {"an integer beyond 64 bits", "nodes = 2", "nodes = 99999999999999999999", 2, {"s.toml:5"}},
      {"not a number",
       "[communication]",
       "[communication]\nnetwork_efficiency = nan",
       2,
       {"s.toml:12", "network_efficiency", "finite"}},
      {"infinity",
       "[communication]",
       "[communication]\nnetwork_efficiency = inf",
       2,
       {"s.toml:12", "network_efficiency", "finite"}},
      {"efficiency above one",
       "[communication]",
       "[communication]\nnetwork_efficiency = 1.2",
       2,
       {"network_efficiency = 1.2", "between 0.01 and 1"}},
      {"a count in quotes", "nodes = 2", "nodes = \"2\"", 2, {"s.toml:5", "cluster.nodes = \"2\"", "without quotes"}},
      {"a fraction of a node", "nodes = 2", "nodes = 2.5", 2, {"s.toml:5", "cluster.nodes = 2.5", "plain count"}},
      {"a table for a text",
       "node = \"dgx-h100\"",
       "node = {a = 1}",
       2,
       {"s.toml:4", "cluster.node", "text in quotes"}},
      {"a text for a table",
       "[cluster.network]\ntopology = \"fat-tree\"\nlink_rate = \"400 Gb/s\"",
       "network = \"fat-tree\"",
       2,
       {"cluster.network = \"fat-tree\"", "a table"}},
      {"a table for an array", "[[jobs]]", "[jobs]", 2, {"jobs", "[[jobs]]"}},
      {"empty name", "name = \"base\"", "name = \"\"", 2, {"s.toml:1", "name"}},
      {"a name that is a path", "name = \"base\"", "name = \"../base\"", 2, {"s.toml:1", "name", "file name"}},
      {"a date", "nodes = 2", "nodes = 2024-01-01", 2, {"s.toml:5"}},
      {"window of zero tokens", "sequence_length = 4096", "sequence_length = 0", 2, {"jobs[0].sequence_length = 0"}},
      {"a job of no steps", "zero_stage = 1", "steps = 0", 2, {"jobs[0].steps = 0", "between 1 and 1000000000"}},
      {"more steps than any job makes", "zero_stage = 1", "steps = 1000000001", 2, {"jobs[0].steps = 1000000001"}},
      {"ZeRO stage 4", "zero_stage = 1", "zero_stage = 4", 2, {"jobs[0].zero_stage = 4", "between 0 and 3"}},
  });
}

TEST_CASE("names that are not there, with the nearest") {
  run_edits({
      {"node", "dgx-h100", "dgx-h10", 2, {"s.toml:4", "dgx-h10", "did you mean \"dgx-h100\"?"}},
      {"model", "llama3-8b", "llama3-8", 2, {"llama3-8", "did you mean \"llama3-8b\"?"}},
      {"topology", "\"fat-tree\"", "\"fat-three\"", 2, {"s.toml:8", "fat-three", "\"fat-tree\""}},
      {"workload", "\"transformer-training\"", "\"transformer-trainin\"", 2, {"s.toml:15", "\"transformer-training\""}},
      {"routing", "link_rate =", "routing = \"ecpm\"\nlink_rate =", 2, {"routing = \"ecpm\"", "\"ecmp\""}},
      {"switch", "link_rate =", "switch = \"no-such-switch\"\nlink_rate =", 2, {"s.toml:9", "no-such-switch"}},
      {"link kind", "link_rate =", "kind = \"infinband\"\nlink_rate =", 2, {"kind = \"infinband\"", "\"infiniband\""}},
      {"algorithm", "[communication]", "[communication]\nalgorithm = \"rnig\"", 2, {"s.toml:12", "rnig", "ring"}},
      {"precision", "\"bf16\"", "\"bf61\"", 2, {"precision = \"bf61\"", "\"bf16\""}},
      {"catalog file",
       "[communication]",
       "[catalog]\nfiles = [\"nowhere.toml\"]\n[communication]",
       2,
       {"nowhere.toml", "no such file"}},
      {"degraded link",
       "[cluster.network]",
       "[[cluster.degraded]]\nlink = \"node0/nic9 -> leaf0\"\ncapacity_factor = 0.5\n[cluster.network]",
       2,
       {"node0/nic9", "did you mean"}},
      {"degraded GPU",
       "[cluster.network]",
       "[[cluster.degraded]]\ngpu = 16\nslowdown = 2\n[cluster.network]",
       2,
       {"gpu = 16", "16 GPUs, numbered 0 to 15"}},
  });
}

TEST_CASE("asks that contradict themselves") {
  run_edits({
      {"two jobs", "zero_stage = 1", "zero_stage = 1\n[[jobs]]\nworkload = \"pipeline\"", 2, {"2 jobs", "exactly one"}},
      {"nothing to run",
       std::string_view(kBase).substr(kBase.find("[[jobs]]")),
       "",
       2,
       {"nothing to run", "[[jobs]]", "[nccl_test]"}},
      {"a job and a table", "[communication]", "[nccl_test]\n[communication]", 2, {"nccl_test", "not both"}},
      {"node and groups", "nodes = 2", "groups = [{node = \"dgx-h100\", count = 2}]", 2, {"cluster.node", "not both"}},
      {"nodes without a network",
       "[cluster.network]\ntopology = \"fat-tree\"\nlink_rate = \"400 Gb/s\"",
       "",
       2,
       {"missing table \"network\"", "2 nodes"}},
      {"degraded by nothing",
       "[cluster.network]",
       "[[cluster.degraded]]\ngpu = 1\n[cluster.network]",
       2,
       {"cluster.degraded[0].gpu = 1", "slowdown"}},
      {"degraded both ways",
       "[cluster.network]",
       "[[cluster.degraded]]\ngpu = 1\nlink = \"a -> b\"\n[cluster.network]",
       2,
       {"cluster.degraded[0]", "either"}},
      {"queue pairs without hashing", "link_rate =", "queue_pairs = 4\nlink_rate =", 2, {"queue_pairs = 4", "ecmp"}},
      {"study without points", "[communication]", "[study]\npoints = []\n[communication]", 2, {"study.points", "1 to"}},
      {"study that sets an unknown key",
       "[communication]",
       "[study]\npoints = [{\"cluster.nodse\" = 4}]\n[communication]",
       2,
       {"s.toml:12", "cluster.nodse", "\"nodes\""}},
  });
}

TEST_CASE("asks that cannot be done, with what would") {
  run_edits({
      {"more ranks than GPUs", "data = 8", "data = 16", 3, {"32 GPUs", "the cluster has 16", "data = 8 fits"}},
      {"ranks that do not divide the batch", "global_batch = 16", "global_batch = 12", 2, {"global_batch = 12"}},
      {"tensor ranks that do not divide the heads", "tensor = 2, data = 8", "tensor = 3, data = 1", 2, {"tensor"}},
      {"a model that does not fit", "\"llama3-8b\"", "\"llama3-405b\"", 3, {"GiB"}},
      {"a network too small for the nodes",
       "topology = \"fat-tree\"",
       "topology = \"fat-tree\"\nlevels = 1\nradix = 4",
       3,
       {"fat tree", "16"}},
  });
}

TEST_CASE("files that are not scenarios") {
  const std::vector<std::string> run{"run", "s.toml", "-o", "out.h5"};
  const auto with_text = [](std::string text) {
    return [text = std::move(text)](const Session& session) { session.write("s.toml", text); };
  };
  SECTION("missing, with the nearest file") {
    expect_refusal([](const Session& session) { session.write("scenario.toml", kBase); },
                   {"run", "scenaro.toml", "-o", "out.h5"}, 2, {"scenaro.toml", "no such file", "\"scenario.toml\""});
  }
  SECTION("missing, with the nearest library scenario") {
    expect_refusal([](const Session&) {}, {"run", "llama3-8b-61", "-o", "out.h5"}, 2,
                   {"llama3-8b-61", "did you mean \"llama3-8b-16\"?"});
  }
  SECTION("empty") { expect_refusal(with_text(""), run, 2, {"s.toml", "missing key \"name\""}); }
  SECTION("a folder") {
    expect_refusal([](const Session& session) { fs::create_directory(session.folder() / "s.toml"); }, run, 2,
                   {"s.toml", "folder"});
  }
  SECTION("binary") {
    expect_refusal(with_text(std::string("\x7f"
                                         "ELF\x02\x01\x01\0\0\0\xff\xfe garbage",
                                         20)),
                   run, 2, {"s.toml:1", "not a text file"});
  }
  SECTION("invalid UTF-8") {
    expect_refusal(with_text(edited("name = \"base\"", "name = \"b\xe4se\"")), run, 2, {"s.toml:1", "UTF-8"});
  }
  SECTION("duplicate key") {
    expect_refusal(with_text(edited("nodes = 2", "nodes = 2\nnodes = 4")), run, 2, {"s.toml:6"});
  }
  SECTION("a syntax error") { expect_refusal(with_text(edited("nodes = 2", "nodes = = 2")), run, 2, {"s.toml:5"}); }
  SECTION("a string that never ends") { expect_refusal(with_text("name = \"base"), run, 2, {"s.toml:1"}); }
  SECTION("standard input that is empty") {
    expect_refusal([](const Session&) {}, {"run", "-", "-o", "out.h5"}, 2, {"missing key \"name\""});
  }
}

TEST_CASE("extends that leads nowhere or in a circle") {
  const std::vector<std::string> run{"run", "s.toml", "-o", "out.h5"};
  SECTION("missing") {
    expect_refusal([](const Session& session) { session.write("s.toml", "extends = \"base.toml\"\nname = \"x\"\n"); },
                   run, 2, {"s.toml:1", "base.toml", "no such file"});
  }
  SECTION("itself") {
    expect_refusal([](const Session& session) { session.write("s.toml", "extends = \"s.toml\"\nname = \"x\"\n"); }, run,
                   2, {"s.toml:1", "circle"});
  }
  SECTION("a circle of three") {
    expect_refusal(
        [](const Session& session) {
          session.write("s.toml", "extends = \"a.toml\"\n");
          session.write("a.toml", "extends = \"./b.toml\"\n");
          session.write("b.toml", "extends = \"../here/s.toml\"\n");
        },
        run, 2, {"b.toml:1", "circle"});
  }
  SECTION("not a name") {
    expect_refusal([](const Session& session) { session.write("s.toml", "extends = [\"a.toml\"]\n"); }, run, 2,
                   {"s.toml:1", "extends", "one file"});
  }
  SECTION("a fault in the parent is found in the parent") {
    expect_refusal(
        [](const Session& session) {
          session.write("parent.toml", edited("nodes = 2", "nodes = -2"));
          session.write("s.toml", "extends = \"parent.toml\"\nname = \"child\"\n");
        },
        run, 2, {"parent.toml:5", "cluster.nodes = -2"});
  }
}

TEST_CASE("--set that cannot be followed") {
  const std::vector<Setting> settings = {
      {"no value", {"cluster.nodes"}, 2, {"--set cluster.nodes", "key.path=value"}},
      {"no key", {"=4"}, 2, {"key is missing"}},
      {"two dots", {"cluster..nodes=4"}, 2, {"cluster..nodes", "key is missing"}},
      {"ends in a dot", {"cluster.=4"}, 2, {"key is missing"}},
      {"an index that is no number", {"jobs[x].model=a"}, 2, {"jobs[x].model", "number"}},
      {"an index without an end", {"jobs[0.model=a"}, 2, {"jobs[0.model", "]"}},
      {"an element that is not there", {"jobs[3].model=a"}, 2, {"jobs[3]", "there is 1 element"}},
      {"a key of something that is no table", {"name.first=a"}, 2, {"name is \"base\"", "not a table"}},
      {"an index into something that is no array", {"cluster[0]=a"}, 2, {"cluster is a table", "not an array"}},
      {"an unknown key", {"cluster.nodse=4"}, 2, {"--set", "cluster.nodse", "\"nodes\""}},
      {"an unknown section", {"clustr.nodes=4"}, 2, {"--set", "clustr", "\"cluster\""}},
      {"a value out of range", {"cluster.nodes=0"}, 2, {"--set", "cluster.nodes = 0"}},
      {"text for a count", {"cluster.nodes=many"}, 2, {"--set", "cluster.nodes = \"many\""}},
      {"TOML that does not end", {"jobs[0].parallel={tensor=2"}, 2, {"--set", "not valid TOML"}},
      {"extends", {"extends=other.toml"}, 2, {"extends", "scenario file"}},
      {"the last one wins", {"cluster.nodes=2", "cluster.nodes=-1"}, 2, {"cluster.nodes = -1"}},
  };
  for (const Setting& setting : settings) {
    INFO(setting.title);
    std::vector<std::string> arguments{"run", "s.toml", "-o", "out.h5"};
    for (const std::string& set : setting.set) {
      arguments.emplace_back("--set");
      arguments.push_back(set);
    }
    expect_refusal([](const Session& session) { session.write("s.toml", kBase); }, arguments, setting.code,
                   setting.fragments);
  }
}

TEST_CASE("output that cannot be written is refused before the work") {
  const auto prepare = [](const Session& session) {
    session.write("s.toml", kBase);
    fs::create_directory(session.folder() / "results");
  };
  const std::vector<Setting> settings = {
      {"a folder", {"-o", "results"}, 2, {"--output results", "folder"}},
      {"a folder with a slash", {"-o", "elsewhere/"}, 2, {"--output", "folder"}},
      {"a folder that is not there", {"-o", "result/out.h5"}, 2, {"--output", "result does not exist", "\"results\""}},
      {"a file as a folder", {"-o", "s.toml/out.h5"}, 2, {"--output", "s.toml"}},
      {"a device", {"-o", "/dev/null"}, 2, {"--output /dev/null", "not an ordinary file"}},
      {"a folder that takes no files", {"-o", "/proc/out.h5"}, 2, {"--output /proc/out.h5", "cannot write"}},
      {"an empty name", {"-o", ""}, 2, {"--output"}},
      {"timeline in a folder that is not there",
       {"-o", "out.h5", "--timeline", "no/t.json"},
       2,
       {"--timeline", "does not exist"}},
      {"timeline over the output", {"-o", "out.h5", "--timeline", "out.h5"}, 2, {"--timeline", "also the output"}},
  };
  for (const Setting& setting : settings) {
    INFO(setting.title);
    std::vector<std::string> arguments{"run", "s.toml"};
    arguments.insert(arguments.end(), setting.set.begin(), setting.set.end());
    expect_refusal(prepare, arguments, setting.code, setting.fragments);
  }
}

TEST_CASE("command lines that mean nothing") {
  const auto prepare = [](const Session& session) { session.write("s.toml", kBase); };
  const std::vector<Setting> settings = {
      {"no command", {}, 2, {"expected a command", "run"}},
      {"unknown command", {"rnu", "s.toml"}, 2, {"unknown command \"rnu\"", "did you mean \"run\"?"}},
      {"unknown option", {"run", "s.toml", "--josn"}, 2, {"unknown option \"--josn\"", "did you mean \"--json\"?"}},
      {"no scenario", {"run"}, 2, {"SCENARIO"}},
      {"output and no output", {"run", "s.toml", "-o", "a.h5", "--no-output"}, 2, {"--no-output"}},
      {"lumping neither on nor off", {"run", "s.toml", "--lumping", "maybe"}, 2, {"maybe"}},
      {"neither scenario nor node", {"nccl-test"}, 2, {"--node"}},
      {"both scenario and node", {"nccl-test", "s.toml", "--node", "dgx-h100"}, 2, {"either"}},
      {"nccl-test of a job", {"nccl-test", "s.toml"}, 2, {"has a job"}},
      {"unknown operation", {"nccl-test", "--node", "dgx-h100", "--op", "all_redcue"}, 2, {"all_redcue", "all_reduce"}},
      {"sizes that shrink", {"nccl-test", "--node", "dgx-h100", "--sizes", "8G..8"}, 2, {"8G..8"}},
      {"unknown node",
       {"topology", "--node", "dgx-h1000", "--nodes", "2", "--topology", "torus"},
       2,
       {"dgx-h1000", "\"dgx-h100\""}},
      {"unknown catalog entry", {"catalog", "h100-smx"}, 2, {"h100-smx", "h100-sxm"}},
      {"unknown topic", {"list", "topologys"}, 2, {"topologys", "\"topologies\""}},
      {"unknown entry of a topic", {"list", "topologies", "fattree"}, 2, {"fattree", "\"fat-tree\""}},
  };
  for (const Setting& setting : settings) {
    INFO(setting.title);
    expect_refusal(prepare, setting.set, setting.code, setting.fragments);
  }
}
