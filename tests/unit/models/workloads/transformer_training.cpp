// The training generator: what its programs contain, what it refuses, and that they run.
#include <chrono>
#include <map>
#include <string>

#include "models/workloads/layer_kernels.hpp"
#include "models/workloads/memory.hpp"
#include "models/workloads/transformer_options.hpp"
#include "models/workloads/workload.hpp"
#include "tests/catch.hpp"
#include "tests/unit/models/workloads/fixture.hpp"

using namespace clustersim;

namespace {

/// A decoder small enough for any test, with ordinary shapes.
constexpr std::string_view kSmall =
    "architecture = {layers = 8, hidden = 1024, heads = 16, kv_heads = 4, ffn_hidden = 4096, vocabulary = 32000, "
    "sequence_length = 1024, title = \"small\"}\n";
constexpr std::string_view kExperts =
    "architecture = {layers = 4, hidden = 1024, heads = 16, kv_heads = 4, ffn_hidden = 4096, vocabulary = 32000, "
    "sequence_length = 1024, title = \"experts\", experts = 8, experts_per_token = 2, expert_ffn_hidden = 2048, "
    "shared_experts = 1, dense_layers = 1}\n";

BuiltWorkload build(const Workbench& bench, std::string_view model, std::string_view more) {
  return bench.build("transformer-training", std::string(model) + std::string(more));
}

/// Bytes and number of the collectives of one program by exposure and kind.
struct Count {
  std::int64_t number = 0;
  std::int64_t bytes = 0;
};
std::map<std::pair<Cause, Collective>, Count> collectives(const Job& job, std::size_t program) {
  std::map<std::pair<Cause, Collective>, Count> counts;
  for (const Instruction& instruction : job.programs[program].instructions) {
    if (instruction.kind != Instruction::Kind::collective) continue;
    const Operation& operation = job.operations[instruction.operation];
    Count& count = counts[{operation.exposed_as, operation.collective}];
    ++count.number;
    count.bytes += operation.bytes.value();
  }
  return counts;
}

template <class Error>
std::string error_of(const Workbench& bench, std::string_view model, std::string_view more) {
  try {
    (void)build(bench, model, more);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("One GPU: kernels only, and the step is their sum") {
  const Workbench bench{.cluster = one_node(1)};
  const BuiltWorkload built = build(bench, kSmall, "global_batch = 4\n");
  CHECK(collectives(built.job, 0).empty());
  Picoseconds sum{0};
  for (const Instruction& instruction : built.job.programs[0].instructions) sum += instruction.duration;
  const StepResult result = bench.run(built);
  CHECK(result.step_time == sum);
  CHECK(built.figures.tokens_per_step == 4 * 1024);
  // Utilization is below what the GEMM and attention constants allow.
  const double utilization = model_flops_utilization(built.figures.model_flops, to_seconds(result.step_time),
                                                     bench.catalog.gpu("h100-sxm"), DataType::bf16, 1);
  CHECK(utilization > 0.1);
  CHECK(utilization < 0.8);
}

TEST_CASE("Tensor parallelism: four collectives a layer and pass, of the volumes of Korthikanti et al. 2022") {
  const Workbench bench{.cluster = one_node(4)};
  constexpr std::int64_t kActivations = 1024 * 1024 * 2;  // sequence x hidden x 2 bytes
  SECTION("sequence parallel: gathers and scatters, an all-reduce's volume in two halves") {
    const BuiltWorkload built = build(bench, kSmall, "global_batch = 1\nparallel = {tensor = 4}\n");
    auto counts = collectives(built.job, 0);
    // Forward: a gather before and a scatter after each half of a layer. Backward: a gather of the output gradient, the
    // input again, and a scatter, of each half. Embedding: a scatter, and a gather back. Head: a gather; again and a
    // scatter.
    CHECK(counts[{Cause::exposed_tensor, Collective::all_gather}].bytes == (8 * (2 + 4) + 1 + 2) * kActivations);
    CHECK(counts[{Cause::exposed_tensor, Collective::reduce_scatter}].bytes == (8 * (2 + 2) + 1 + 1) * kActivations);
  }
  SECTION("without: two all-reduces a layer and pass") {
    const BuiltWorkload built =
        build(bench, kSmall, "global_batch = 1\nparallel = {tensor = 4}\nsequence_parallel = false\n");
    auto counts = collectives(built.job, 0);
    // Embedding forward, head backward, the loss's 12 bytes per token, and 4 bytes of the gradient norm.
    CHECK(counts[{Cause::exposed_tensor, Collective::all_reduce}].bytes == (8 * 4 + 2) * kActivations + 12 * 1024 + 4);
    CHECK(counts.count({Cause::exposed_tensor, Collective::all_gather}) == 0);
  }
  CHECK_NOTHROW(bench.run(build(bench, kSmall, "global_batch = 2\nparallel = {tensor = 4}\n")));
}

TEST_CASE("Pipeline transfers: each micro-batch crosses each boundary twice, sharded when sequence parallel") {
  const Workbench bench{.cluster = one_node(8)};
  const BuiltWorkload built = build(bench, kSmall, "global_batch = 6\nparallel = {tensor = 2, pipeline = 4}\n");
  REQUIRE(built.job.programs.size() == 4);
  const auto transfers = [&](std::size_t stage) {
    return collectives(built.job, stage)[{Cause::exposed_pipeline, Collective::send_receive}];
  };
  CHECK(transfers(0).number == 6 * 2);
  CHECK(transfers(1).number == 6 * 4);
  CHECK(transfers(3).number == 6 * 2);
  CHECK(transfers(1).bytes == 6 * 4 * 1024 * 1024 * 2 / 2);
  CHECK_NOTHROW(bench.run(built));
}

TEST_CASE("A tied embedding is held by the first and the last stage, which add up its gradients") {
  const Workbench bench{.cluster = one_node(4)};
  const std::string tied =
      "architecture = {layers = 8, hidden = 1024, heads = 16, ffn_hidden = 4096, vocabulary = 32000, "
      "sequence_length = 1024, title = \"tied\", tied_embeddings = true}\n";
  const BuiltWorkload built = build(bench, tied, "global_batch = 4\nparallel = {pipeline = 4}\n");
  for (std::size_t stage = 0; stage < 4; ++stage) {
    auto counts = collectives(built.job, stage);
    const std::int64_t table = stage == 0 || stage == 3 ? 32000LL * 1024 * 4 : 0;
    CHECK(counts[{Cause::exposed_pipeline, Collective::all_reduce}].bytes == table + 4);  // and the gradient norm
  }
  CHECK_NOTHROW(bench.run(built));
}

TEST_CASE("Gradients are reduced in at most ten pieces with every parameter once") {
  const Workbench bench{.cluster = one_node(8)};
  const auto zero = GENERATE(0, 1);
  const BuiltWorkload built =
      build(bench, kSmall, fmt::format("global_batch = 16\nzero_stage = {}\nparallel = {{data = 8}}\n", zero));
  auto counts = collectives(built.job, 0);
  const Count reductions =
      counts[{Cause::exposed_data, zero == 0 ? Collective::all_reduce : Collective::reduce_scatter}];
  CHECK(reductions.number <= 10);
  CHECK(reductions.bytes == static_cast<std::int64_t>(built.figures.parameters * 4));
  if (zero == 1) {
    CHECK(counts[{Cause::exposed_data, Collective::all_gather}].bytes ==
          static_cast<std::int64_t>(built.figures.parameters * 2));
  }
  CHECK_NOTHROW(bench.run(built));
}

TEST_CASE("Overlap makes a step shorter, or where transfers get into each other's way hardly longer") {
  Workbench bench{.cluster = one_node(8, gigabytes_per_second(20))};
  const auto seconds = [&](std::string_view more) { return bench.run(build(bench, kSmall, more)).step_time; };
  const std::string data = "global_batch = 16\nzero_stage = 1\nparallel = {data = 8}\n";
  CHECK(seconds(data) < seconds(data + "overlap_gradients = false\n"));
  CHECK(seconds(data + "overlap_parameters = true\n") < seconds(data));
  const std::string tensor = "global_batch = 2\nparallel = {tensor = 8}\n";
  CHECK(seconds(tensor) < seconds(tensor + "overlap_tensor = false\n"));
  const std::string fsdp = "global_batch = 16\nzero_stage = 3\nparallel = {data = 8}\n";
  // Prefetched parameters and reduced gradients share the links, and here both are on the critical path.
  CHECK(to_seconds(seconds(fsdp)) < 1.03 * to_seconds(seconds(fsdp + "overlap_parameters = false\n")));
  const std::string context = "global_batch = 2\nsequence_length = 32768\nparallel = {context = 8}\n";
  CHECK(seconds(context) < seconds(context + "context_exchange = \"all-gather\"\n"));
}

TEST_CASE("Recomputation costs its forward pass and is booked as such") {
  const Workbench bench{.cluster = one_node(2)};
  const std::string base = "global_batch = 2\nparallel = {tensor = 2}\n";
  const auto cause_seconds = [&](std::string_view mode, Cause cause) {
    const StepResult result = bench.run(build(bench, kSmall, base + fmt::format("recompute = \"{}\"\n", mode)));
    return to_seconds(result.rank_classes[0].ledger[static_cast<std::size_t>(cause)]);
  };
  CHECK(cause_seconds("none", Cause::recompute) == 0);
  CHECK(cause_seconds("full", Cause::recompute) > cause_seconds("selective", Cause::recompute));
  CHECK(cause_seconds("selective", Cause::recompute) > 0);
  CHECK(cause_seconds("full", Cause::compute) == Approx(cause_seconds("none", Cause::compute)).epsilon(1e-9));
}

TEST_CASE("Every parallelism at once runs, and every combination keeps the ledger whole") {
  const Workbench bench{.cluster = one_node(64)};
  const auto zero = GENERATE(0, 1, 2, 3);
  const auto schedule = GENERATE(std::string("gpipe"), std::string("1f1b"), std::string("interleaved-1f1b"));
  const std::string more = fmt::format(
      "global_batch = 32\nzero_stage = {}\nschedule = \"{}\"\nrecompute = \"full\"\n"
      "parallel = {{tensor = 2, pipeline = 2, data = 8, context = 2, expert = 4, virtual_stages = {}}}\n",
      zero, schedule, schedule == "interleaved-1f1b" ? 2 : 1);
  const BuiltWorkload built = build(bench, kExperts, more);
  CHECK(built.job.ranks() == 64);
  const StepResult result = bench.run(built);
  for (const RankClass& rank_class : result.rank_classes) {
    Picoseconds sum{0};
    for (const Picoseconds ticks : rank_class.ledger) sum += ticks;
    CHECK(sum == result.step_time);
  }
}

TEST_CASE("Experts: tokens go out and come back through all-to-alls, four times a layer") {
  const Workbench bench{.cluster = one_node(4)};
  const BuiltWorkload built = build(bench, kExperts, "global_batch = 4\nparallel = {data = 4, expert = 4}\n");
  auto counts = collectives(built.job, 0);
  const Count exchanged = counts[{Cause::exposed_expert, Collective::all_to_all}];
  CHECK(exchanged.number == 3 * 4);
  CHECK(exchanged.bytes == 3LL * 4 * 1024 * 2 * 1024 * 2);  // tokens x 2 experts x hidden x 2 bytes
  const auto seconds = [&](std::string_view more) {
    return to_seconds(
        bench
            .run(build(bench, kExperts,
                       std::string("global_batch = 4\nparallel = {data = 4, expert = 4}\n") + std::string(more)))
            .step_time);
  };
  CHECK(seconds("expert_imbalance = 2.0\n") > seconds(""));
}

TEST_CASE("Llama 3 405B on 16 stages: one layer less on the first and the last, as published") {
  const std::vector<std::int64_t> layers = layers_per_position(126, 16);
  CHECK(layers.front() == 7);
  CHECK(layers.back() == 7);
  for (std::size_t i = 1; i < 15; ++i) CHECK(layers[i] == 8);
  CHECK(layers_per_position(96, 8) == std::vector<std::int64_t>(8, 12));
}

TEST_CASE("A layout that cannot work is refused with one that does") {
  const Workbench bench{.cluster = one_node(8)};
  const auto bad = [&](std::string_view more) { return error_of<BadInput>(bench, kSmall, more); };
  CHECK(has(bad("global_batch = 10\nparallel = {data = 4}\n"), "8 or 12 works"));
  CHECK(has(bad("global_batch = 10\nparallel = {data = 4}\n"), "test.toml:2 jobs[0].global_batch = 10"));
  CHECK(has(bad("global_batch = 8\nparallel = {tensor = 3}\n"), "jobs[0].parallel.tensor = 3"));
  CHECK(has(bad("global_batch = 8\nparallel = {tensor = 3}\n"), "2 or 4 does"));
  CHECK(has(bad("global_batch = 8\nparallel = {pipeline = 16}\n"), "at most 10 stages work"));
  CHECK(has(bad("global_batch = 6\nschedule = \"interleaved-1f1b\"\nparallel = {pipeline = 4, virtual_stages = 2}\n"),
            "4 or 8"));
  CHECK(has(bad("global_batch = 8\nschedule = \"interleaved-1f1b\"\n"), "needs pipeline > 1"));
  CHECK(has(bad("global_batch = 8\nparallel = {pipeline = 4, virtual_stages = 2}\n"), "interleaved-1f1b"));
  CHECK(has(bad("global_batch = 8\nparallel = {data = 2, expert = 2}\n"), "has no experts"));
  CHECK(has(bad("global_batch = 8\nsequence_length = 1000\nparallel = {context = 3}\n"), "996 or 1002"));
  CHECK(has(bad("global_batch = 8\nrank_order = \"tensor-data\"\n"), "rank_order"));
  CHECK(has(bad("global_batch = 8\nmodel = \"llama3-8b\"\n"), "not both"));
  CHECK(has(error_of<BadInput>(bench, "", "global_batch = 8\n"), "llama3-8b"));
  const std::string slip = error_of<BadInput>(bench, "model = \"llama3-8bb\"\n", "global_batch = 8\n");
  CHECK(has(slip, "test.toml:1 jobs[0].model"));
  CHECK(has(slip, "did you mean \"llama3-8b\""));
  const auto experts = [&](std::string_view more) { return error_of<BadInput>(bench, kExperts, more); };
  CHECK(has(experts("global_batch = 8\nparallel = {data = 4, expert = 3}\n"),
            "expert = 3 does not divide the 8 experts"));
  CHECK(has(experts("global_batch = 12\nparallel = {data = 6, expert = 4}\n"), "4 or 8 works"));
}

TEST_CASE("More ranks than GPUs: both numbers, and the largest data parallelism that fits") {
  const Workbench bench{.cluster = one_node(8)};
  const std::string text =
      error_of<Infeasible>(bench, kSmall, "global_batch = 32\nparallel = {tensor = 2, data = 8}\n");
  CHECK(has(text, "needs 16 GPUs, the cluster has 8; data = 4 fits"));
  CHECK(has(error_of<Infeasible>(bench, kSmall, "global_batch = 32\nparallel = {tensor = 16}\n"),
            "not even one replica"));
  CHECK(has(error_of<Infeasible>(bench, kSmall, "global_batch = 32\nfirst_gpu = 6\nparallel = {data = 4}\n"),
            "data = 2 fits"));
}

TEST_CASE("Too much memory is refused with changes that fit when they are made") {
  const Workbench bench{.cluster = one_node(8)};
  const std::string base = "model = \"llama3-8b\"\nglobal_batch = 8\nparallel = {data = 8}\n";
  const std::string text = error_of<Infeasible>(bench, base, "");
  INFO(text);
  CHECK(has(text, "llama3-8b needs"));
  CHECK(has(text, "h100-sxm has 80"));
  CHECK(has(text, "optimizer state"));
  REQUIRE(has(text, "zero_stage = 2"));
  CHECK_NOTHROW(build(bench, base, "zero_stage = 2\n"));
}

TEST_CASE("One replica has the same work per replica and is not asked to fit") {
  const Workbench bench{.cluster = one_node(8)};
  const WorkloadEntry& entry = find_workload("transformer-training");
  const std::string toml = "model = \"llama3-8b\"\nglobal_batch = 64\nzero_stage = 3\nparallel = {data = 8}\n";
  const Settings settings = check_settings(parse_toml(toml, "test.toml"), entry.schema, "jobs[0]");
  const BuiltWorkload whole = entry.build(settings, bench.context());
  const BuiltWorkload replica = entry.build_one_replica(settings, bench.context());
  CHECK(whole.job.ranks() == 8);
  CHECK(replica.job.ranks() == 1);
  CHECK(replica.figures.tokens_per_step == whole.figures.tokens_per_step / 8);
}

TEST_CASE("A slow GPU slows its rank only in the job's own numbers") {
  const Workbench bench{.cluster = one_node(4)};
  const std::vector<double> slowdown{1.0, 1.0, 1.5, 1.0};
  WorkloadContext context = bench.context();
  context.gpu_slowdown = slowdown;
  const WorkloadEntry& entry = find_workload("transformer-training");
  const Value job = parse_toml(fmt::format("{}global_batch = 4\nparallel = {{data = 4}}\n", kSmall), "t.toml");
  const BuiltWorkload built = entry.build(check_settings(job, entry.schema, "jobs[0]"), context);
  CHECK(built.job.slowdown == slowdown);
  CHECK(bench.run(built).step_time >
        bench.run(build(bench, kSmall, "global_batch = 4\nparallel = {data = 4}\n")).step_time);
}

TEST_CASE("Workloads: every entry has help and a schema, and an unknown name is answered with the nearest") {
  for (const WorkloadEntry& entry : workloads()) {
    CHECK_FALSE(entry.help.empty());
    CHECK_FALSE(entry.schema.empty());
    for (const Parameter& parameter : entry.schema) CHECK_FALSE(parameter.help.empty());
    CHECK(&find_workload(entry.name) != nullptr);
  }
  try {
    (void)find_workload("transformer-trainning");
    FAIL("accepted");
  } catch (const BadInput& error) {
    CHECK(has(error.what(), "did you mean \"transformer-training\""));
  }
}
