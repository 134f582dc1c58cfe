// Random small clusters and random jobs that cannot deadlock, all a function of one number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/programs/execute.hpp"
#include "models/programs/program.hpp"
#include "sim/random.hpp"
#include "topologies/cluster.hpp"

namespace clustersim::testing {

struct RandomRun {
  std::string description;
  std::unique_ptr<Cluster> cluster;
  CommunicationModel model;
  Job job;
};

class RandomRunBuilder {
 public:
  explicit RandomRunBuilder(std::uint64_t number) : random_(number, "random-run") {}

  /// Cluster and communication model alone; the job is left empty. Throws Infeasible for combinations that some part
  /// refuses, as build() does.
  RandomRun build_cluster() {
    prepare_cluster();
    return std::move(run_);
  }

  RandomRun build() {
    prepare_cluster();
    grid();
    communicators();
    programs();
    slow_gpu();
    return std::move(run_);
  }

 private:
  enum : std::uint16_t { tensor, data, from_previous, to_next, from_next, to_previous, world, right, left, slots };

  void prepare_cluster() {
    run_.cluster = cluster();
    run_.model = model();
    degrade_link();
  }

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool coin() { return below(2) == 0; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(choices.size()));
  }
  void say(const std::string& text) { run_.description += (run_.description.empty() ? "" : ", ") + text; }

  static Value number(std::int64_t value) {
    Value result;
    result.data = value;
    return result;
  }
  static Value table(Value::Table entries) {
    Value result;
    result.data = std::move(entries);
    return result;
  }

