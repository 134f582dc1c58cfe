// The commands as a user or a program types them: what they print, and what they leave in the folder.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/scenarios/session.hpp"

namespace {

namespace fs = std::filesystem;
using namespace clustersim::testing;
using Json = nlohmann::json;

/// With the small scenario in its folder.
class SmallSession : public Session {
 public:
  SmallSession() { write("small.toml", kSmallScenario); }
};

}  // namespace

TEST_CASE("run prints a summary and writes one file") {
  const SmallSession session;
  const Outcome outcome = session.run("run small.toml");
  REQUIRE(outcome.code == 0);
  for (const char* part :
       {"step time", "tokens/s", "MFU", "HFU", "memory per GPU", "GiB", "scaling efficiency", "compute",
        "busiest resources", "communication", "events", "wall time", "assumptions", "small.h5"}) {
    INFO(part);
    CHECK(contains(outcome.output, part));
  }
  CHECK(fs::exists(session.folder() / "small.h5"));
  CHECK(session.listing().size() == 2);
  CHECK(!session.good("run small.toml --no-output").empty());
  CHECK(!session.good("run small.toml -o other.h5 --timeline t.json").empty());
  CHECK(session.listing().size() == 4);
  CHECK(Json::parse(read_file(session.folder() / "t.json"))["traceEvents"].size() > 10);
}

TEST_CASE("the same scenario writes the same bytes") {
  const SmallSession session;
  CHECK_NOTHROW((void)session.good("run small.toml -o a.h5"));
  CHECK_NOTHROW((void)session.good("run small.toml -o b.h5"));
  CHECK(read_file(session.folder() / "a.h5") == read_file(session.folder() / "b.h5"));
}

TEST_CASE("run --json prints exactly one object with the figures, and they hold together") {
  const SmallSession session;
  const Json json = Json::parse(session.good("run small.toml --json --no-output"));
  for (const char* key : {"step_time_s",
                          "total_time_s",
                          "total_tokens",
                          "gpu_hours",
                          "tokens_per_s",
                          "tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "memory_gib_per_gpu",
                          "exposed_comm_share",
                          "bubble_share",
                          "scaling_efficiency",
                          "ledger_share",
                          "events",
                          "flow_events",
                          "lumps",
                          "wall_s",
                          "peak_rss_mib",
                          "scenario_hash",
                          "version",
                          "seed",
                          "gpus",
                          "resources",
                          "assumptions"}) {
    INFO(key);
    CHECK(json.contains(key));
  }
  double shares = 0;
  double exposed = 0;
  for (const auto& [cause, share] : json["ledger_share"].items()) {
    shares += share.get<double>();
    if (cause.rfind("exposed", 0) == 0) exposed += share.get<double>();
  }
  CHECK(shares == Approx(1).epsilon(1e-9));
  CHECK(json["exposed_comm_share"].get<double>() == Approx(exposed).margin(1e-12));
  CHECK(json["gpus"] == 16);
  CHECK(json["tokens_per_s"].get<double>() * json["step_time_s"].get<double>() == Approx(16 * 2048));
  CHECK(json["wall_s"].get<double>() > 0);
  CHECK(json["peak_rss_mib"].get<double>() > 1);
}

TEST_CASE("a job of many steps costs as much to simulate, and its totals are the step's multiples") {
  const SmallSession session;
  const Json one = Json::parse(session.good("run small.toml --json --no-output"));
  CHECK(one["steps"] == 1);
  CHECK(one["total_time_s"] == one["step_time_s"]);
  const Json all = Json::parse(session.good("run small.toml --json --no-output --set jobs[0].steps=1000"));
  CHECK(all["steps"] == 1000);
  CHECK(all["step_time_s"] == one["step_time_s"]);
  CHECK(all["events"] == one["events"]);
  CHECK(all["total_time_s"].get<double>() == Approx(1000 * one["step_time_s"].get<double>()));
  CHECK(all["total_tokens"].get<double>() == Approx(1000 * 16 * 2048.0));
  CHECK(all["gpu_hours"].get<double>() == Approx(16 * all["total_time_s"].get<double>() / 3600));
  CHECK(contains(session.good("run small.toml --no-output --set jobs[0].steps=1000"), "1,000 steps: "));
  CHECK_FALSE(contains(session.good("run small.toml --no-output"), "whole job"));
}

TEST_CASE("lumping off agrees, and --explain lumping shows the classes") {
  const SmallSession session;
  const Json lumped = Json::parse(session.good("run small.toml --json --no-output"));
  const Json every = Json::parse(session.good("run small.toml --json --no-output --lumping off"));
  CHECK(every["lumps"]["rank_classes"] == 16);
  CHECK(every["step_time_s"].get<double>() == Approx(lumped["step_time_s"].get<double>()).epsilon(1e-9));
  CHECK(contains(session.good("run small.toml --no-output --explain lumping"), "first rank"));
}

