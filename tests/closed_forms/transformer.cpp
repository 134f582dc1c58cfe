// Sizes, FLOPs and memory of published transformers against their closed forms.
#include <map>

#include "models/workloads/memory.hpp"
#include "models/workloads/transformer_options.hpp"
#include "models/workloads/transformer_shape.hpp"
#include "tests/catch.hpp"
#include "tests/unit/models/workloads/fixture.hpp"

using namespace clustersim;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// A GPT of l layers, width h and a heads as in Narayanan et al. 2021: tied embeddings, learned positions, biases.
TransformerSpec gpt(std::int64_t l, std::int64_t h, std::int64_t a, std::int64_t vocabulary, std::int64_t s) {
  TransformerSpec model;
  model.name = "gpt";
  model.layers = l;
  model.hidden = h;
  model.heads = model.kv_heads = a;
  model.head_dim = h / a;
  model.ffn_hidden = 4 * h;
  model.gated = false;
  model.vocabulary = vocabulary;
  model.sequence_length = s;
  model.tied_embeddings = model.learned_positions = model.biases = true;
  return model;
}

TransformerSpec llama3(std::int64_t l, std::int64_t h, std::int64_t f, std::int64_t a) {
  TransformerSpec model;
  model.name = "llama3";
  model.layers = l;
  model.hidden = h;
  model.heads = a;
  model.kv_heads = 8;
  model.head_dim = h / a;
  model.ffn_hidden = f;
  model.vocabulary = 128256;
  model.sequence_length = 8192;
  return model;
}

double term(const std::vector<WorkloadFigures::FlopTerm>& terms, std::string_view name) {
  for (const auto& one : terms) {
    if (one.name == name) return one.flops.value();
  }
  throw BrokenContract(fmt::format("no term {}", name));
}

/// GPT-3 as in Korthikanti et al. 2022, table 3: micro-batch 1, dropout, scores in memory.
TransformerOptions gpt3_options(std::int64_t tensor, bool sequence_parallel, Recompute recompute) {
  TransformerOptions options;
  options.model = gpt(96, 12288, 96, 51200, 2048);
  options.sequence_length = 2048;
  options.global_batch = 64;
  options.parallel.tensor = tensor;
  options.sequence_parallel = sequence_parallel;
  options.recompute = recompute;
  options.flash_attention = false;
  options.dropout = true;
  return options;
}

double memory_item(const MemoryReport& report, std::string_view name) {
  for (const MemoryItem& item : report.items) {
    if (item.name == name) return item.bytes;
  }
  throw BrokenContract(fmt::format("no item {}", name));
}

}  // namespace

TEST_CASE("F1: GPT-3 has l(12 h^2 + 13 h) + (V + s) h + 2 h parameters") {
  constexpr double l = 96, h = 12288, V = 51200, s = 2048;
  const double count = parameter_count(gpt(96, 12288, 96, 51200, 2048));
  CHECK(count == l * (12 * h * h + 13 * h) + (V + s) * h + 2 * h);
  CHECK(count / 1e9 == Approx(174.616).margin(5e-4));
}

TEST_CASE("F2, F3, F4: parameters of Llama 3, to the last one") {
  CHECK(parameter_count(llama3(32, 4096, 14336, 32)) == 8030261248.0);
  CHECK(parameter_count(llama3(80, 8192, 28672, 64)) == 70553706496.0);
  CHECK(parameter_count(llama3(126, 16384, 53248, 128)) == 405853388800.0);
}

TEST_CASE("The catalog's Llama 3 models have those sizes too") {
  const Catalog catalog = Catalog::built_in();
  CHECK(parameter_count(catalog.transformer("llama3-8b")) == 8030261248.0);
  CHECK(parameter_count(catalog.transformer("llama3-70b")) == 70553706496.0);
  CHECK(parameter_count(catalog.transformer("llama3-405b")) == 405853388800.0);
}

TEST_CASE("The catalog's expert models have their published sizes, in all and active") {
  const Catalog catalog = Catalog::built_in();
  // DeepSeek-V3 technical report: 671B in all, 37B active per token.
  CHECK(parameter_count(catalog.transformer("deepseek-v3")) / 1e9 == Approx(671).epsilon(0.005));
  const ForwardFlops forward = forward_flops_per_token(catalog.transformer("deepseek-v3"), 4096, true);
  CHECK((forward.linear + forward.logits) / 2e9 ==
        Approx(37).epsilon(0.03));  // the embedding is active but does no FLOPs
  // Mixtral of Experts: 47B in all, 13B active.
  CHECK(parameter_count(catalog.transformer("mixtral-8x7b")) / 1e9 == Approx(46.7).epsilon(0.005));
}

