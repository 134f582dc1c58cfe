// One training step of thousands of GPUs: planning, lumping and stepping together.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "models/programs/execute.hpp"
#include "models/programs/program.hpp"
#include "topologies/cluster.hpp"

namespace {

using namespace clustersim;

constexpr std::uint32_t kTensor = 8;
constexpr std::uint32_t kStages = 16;
constexpr std::uint32_t kLayers = 8;  // per stage
constexpr std::uint32_t kMicroBatches = 32;

std::unique_ptr<Cluster> fat_tree(std::int64_t nodes) {
  NodeShape shape;
  shape.name = "eight-gpus";
  shape.gpu_link = gigabytes_per_second(450);
  shape.in_network_reduction = true;
  shape.nic_rate = gigabits_per_second(400);
  shape.pcie_rate = gigabytes_per_second(64);
  shape.pcie_switches = 4;
  shape.cpu_link = gigabytes_per_second(64);
  const FabricEntry& fabric = find_fabric("fat-tree");
  Value radix;
  radix.data = std::int64_t{128};
  Value written;
  written.data = Value::Table{{"radix", radix}};
  const Settings settings = check_settings(written, fabric.schema, "network");
  ClusterSpec spec;
  spec.nodes.push_back({shape, nodes});
  spec.fabric = &fabric;
  spec.fabric_settings = &settings;
  spec.link_latency = Picoseconds(600'000);
  return std::make_unique<Cluster>(spec);
}

enum : std::uint16_t { tensor, data, from_previous, to_next, from_next, to_previous, slots };

/// About 5,300 instructions: forwards of all micro-batches, then backwards, with tensor-parallel all-reduces inline.
void write_stage(Job& job, std::uint32_t stage) {
  const Operation reduce{Collective::all_reduce, mebibytes(32), Cause::exposed_tensor};
  const Operation hand_over{Collective::send_receive, mebibytes(4), Cause::exposed_pipeline};
  ProgramBuilder builder(job, 4);
  std::uint32_t last = 0;
  for (const bool forward : {true, false}) {
    const bool receives = forward ? stage > 0 : stage + 1 < kStages;
    const bool sends = forward ? stage + 1 < kStages : stage > 0;
    for (std::uint32_t m = 0; m < kMicroBatches; ++m) {
      std::vector<std::uint32_t> waits;
      if (receives) waits.push_back(builder.collective(1, forward ? from_previous : from_next, hand_over, "receive"));
      for (std::uint32_t k = 0; k < kLayers * 2; ++k) {
        for (std::uint32_t i = 0; i < (forward ? 3U : 5U); ++i) {
          builder.kernel(0, Cause::compute, "kernel", Picoseconds(100'000'000 + 1'000 * i), waits);
          waits.clear();
        }
        last = builder.collective(0, tensor, reduce, "tensor-parallel all-reduce");
      }
      if (sends) builder.collective(2, forward ? to_next : to_previous, hand_over, "send", std::array{last});
    }
  }
  builder.collective(3, data, {Collective::reduce_scatter, mebibytes(512), Cause::exposed_data}, "gradients",
                     std::array{last});
  const std::uint32_t gathered = builder.collective(
      3, data, {Collective::all_gather, mebibytes(256), Cause::exposed_data}, "weights", std::array{last});
  builder.kernel(0, Cause::optimizer, "optimizer", Picoseconds(1'000'000'000), std::array{gathered});
  builder.finish();
}

/// Tensor ranks side by side in a node, data ranks on neighbouring nodes, stages outermost.
Job training(std::uint32_t replicas) {
  Job job;
  job.name = "training";
  job.slots = slots;
  for (std::uint32_t rank = 0; rank < kTensor * replicas * kStages; ++rank) {
    job.gpu_of.emplace_back(rank);
    job.program_of.push_back(rank / (kTensor * replicas));
  }
  const auto number = [&](std::uint32_t t, std::uint32_t d, std::uint32_t s) {
    return RankId(t + kTensor * (d + replicas * s));
  };
  for (std::uint32_t s = 0; s < kStages; ++s) {
    write_stage(job, s);
    for (std::uint32_t d = 0; d < replicas; ++d) {
      std::vector<RankId> group;
      for (std::uint32_t t = 0; t < kTensor; ++t) group.push_back(number(t, d, s));
      job.add_communicator(group, std::vector<std::uint16_t>(group.size(), tensor));
    }
    for (std::uint32_t t = 0; t < kTensor; ++t) {
      std::vector<RankId> group;
      for (std::uint32_t d = 0; d < replicas; ++d) group.push_back(number(t, d, s));
      job.add_communicator(group, std::vector<std::uint16_t>(group.size(), data));
      for (std::uint32_t d = 0; d < replicas && s + 1 < kStages; ++d) {
        const std::array pair{number(t, d, s), number(t, d, s + 1)};
        job.add_communicator(pair, std::array<std::uint16_t, 2>{to_next, from_previous});
        job.add_communicator(std::array{pair[1], pair[0]}, std::array<std::uint16_t, 2>{to_previous, from_next});
      }
    }
  }
  return job;
}

void step(benchmark::State& state, bool lump) {
  const auto replicas = static_cast<std::uint32_t>(state.range(0));
  const auto cluster = fat_tree(std::int64_t{replicas} * kStages);
  const Job job = training(replicas);
  ExecutionOptions options;
  options.lump = lump;
  StepResult result;
  for (auto _ : state) {
    result = execute(job, *cluster, CommunicationModel{}, options);
    benchmark::DoNotOptimize(result);
  }
  state.counters["GPUs"] = job.ranks();
  state.counters["events"] = static_cast<double>(result.events);
  state.counters["rank_classes"] = static_cast<double>(result.lumps.rank_classes);
  state.counters["communicators"] = static_cast<double>(result.lumps.communicators);
  state.counters["communicator_classes"] = static_cast<double>(result.lumps.communicator_classes);
  state.counters["resource_classes"] = static_cast<double>(result.lumps.resource_classes);
}

void lumped_step(benchmark::State& state) { step(state, true); }
void unlumped_step(benchmark::State& state) { step(state, false); }

BENCHMARK(lumped_step)->Arg(8)->Arg(128)->Arg(1024)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(unlumped_step)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
