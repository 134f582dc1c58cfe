// Question: from 32 to 512 A100s we see a linearity of 0.85; do 1,845 tokens/s per GPU and the quoted 180 TFLOP/s
// agree? https://github.com/alibaba/Megatron-LLaMA/issues/49 and that repository's README: a 13B Llama, 2,048 tokens
// per sequence, nodes of 8 A100 80GB with four 200 Gb/s adapters. With its overlapped distributed optimizer 1,890
// tokens/s per GPU on 256 GPUs and 1,845 on 512, 0.85 of linear from 32 (so 2,170 there); with Megatron-LM's
// distributed optimizer "around 0.7". 180 "model TFLOPS" on 32 GPUs at a global batch of 2,048 sequences.
#include "models/programs/execute.hpp"
#include "models/workloads/transformer_shape.hpp"
#include "models/workloads/workload.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

constexpr double kTokensPerGpu32 = 1845 / 0.85;
constexpr double kTokensPerGpu256 = 1890;
constexpr double kTokensPerGpu512 = 1845;

/// What is not published, and fitted.
struct Fit {
  double slowdown = 1;            // of all kernels, against the catalog's A100
  double network_efficiency = 1;  // of the adapters' line rate, in collectives over many nodes
};

Cluster a100_cluster(const Catalog& catalog, std::int64_t nodes) {
  ClusterSpec spec;
  spec.nodes = {{catalog.node("hgx-a100-4nic").shape, nodes}};
  // How the nodes are connected is not published: assumed non-blocking, 1 us from adapter to adapter.
  static const Settings kFabricSettings =
      check_settings(Value{Value::Table{}, {}}, find_fabric("single-switch").schema, "");
  spec.fabric = &find_fabric("single-switch");
  spec.fabric_settings = &kFabricSettings;
  spec.link_latency = std::chrono::nanoseconds(500);
  return Cluster(spec);
}

/// Tensor 2, pipeline 1, micro-batch 4, selective recomputation and fused attention are the repository's script as
/// quoted in its issues 11 and 27. The overlapped optimizer scatters every micro-batch's gradients during the backward
/// pass (README, procedure a) and gathers parameters after the update (procedures b and c); Megatron-LM's does both
/// after the last micro-batch.
double tokens_per_gpu_second(std::int64_t gpus, bool overlapped, const Fit& fit) {
  const Catalog catalog = Catalog::built_in();
  const Cluster cluster = a100_cluster(catalog, gpus / 8);
  const NodeSpec& node = catalog.node("hgx-a100-4nic");
  CommunicationModel communication;
  communication.scale_up_efficiency = node.scale_up_efficiency;
  communication.pcie_efficiency = node.pcie_efficiency;
  communication.network_efficiency = fit.network_efficiency;
  const WorkloadEntry& entry = find_workload("transformer-training");
  const std::string toml = fmt::format(
      "model = \"llama2-13b\"\nsequence_length = 2048\nglobal_batch = 2048\nmicro_batch = 4\nrecompute = "
      "\"selective\"\n"
      "zero_stage = {}\noverlap_gradients = {}\noverlap_parameters = false\nparallel = {{tensor = 2, data = {}}}\n",
      overlapped ? 2 : 1, overlapped, gpus / 2);
  const std::vector<double> slowdown(static_cast<std::size_t>(gpus), fit.slowdown);
  const BuiltWorkload built = entry.build(check_settings(parse_toml(toml, "q08.toml"), entry.schema, "jobs[0]"),
                                          {cluster, catalog, communication, catalog.gpu("a100-sxm-80gb"), slowdown});
  const StepResult result = execute(built.job, cluster, communication, {});
  return built.figures.tokens_per_step / to_seconds(result.step_time) / static_cast<double>(gpus);
}

double linearity(std::int64_t gpus, bool overlapped, const Fit& fit) {
  return tokens_per_gpu_second(gpus, overlapped, fit) / tokens_per_gpu_second(32, overlapped, fit);
}

/// The kernels' speed from the 32-GPU row, the network's from the linearity of the optimizer that overlaps nothing.
Fit fit_rows() {
  Fit fit;
  double low = 0.1;
  double high = 1;
  for (int i = 0; i < 12; ++i) {
    fit.network_efficiency = (low + high) / 2;
    fit.slowdown *= tokens_per_gpu_second(32, true, fit) / kTokensPerGpu32;
    (linearity(512, false, fit) < 0.7 ? low : high) = fit.network_efficiency;
  }
  return fit;
}

}  // namespace

TEST_CASE("The overlapped optimizer's scaling efficiency from 32 to 512 A100s is 0.85 within 0.04") {
  const Fit fit = fit_rows();
  const double at_32 = tokens_per_gpu_second(32, true, fit);
  const double at_256 = tokens_per_gpu_second(256, true, fit);
  const double at_512 = tokens_per_gpu_second(512, true, fit);
  CAPTURE(fit.slowdown, fit.network_efficiency, at_32, at_256, at_512, at_512 / at_32);
  // The fits hold, with values that are possible: A100 kernels within a third of the catalog's, a network below line
  // rate.
  REQUIRE(at_32 == Approx(kTokensPerGpu32).epsilon(0.01));
  REQUIRE(linearity(512, false, fit) == Approx(0.7).margin(0.005));
  REQUIRE(fit.slowdown == Approx(1).margin(0.33));
  REQUIRE(fit.network_efficiency < 0.97);
  // Predictions.
  CHECK(at_512 / at_32 == Approx(0.85).margin(0.04));
  CHECK(at_512 == Approx(kTokensPerGpu512).epsilon(0.05));
  CHECK(at_256 == Approx(kTokensPerGpu256).epsilon(0.08));
}

TEST_CASE("The 6N rule gives 169 and 144 TFLOP/s; attention, logits and recomputation explain the quoted 180") {
  const Catalog catalog = Catalog::built_in();
  const TransformerSpec& model = catalog.transformer("llama2-13b");
  // The thread's own arithmetic takes 13e9 parameters.
  CHECK(kTokensPerGpu32 * 6 * 13e9 / 1e12 == Approx(169).margin(0.5));
  CHECK(kTokensPerGpu512 * 6 * 13e9 / 1e12 == Approx(144).margin(0.5));
  CHECK(parameter_count(model) / 1e9 == Approx(13).epsilon(0.002));

  // Megatron's count takes the whole score matrix (Narayanan et al. 2021, appendix), hence causal = false.
  const auto terms = training_flops(model, 2048, kTokensPerGpu32, false, Recompute::selective);
  REQUIRE(terms.size() == 4);
  const auto teraflops_of = [&](std::size_t i) { return terms[i].flops.value() / 1e12; };
  CHECK(terms[0].name == "linear layers");
  CHECK(teraflops_of(0) == Approx(165.2).margin(0.1));
  CHECK(terms[1].name == "attention");
  CHECK(teraflops_of(1) == Approx(10.9).margin(0.1));
  CHECK(terms[2].name == "logits");
  CHECK(teraflops_of(2) == Approx(2.1).margin(0.1));
  CHECK(terms[3].name == "recompute");
  CHECK(teraflops_of(3) == Approx(3.6).margin(0.1));
  // Without and with attention recomputed: 178 and 182, around the quoted 180.
  CHECK(model_flops(terms).value() / 1e12 < 180);
  CHECK(hardware_flops(terms).value() / 1e12 > 180);
  CHECK(model_flops(terms).value() / 1e12 == Approx(180).epsilon(0.015));
}