TEST_CASE("F5: BLOOM with full recomputation does 96 B s l h^2 (1 + s/6h + V/16lh) FLOPs a step") {
  constexpr double B = 2048, s = 2048, l = 70, h = 14336, V = 250880;
  const auto terms = training_flops(gpt(70, 14336, 112, 250880, 2048), 2048, B * s, false, Recompute::full);
  CHECK(hardware_flops(terms).value() ==
        Approx(96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h))).epsilon(1e-12));
  CHECK(hardware_flops(terms).value() / 1e18 == Approx(6.02119).margin(5e-6));
  CHECK(model_flops(terms).value() / 1e18 == Approx(4.5385).margin(5e-5));
  // F6: at 150 TFLOP/s on 384 GPUs.
  CHECK(hardware_flops(terms).value() / (150e12 * 384) == Approx(104.535).margin(5e-4));
}

TEST_CASE("F7: the 6ND rule for BLOOM's 366e9 tokens") {
  CHECK(6 * 176.247e9 * 366e9 / 1e21 == Approx(387.038).margin(5e-4));
  // The linear and logit terms of the model are that rule without embeddings, norms, biases and with V h once.
  const TransformerSpec bloom = gpt(70, 14336, 112, 250880, 2048);
  const auto terms = training_flops(bloom, 2048, 366e9, true, Recompute::none);
  CHECK((term(terms, "linear layers") + term(terms, "logits")) / 1e21 == Approx(387.038).epsilon(0.001));
}

TEST_CASE("F8, F9: Llama 3 405B needs 2.52396 TFLOP per token of training with a causal mask") {
  const TransformerSpec model = llama3(126, 16384, 53248, 128);
  const auto terms = training_flops(model, 8192, 1, true, Recompute::none);
  CHECK(model_flops(terms).value() / 1e12 == Approx(2.52396).margin(5e-6));
  CHECK(6 * parameter_count(model) / 1e12 == Approx(2.4351).margin(5e-5));
  CHECK(400e12 / model_flops(terms).value() == Approx(158.481).margin(5e-4));
}

TEST_CASE("F10, F12: utilization is over the dense peak") {
  const Catalog catalog = Catalog::built_in();
  GpuSpec gpu = catalog.gpu("h100-sxm");
  gpu.dense_peak[static_cast<std::size_t>(DataType::bf16)] = teraflops(989);
  CHECK(model_flops_utilization(Flops(400e12), 1, gpu, DataType::bf16, 1) == Approx(0.4044).margin(5e-5));
  CHECK(model_flops_utilization(Flops(430e12), 1, gpu, DataType::bf16, 1) == Approx(0.4348).margin(5e-5));
  CHECK(model_flops_utilization(Flops(380e12 * 8), 2, gpu, DataType::bf16, 4) == Approx(0.3842).margin(5e-5));
  // The catalog's own peak is the dense one; the sparse 1,979 would give 0.202.
  CHECK(model_flops_utilization(Flops(400e12), 1, catalog.gpu("h100-sxm"), DataType::bf16, 1) ==
        Approx(0.4043).margin(5e-4));
}

TEST_CASE("F11: strong scaling from 8,192 to 16,384 GPUs is the ratio of the rates per GPU") {
  const Catalog catalog = Catalog::built_in();
  const GpuSpec& gpu = catalog.gpu("h100-sxm");
  const double small = model_flops_utilization(Flops(430e12 * 8192), 1, gpu, DataType::bf16, 8192);
  const double large = model_flops_utilization(Flops(400e12 * 16384), 1, gpu, DataType::bf16, 16384);
  CHECK(large / small == Approx(0.930233).margin(1e-6));
}

TEST_CASE("F20 - F24: activations of a GPT-3 layer (Korthikanti et al. 2022, table 2)") {
  constexpr double sbh = 2048.0 * 12288.0, five_as_h = 5.0 * 96 * 2048 / 12288;
  const auto layer = [](std::int64_t tensor, bool sequence_parallel, Recompute recompute) {
    return activation_bytes(gpt3_options(tensor, sequence_parallel, recompute), Block::dense_layer);
  };
  CHECK(layer(1, false, Recompute::none) == sbh * (34 + five_as_h));
  CHECK(layer(8, false, Recompute::none) == sbh * (10 + 24.0 / 8 + five_as_h / 8));
  CHECK(layer(8, true, Recompute::none) == sbh / 8 * (34 + five_as_h));
  CHECK(layer(8, true, Recompute::selective) == 34 * sbh / 8);
  CHECK(layer(1, false, Recompute::full) == 2 * sbh);

  CHECK(layer(1, false, Recompute::none) / kGiB == Approx(2.67188).margin(5e-6));
  CHECK(layer(8, false, Recompute::none) / kGiB == Approx(0.539062).margin(5e-7));
  CHECK(layer(8, true, Recompute::none) / kGiB == Approx(0.333984).margin(5e-7));
  CHECK(layer(8, true, Recompute::selective) / kGiB == Approx(0.0996094).margin(5e-8));
  CHECK(layer(1, false, Recompute::full) / kGiB == Approx(0.046875).margin(5e-7));
  // F25: the share that selective recomputation removes.
  CHECK(1 - layer(8, true, Recompute::selective) / layer(8, true, Recompute::none) == Approx(0.701754).margin(1e-6));
}

