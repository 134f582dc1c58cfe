// Question: from 32 to 512 A100s we see a linearity of 0.85; do 1,845 tokens/s per GPU and the quoted 180 TFLOP/s
// agree? https://github.com/alibaba/Megatron-LLaMA/issues/49 and that repository's README: a 13B Llama with 2,048
// tokens per sequence, nodes of 8 A100 80GB with four 200 Gb/s adapters, overlapped distributed optimizer; 1,845
// tokens/s per GPU on 512 GPUs and 0.85 of linear from 32 (so 2,170 there); 180 "model TFLOPS" on 32 GPUs at a global
// batch of 2,048.
#include "models/programs/execute.hpp"
#include "models/workloads/transformer_shape.hpp"
#include "models/workloads/workload.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

constexpr double kTokensPerGpu32 = 1845 / 0.85;
constexpr double kTokensPerGpu512 = 1845;

Cluster a100_cluster(const Catalog& catalog, std::int64_t nodes) {
  const NodeSpec& node = catalog.node("hgx-a100-4nic");
  ClusterSpec spec;
  spec.nodes = {{node.shape, nodes}};
  // How the nodes are connected is not published: assumed non-blocking, 1 us from adapter to adapter.
  static const Settings kFabricSettings =
      check_settings(Value{Value::Table{}, {}}, find_fabric("single-switch").schema, "");
  spec.fabric = &find_fabric("single-switch");
  spec.fabric_settings = &kFabricSettings;
  spec.link_latency = std::chrono::nanoseconds(500);
  return Cluster(spec);
}

double tokens_per_gpu_second(std::int64_t nodes, bool overlap_gradients) {
  const Catalog catalog = Catalog::built_in();
  const Cluster cluster = a100_cluster(catalog, nodes);
  const NodeSpec& node = catalog.node("hgx-a100-4nic");
  CommunicationModel communication;
  communication.scale_up_efficiency = node.scale_up_efficiency;
  communication.pcie_efficiency = node.pcie_efficiency;
  communication.network_efficiency = catalog.nic(node.nic).efficiency;
  const WorkloadEntry& entry = find_workload("transformer-training");
  // Tensor 4, micro-batch 4 and sequence parallel are the repository's own example for 13B; the settings of the run in
  // question are in a script that the thread links. Parameters are gathered beside the forward pass.
  const std::string toml = fmt::format(
      "model = \"llama2-13b\"\nsequence_length = 2048\nglobal_batch = 2048\nmicro_batch = 4\nzero_stage = 1\n"
      "overlap_gradients = {}\noverlap_parameters = true\nparallel = {{tensor = 4, data = {}}}\n",
      overlap_gradients, nodes * 2);
  const BuiltWorkload built = entry.build(check_settings(parse_toml(toml, "q08.toml"), entry.schema, "jobs[0]"),
                                          {cluster, catalog, communication, catalog.gpu("a100-sxm-80gb"), {}});
  const StepResult result = execute(built.job, cluster, communication, {});
  return built.figures.tokens_per_step / to_seconds(result.step_time) / static_cast<double>(built.job.ranks());
}

}  // namespace

TEST_CASE(
    "Scaling efficiency of the 13B Llama from 32 to 512 A100s is 0.85 within 0.04 where gradients are not overlapped") {
  const double at_32 = tokens_per_gpu_second(4, false);
  const double at_512 = tokens_per_gpu_second(64, false);
  CAPTURE(at_32, at_512, at_512 / at_32);
  CHECK(at_512 / at_32 == Approx(0.85).margin(0.04));
  // The absolute rates come out 14 and 15 % high: no step time of an A100 has been used to fit its sustained clock.
  CHECK(at_32 == Approx(kTokensPerGpu32).epsilon(0.2));
  CHECK(at_512 == Approx(kTokensPerGpu512).epsilon(0.2));
  // At a fixed global batch only 4 micro-batches are left at 512 GPUs; reducing gradients beside the last one's
  // backward pass would hide most of what is lost.
  CHECK(tokens_per_gpu_second(64, true) / tokens_per_gpu_second(4, true) > 0.93);
}

TEST_CASE("The 6N rule gives 169 and 144 TFLOP/s; attention, logits and recomputation explain the quoted 180") {
  const TransformerSpec& model = Catalog::built_in().transformer("llama2-13b");
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