TEST_CASE("what show prints, check accepts and run runs to the same result") {
  const SmallSession session;
  for (const std::string scenario : {"small.toml", "nccl-4x-dgx-h100", "scaling-8-to-16384", "llama3-8b-16"}) {
    INFO(scenario);
    const std::string shown = session.good("show " + scenario);
    session.write("shown.toml", shown);
    CHECK(contains(session.good("check shown.toml"), "ok: "));
    CHECK(session.good("show shown.toml") == shown);
  }
  session.write("shown.toml", session.good("show small.toml --set seed=3"));
  const Json direct = Json::parse(session.good("run small.toml --set seed=3 --json --no-output"));
  const Json again = Json::parse(session.good("run shown.toml --json --no-output"));
  CHECK(direct["scenario_hash"] == again["scenario_hash"]);
  CHECK(direct["step_time_s"] == again["step_time_s"]);
  CHECK(session.good("show - <small.toml") == session.good("show small.toml"));
}

TEST_CASE("check says in one line what fits") {
  const SmallSession session;
  const std::string text = session.good("check small.toml");
  CHECK(text.rfind("ok: small: 16 GPUs, ", 0) == 0);
  CHECK(contains(text, " GiB per GPU\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(session.listing().size() == 1);
}

TEST_CASE("nccl-test prints the table of flags or of a scenario, and both are the same") {
  const SmallSession session;
  const std::string flags = "nccl-test --node dgx-h100 --nodes 4 --op all_reduce --sizes 1M..1G";
  const Json rows = Json::parse(session.good(flags + " --json"))["rows"];
  REQUIRE(rows.size() == 11);
  CHECK(rows[0]["size_bytes"] == 1 << 20);
  const Json scenario = Json::parse(session.good("nccl-test nccl-4x-dgx-h100 --sizes 1M..1G --json"))["rows"];
  CHECK(scenario == rows);
  CHECK(contains(session.good(flags), "busbw"));
  const Json ring = Json::parse(session.good(flags + " --algorithm ring --json"))["rows"];
  CHECK(ring[0]["algorithm"] == "ring");
  const Json stepped = Json::parse(session.good(flags + " --algorithm ring --form stepped --json"))["rows"];
  // Round after round pays every latency; only the limit of the GPUs' channels, which is set on the whole, is not seen.
  for (std::size_t i = 0; i < ring.size(); ++i) {
    CHECK(stepped[i]["time_us"].get<double>() >= ring[i]["time_us"].get<double>() * 0.9);
  }
}

TEST_CASE("topology counts, measures and exports") {
  const SmallSession session;
  const std::string flags = "topology --node dgx-h100 --nodes 4 --topology single-switch";
  const Json json = Json::parse(session.good(flags + " --json --graphml g.xml --dot g.dot"));
  CHECK(json["gpus"] == 32);
  CHECK(json["endpoints"] == 32);
  CHECK(json["measured"]["sources"].get<int>() > 0);
  if (!json["mean_hops"].is_null())
    CHECK(json["mean_hops"].get<double>() == Approx(json["measured"]["mean_hops"].get<double>()));
  CHECK(contains(read_file(session.folder() / "g.xml"), "<graphml"));
  CHECK(contains(read_file(session.folder() / "g.dot"), "digraph"));
  CHECK(contains(session.good("topology llama3-405b-16k"), "oversubscription"));
  CHECK(contains(session.good(flags), "mean hops"));
}

TEST_CASE("catalog and list are the reference") {
  const SmallSession session;
  const std::string entries = session.good("catalog");
  CHECK(contains(entries, "h100-sxm"));
  CHECK(contains(entries, "llama3-405b"));
  CHECK(contains(session.good("catalog h100-sxm"), "TFLOP/s"));
  const std::string all = session.good("list");
  for (const char* part : {"fat-tree", "transformer-training", "ring", "llama3-8b-16", "global_batch", "queue_pairs"}) {
    INFO(part);
    CHECK(contains(all, part));
  }
  const std::string one = session.good("list topologies torus");
  CHECK(contains(one, "torus"));
  CHECK_FALSE(contains(one, "fat-tree"));
}

TEST_CASE("version and help") {
  const SmallSession session;
  CHECK(session.good("--version").rfind("clustersim ", 0) == 0);
  CHECK(contains(session.good("--help"), "nccl-test"));
  CHECK(contains(session.good("run --help"), "--timeline"));
}

TEST_CASE("a full disk is told") {
  const SmallSession session;
  const Outcome outcome = session.shell("( '" CLUSTERSIM_PROGRAM "' show small.toml >/dev/full )");
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.error, "standard output cannot be written"));
}