TEST_CASE("Fused attention keeps no scores, only a 32-bit number per row and head") {
  TransformerOptions options = gpt3_options(8, true, Recompute::none);
  options.flash_attention = true;
  constexpr double sbh = 2048.0 * 12288.0;
  CHECK(activation_bytes(options, Block::dense_layer) == 34 * sbh / 8 + 2048.0 * 96 * 4 / 8);
}

TEST_CASE("F26: selective recomputation adds x/(1 + x) of the forward pass, x = s/6h") {
  const auto terms = training_flops(gpt(96, 12288, 96, 51200, 2048), 2048, 1, false, Recompute::selective);
  const double forward = (term(terms, "linear layers") + term(terms, "attention")) / 3;
  CHECK(term(terms, "recompute") / forward == Approx(0.027027).margin(5e-7));
  // 4 s h per token and layer: 4 B s^2 h per layer.
  CHECK(term(terms, "recompute") == 4.0 * 2048 * 12288 * 96);
}

TEST_CASE("F27: the first 1F1B stage of 8 holds L layers' worth of activations") {
  TransformerOptions options = gpt3_options(8, true, Recompute::selective);
  options.parallel.pipeline = 8;
  const double activations = memory_item(stage_memory(options, 0, gibibytes(80)), "activations");
  const double embedding_mask = 8 * 2048.0 * 12288.0 / 8;  // the embedding's dropout, of 8 micro-batches in flight
  CHECK((activations - embedding_mask) / kGiB == Approx(9.5625).margin(1e-9));
}

TEST_CASE("F30: ZeRO on 7.5e9 parameters and 64 ranks (Rajbhandari et al. 2020, figure 1)") {
  constexpr StateBytes kBytes{2, 2, 12};
  const auto gigabytes = [&](std::int64_t stage) { return model_state(7.5e9, stage, 64, kBytes).total() / 1e9; };
  CHECK(gigabytes(0) == Approx(120));
  CHECK(gigabytes(1) == Approx(31.4062).margin(5e-5));
  CHECK(gigabytes(2) == Approx(16.6406).margin(5e-5));
  CHECK(gigabytes(3) == Approx(1.875));
}

TEST_CASE("F31: a step of ZeRO 0, 1 and 2 moves 2P parameters per rank, of ZeRO 3 3P, each times (N - 1)/N") {
  const Workbench bench{.cluster = one_node(8)};
  const auto [stage, expected] = GENERATE(std::pair{0, 2.0}, std::pair{1, 2.0}, std::pair{2, 2.0}, std::pair{3, 3.0});
  const BuiltWorkload built = bench.build(
      "transformer-training",
      fmt::format(
          "model = \"llama2-7b\"\nglobal_batch = 8\nsequence_length = 512\nzero_stage = {}\nworkspace = \"0 B\"\n"
          "gradient_precision = \"bf16\"\nparallel = {{data = 8}}\noptimizer_bytes = 1\n",
          stage));
  double moved = 0;  // per rank on a ring, without (N - 1)/N, in parameters of 2 bytes
  for (const Instruction& instruction : built.job.programs[0].instructions) {
    if (instruction.kind != Instruction::Kind::collective) continue;
    const Operation& operation = built.job.operations[instruction.operation];
    if (operation.exposed_as != Cause::exposed_data || operation.bytes.value() < 1000) continue;  // gradient norm
    moved +=
        (operation.collective == Collective::all_reduce ? 2.0 : 1.0) * static_cast<double>(operation.bytes.value()) / 2;
  }
  CHECK(moved / built.figures.parameters == Approx(expected).epsilon(1e-9));
}

TEST_CASE("F32, F33, F34: a checkpoint has 14 bytes per parameter") {
  CHECK(checkpoint_bytes(parameter_count(llama3(32, 4096, 14336, 32))) / kGiB == Approx(104.703).margin(5e-4));
  CHECK(checkpoint_bytes(176.247e9) / 1e12 == Approx(2.46746).margin(5e-6));
  CHECK(checkpoint_bytes(parameter_count(llama3(126, 16384, 53248, 128))) / 1e12 == Approx(5.68195).margin(5e-6));
}