  NodeShape node() {
    NodeShape shape;
    shape.name = "random";
    shape.gpus = pick({1U, 2U, 4U, 8U});
    shape.interconnect = pick({"nvswitch", "full-mesh", "pcie"});
    if (shape.gpus == 8 && below(4) == 0) shape.interconnect = "hybrid-cube-mesh";
    shape.in_network_reduction = shape.interconnect == "nvswitch" && coin();
    shape.gpu_link = gigabytes_per_second(300);
    shape.gpu_link_latency = Picoseconds(pick({0, 300'000}));
    shape.nics = std::max(1U, shape.gpus / pick({1U, 2U, 4U}));
    shape.nic_rate = gigabits_per_second(200);
    shape.nic_latency = Picoseconds(pick({0, 500'000}));
    shape.cpus = shape.gpus >= 4 ? 2 : 1;
    shape.pcie_switches = shape.gpus >= 4 && coin() ? 2 : 0;
    shape.pcie_rate = gigabytes_per_second(32);
    shape.pcie_latency = Picoseconds(200'000);
    shape.cpu_link = gigabytes_per_second(60);
    say(fmt::format("{} GPUs ({}{}) and {} NICs a node", shape.gpus, shape.interconnect,
                    shape.in_network_reduction ? ", NVLS" : "", shape.nics));
    return shape;
  }

  /// A tree of two or three tiers, often with fewer parents than children, and a top tier that takes what is left.
  Value fat_tree() {
    Value tiers;
    Value::Array list;
    const std::uint64_t joints = 1 + below(2);
    std::string shape;
    for (std::uint64_t tier = 0; tier < joints; ++tier) {
      const auto down = static_cast<std::int64_t>(pick({2, 3, 4}));
      const auto up = static_cast<std::int64_t>(1 + below(static_cast<std::uint64_t>(down)));
      list.push_back(table({{"down", number(down)}, {"up", number(up)}}));
      shape += fmt::format(" {}:{}", down, up);
    }
    list.push_back(table({}));
    tiers.data = std::move(list);
    say("fat tree" + shape);
    return table({{"tiers", tiers}});
  }

  std::unique_ptr<Cluster> cluster() {
    const std::string topology = pick({"single-switch", "fat-tree", "fat-tree", "torus"});
    const FabricEntry& fabric = find_fabric(topology);
    NodeShape shape = node();
    Value written = table({});
    if (topology == "fat-tree") written = fat_tree();
    if (topology == "torus") say("torus");
    if (topology == "single-switch") say("single switch");
    const Settings settings = check_settings(written, fabric.schema, "network");
    ClusterSpec spec;
    const auto nodes = static_cast<std::int64_t>(2 + below(shape.gpus == 8 ? 3 : 7));
    spec.nodes.push_back({shape, nodes});
    spec.fabric = &fabric;
    spec.fabric_settings = &settings;
    spec.link_latency = Picoseconds(pick({0, 600'000}));
    spec.routing.policy = pick({RoutingPolicy::spread, RoutingPolicy::deterministic, RoutingPolicy::ecmp});
    spec.routing.seed = below(1000);
    spec.routing.queue_pairs = static_cast<std::uint32_t>(1 + below(4));
    say(fmt::format("{} nodes, routing {}", nodes, static_cast<int>(spec.routing.policy)));
    return std::make_unique<Cluster>(spec);
  }

  CommunicationModel model() {
    CommunicationModel result;
    if (coin()) result.scale_up_step = result.network_step = result.launch = Picoseconds(0);
    if (below(3) == 0) result.window = mebibytes(1);
    return result;
  }

  void degrade_link() {
    if (coin()) return;
    Network& network = run_.cluster->network();
    const LinkId link(static_cast<std::size_t>(below(network.links().size())));
    network.set_capacity(link, network.link(link).capacity * 0.3);
    say(fmt::format("{} at 30 %", network.link_name(link)));
  }

  /// Tensor x pipeline x data ranks, on as many GPUs as fit, placed in order, strided or shuffled.
  void grid() {
    const std::uint32_t gpus = run_.cluster->gpus();
    tensor_ = pick({1U, 2U, 4U});
    while (tensor_ > gpus) tensor_ /= 2;
    stages_ = 1 + static_cast<std::uint32_t>(below(std::min<std::uint64_t>(4, gpus / tensor_)));
    data_ = std::max(1U, gpus / (tensor_ * stages_));
    if (data_ > 1 && below(4) == 0) --data_;
    Job& job = run_.job;
    job.name = "random";
    job.slots = slots;
    std::vector<std::uint32_t> place(gpus);
    std::iota(place.begin(), place.end(), 0U);
    const std::uint64_t placement = below(3);
    if (placement == 1) std::shuffle(place.begin(), place.end(), random_);
    if (placement == 2) {
      std::stable_sort(place.begin(), place.end(), [](std::uint32_t a, std::uint32_t b) { return a % 3 < b % 3; });
    }
    for (std::uint32_t r = 0; r < tensor_ * stages_ * data_; ++r) {
      job.gpu_of.push_back(GpuId(place[r]));
      job.program_of.push_back(stage_of(r));
    }
    say(fmt::format("TP{} PP{} DP{} placed {}", tensor_, stages_, data_, placement));
  }

  [[nodiscard]] std::uint32_t rank(std::uint32_t t, std::uint32_t d, std::uint32_t s) const {
    return t + tensor_ * (d + data_ * s);
  }
  [[nodiscard]] std::uint32_t stage_of(std::uint32_t r) const { return r / (tensor_ * data_); }

  void join(const std::vector<std::uint32_t>& ranks, const std::vector<std::uint16_t>& slot_of_member) {
    std::vector<RankId> ids;
    for (const std::uint32_t r : ranks) ids.emplace_back(r);
    run_.job.add_communicator(ids, slot_of_member);
  }

  void communicators() {
    std::vector<std::uint32_t> all(run_.job.ranks());
    std::iota(all.begin(), all.end(), 0U);
    join(all, std::vector<std::uint16_t>(all.size(), world));
    for (std::uint32_t s = 0; s < stages_; ++s) {
      for (std::uint32_t d = 0; d < data_; ++d) {
        std::vector<std::uint32_t> group;
        for (std::uint32_t t = 0; t < tensor_; ++t) group.push_back(rank(t, d, s));
        join(group, std::vector<std::uint16_t>(group.size(), tensor));
      }
      for (std::uint32_t t = 0; t < tensor_; ++t) {
        std::vector<std::uint32_t> group;
        for (std::uint32_t d = 0; d < data_; ++d) group.push_back(rank(t, d, s));
        join(group, std::vector<std::uint16_t>(group.size(), data));
        for (std::uint32_t d = 0; d < data_; ++d) {
          if (data_ > 1) join({rank(t, d, s), rank(t, (d + 1) % data_, s)}, {right, left});
          if (s + 1 == stages_) continue;
          join({rank(t, d, s), rank(t, d, s + 1)}, {to_next, from_previous});
          join({rank(t, d, s + 1), rank(t, d, s)}, {to_previous, from_next});
        }
      }
    }
  }

  Operation operation(std::initializer_list<Collective> kinds, Cause cause) {
    const std::int64_t bytes = pick({1'000, 65'536, 3'000'000, 50'000'000});
    return {pick(kinds), Bytes(bytes), cause};
  }

  /// What all ranks do in one phase of the job. Every program goes through the same phases in the same order, and an
  /// instruction waits for instructions of earlier phases only. So there is always something that can go on: whatever
  /// is next in the earliest phase that is not over.
  struct Phase {
    std::uint64_t kind = 0;
    Operation operation;
    std::uint8_t stream = 0;
  };

  std::vector<Phase> phases() {
    std::vector<Phase> result(6 + below(10));
    for (Phase& phase : result) {
      phase.kind = below(6);
      phase.stream = static_cast<std::uint8_t>(below(3));
      switch (phase.kind) {
        case 0:
          phase.operation = operation({Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter},
                                      Cause::exposed_tensor);
          break;
        case 1:
          phase.operation = operation(
              {Collective::all_reduce, Collective::reduce_scatter, Collective::broadcast, Collective::all_to_all},
              Cause::exposed_data);
          break;
        case 2:
          phase.operation = operation({Collective::all_reduce, Collective::all_to_all}, Cause::exposed_other);
          break;
        default:
          phase.operation = operation({Collective::send_receive}, Cause::exposed_pipeline);
      }
    }
    return result;
  }

  void programs() {
    const std::vector<Phase> order = phases();
    for (std::uint32_t s = 0; s < stages_; ++s) {
      ProgramBuilder builder(run_.job, 5);
      std::uint32_t count = 0;  // instructions so far
      for (const Phase& phase : order) {
        const std::uint32_t earlier = count;
        const auto waits = [&] {
          std::vector<std::uint32_t> result;
          for (std::uint64_t i = below(3); earlier > 0 && i > 0; --i) {
            result.push_back(static_cast<std::uint32_t>(below(earlier)));
          }
          return result;
        };
        for (std::uint64_t i = below(4); i > 0; --i, ++count) {
          const Picoseconds time(static_cast<std::int64_t>(below(400'000'000)));
          builder.kernel(static_cast<std::uint8_t>(below(4) == 0 ? 1 : 0), Cause::compute, "kernel", time, waits());
        }
        const auto issue = [&](std::uint8_t stream, std::uint16_t slot) {
          builder.collective(stream, slot, phase.operation, "operation", waits());
          ++count;
        };
        if (phase.kind == 0) issue(phase.stream, tensor);
        if (phase.kind == 1) issue(phase.stream, data);
        if (phase.kind == 2) issue(phase.stream, world);
        if (phase.kind == 3 && s > 0) issue(phase.stream, from_previous);
        if (phase.kind == 3 && s + 1 < stages_) issue(phase.stream, to_next);
        if (phase.kind == 4 && s + 1 < stages_) issue(phase.stream, from_next);
        if (phase.kind == 4 && s > 0) issue(phase.stream, to_previous);
        if (phase.kind == 5 && data_ > 1) {
          issue(3, right);
          issue(4, left);
        }
      }
      builder.finish();
    }
  }

  void slow_gpu() {
    if (coin()) return;
    run_.job.slowdown.assign(run_.job.ranks(), 1.0);
    const std::uint64_t slow = below(run_.job.ranks());
    run_.job.slowdown[slow] = 1.37;
    say(fmt::format("rank {} slow", slow));
  }

  RandomStream random_;
  RandomRun run_;
  std::uint32_t tensor_ = 1;
  std::uint32_t stages_ = 1;
  std::uint32_t data_ = 1;
};

}  // namespace clustersim::testing
