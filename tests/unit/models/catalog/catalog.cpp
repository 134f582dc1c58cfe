// The catalog: every built-in entry is complete and sourced, names are found, users can add, vary and replace entries.
#include "models/catalog/catalog.hpp"

#include <set>
#include <string>

#include "models/catalog/schemas.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

const Catalog& built_in() {
  static const Catalog catalog = Catalog::built_in();
  return catalog;
}

const std::map<std::string, Provenance>& provenance(const Catalog::Entry& entry) {
  const Catalog& catalog = built_in();
  if (entry.kind == "gpu") return catalog.gpu(entry.name).provenance;
  if (entry.kind == "nic") return catalog.nic(entry.name).provenance;
  if (entry.kind == "switch") return catalog.network_switch(entry.name).provenance;
  if (entry.kind == "node") return catalog.node(entry.name).provenance;
  return catalog.transformer(entry.name).provenance;
}

/// Adds `text` as a file to a copy of the built-in catalog; returns what is wrong with it, "" when nothing.
std::string add_error(std::string_view text) {
  const TemporaryFolder folder;
  Catalog catalog = built_in();
  return message_of<BadInput>([&] { catalog.add_file(folder.write("mine.toml", text)); });
}

Catalog with(std::string_view text) {
  const TemporaryFolder folder;
  Catalog catalog = built_in();
  catalog.add_file(folder.write("mine.toml", text));
  return catalog;
}

constexpr std::string_view kSmallGpu =
    "[gpu.toy]\n"
    "title = \"Toy\"\n"
    "vendor = \"Nobody\"\n"
    "architecture = \"Toy\"\n"
    "dense_peak_bf16 = \"100 TFLOP/s\"\n"
    "memory = \"16 GiB\"\n"
    "memory_bandwidth = \"1000 GB/s\"\n"
    "compute_units = 10\n"
    "pcie = \"31.5 GB/s\"\n";

}  // namespace

TEST_CASE("Every figure of every built-in entry has a source or is marked as an assumption with its reason") {
  std::set<std::string> kinds;
  for (const Catalog::Entry& entry : built_in().entries()) {
    kinds.insert(entry.kind);
    INFO(entry.kind << " " << entry.name);
    CHECK_FALSE(entry.title.empty());
    CHECK_FALSE(provenance(entry).empty());
    for (const auto& [key, from] : provenance(entry)) {
      INFO(key << ": " << from.source);
      CHECK(from.source.size() >= 8);
      CHECK((from.assumed || from.source.find("recalled") == std::string::npos));
    }
  }
  CHECK(kinds == std::set<std::string>{"gpu", "nic", "switch", "node", "model"});
}

TEST_CASE("Built-in GPUs are physically sensible") {
  for (const Catalog::Entry& entry : built_in().entries()) {
    if (entry.kind != "gpu") continue;
    const GpuSpec& gpu = built_in().gpu(entry.name);
    INFO(entry.name);
    CHECK(gpu.peak(DataType::fp16) + gpu.peak(DataType::bf16) > FlopRate(0));
    CHECK(gpu.peak(DataType::fp32) <= gpu.peak(DataType::fp16) + gpu.peak(DataType::bf16));
    CHECK(gpu.memory > gibibytes(1));
    CHECK(gpu.memory < gibibytes(1024));
    CHECK(gpu.memory_bandwidth > gigabytes_per_second(100));
    CHECK(gpu.memory_bandwidth < gigabytes_per_second(20000));
    CHECK(gpu.scale_up < gpu.memory_bandwidth);
    CHECK(gpu.idle <= gpu.tdp);
  }
}

TEST_CASE("Built-in nodes can be built, and their NICs and GPUs exist") {
  for (const Catalog::Entry& entry : built_in().entries()) {
    if (entry.kind != "node") continue;
    const NodeSpec& node = built_in().node(entry.name);
    INFO(entry.name);
    CHECK(node.shape.gpu_link <= built_in().gpu(node.gpu).scale_up);
    CHECK(node.shape.nic_rate > Rate(0));
    if (node.shape.nics > 0) CHECK(node.shape.nic_rate == built_in().nic(node.nic).rate);
    const NodeTemplate built(node.shape);
    CHECK(built.shape().gpus == node.shape.gpus);
  }
}

TEST_CASE("Well-known figures are what their data sheets say") {
  const GpuSpec& h100 = built_in().gpu("h100-sxm");
  CHECK(h100.peak(DataType::bf16) == teraflops(989.4));
  CHECK(h100.peak(DataType::fp8) == teraflops(1978.9));
  CHECK(h100.peak(DataType::fp4) == FlopRate(0));
  CHECK(h100.memory == gibibytes(80));
  CHECK(h100.memory_bandwidth == gigabytes_per_second(3350));
  CHECK(h100.compute_units == 132);
  CHECK(h100.scale_up == gigabytes_per_second(450));
  CHECK(h100.tdp == Watts(700));
  CHECK_FALSE(h100.provenance.at("tdp").assumed);
  CHECK(built_in().gpu("a100-sxm-80gb").peak(DataType::fp8) == FlopRate(0));
  CHECK(built_in().nic("connectx-7").rate == gigabits_per_second(400));
  CHECK(built_in().network_switch("qm9700").ports == 64);
  const NodeSpec& dgx = built_in().node("dgx-h100");
  CHECK(dgx.shape.gpus == 8);
  CHECK(dgx.shape.nics == 8);
  CHECK(dgx.shape.nic_rate == gigabits_per_second(400));
  CHECK(dgx.shape.gpu_link == gigabytes_per_second(450));
  CHECK(dgx.shape.in_network_reduction);
  CHECK(built_in().node("tpu-v4-host").shape.nics == 0);
  const TransformerSpec& llama = built_in().transformer("llama3-405b");
  CHECK(llama.head_dim == 128);
  CHECK(llama.kv_heads == 8);
  CHECK(built_in().transformer("gpt3-175b").kv_heads == 96);  // left out: as many as heads
}

TEST_CASE("Data types have names and sizes") {
  for (std::size_t i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    CHECK(parse_data_type(name(type)) == type);
  }
  CHECK(element_size(DataType::bf16) == 2);
  CHECK(element_size(DataType::fp4) == 0.5);
  CHECK(contains(message_of<BadInput>([] { (void)parse_data_type("bf61"); }), "did you mean \"bf16\"?"));
}

TEST_CASE("An unknown name is answered with the nearest one and the place where it was written") {
  const auto ask = [](auto&& action) { return message_of<BadInput>(action); };
  CHECK(contains(ask([] { (void)built_in().gpu("h100-sxn", {"s.toml", 7}); }), "s.toml:7"));
  CHECK(contains(ask([] { (void)built_in().gpu("h100-sxn"); }), "did you mean \"h100-sxm\"?"));
  CHECK(contains(ask([] { (void)built_in().nic("conectx-7"); }), "did you mean \"connectx-7\"?"));
  CHECK(contains(ask([] { (void)built_in().network_switch("qm970"); }), "did you mean \"qm9700\"?"));
  CHECK(contains(ask([] { (void)built_in().node("dgx-h10"); }), "did you mean"));
  CHECK(contains(ask([] { (void)built_in().transformer("llama3-40b"); }), "did you mean"));
  CHECK(contains(ask([] { (void)built_in().describe("dgx-h1000"); }), "did you mean \"dgx-h100\"?"));
}

TEST_CASE("A user's entry needs no sources, and its defaults count as assumptions") {
  const Catalog catalog = with(kSmallGpu);
  const GpuSpec& toy = catalog.gpu("toy");
  CHECK(toy.peak(DataType::bf16) == teraflops(100));
  CHECK(toy.peak(DataType::fp8) == FlopRate(0));
  CHECK(toy.provenance.at("memory").source.empty());
  CHECK_FALSE(toy.provenance.at("memory").assumed);
  CHECK(toy.provenance.at("gemm_efficiency").assumed);
  CHECK(contains(catalog.describe("toy"), "no source given"));
}

TEST_CASE("`like` takes over what an entry does not say, with where it came from") {
  const Catalog catalog = with(
      "[gpu.my-h100]\nlike = \"h100-sxm\"\ntitle = \"Mine\"\ntdp = \"500 W\"\n"
      "sources = {tdp = \"my own meter\"}\nassumptions = {idle = \"not measured\"}\n");
  const GpuSpec& mine = catalog.gpu("my-h100");
  const GpuSpec& base = catalog.gpu("h100-sxm");
  CHECK(mine.title == "Mine");
  CHECK(mine.tdp == Watts(500));
  CHECK(mine.memory == base.memory);
  CHECK(mine.provenance.at("tdp").source == "my own meter");
  CHECK(mine.provenance.at("memory").source == base.provenance.at("memory").source);
  CHECK(mine.idle == base.idle);
  CHECK(mine.provenance.at("idle").assumed);
  CHECK(base.tdp == Watts(700));
}

TEST_CASE("Entries may be like one another in any order, also like the entry that they replace") {
  const Catalog catalog = with(
      "[gpu.b]\nlike = \"a\"\nidle = \"1 W\"\n"
      "[gpu.a]\nlike = \"h100-sxm\"\ntdp = \"10 W\"\n"
      "[gpu.h100-sxm]\nlike = \"h100-sxm\"\npcie = \"10 GB/s\"\n");
  CHECK(catalog.gpu("b").tdp == Watts(10));
  CHECK(catalog.gpu("b").pcie == gigabytes_per_second(10));
  // A node takes its rates from the GPU as it is now.
  CHECK(catalog.node("dgx-h100").shape.pcie_rate == gigabytes_per_second(10));
  CHECK(built_in().node("dgx-h100").shape.pcie_rate == gigabytes_per_second(63));
  CHECK(contains(add_error("[gpu.x]\nlike = \"y\"\n[gpu.y]\nlike = \"x\"\n"), "circle"));
  CHECK(contains(add_error("[gpu.x]\nlike = \"h100-sx\"\n"), "mine.toml:2 like = \"h100-sx\""));
}

TEST_CASE("A wrong entry is refused with file, line, key and what was expected") {
  const std::string toy(kSmallGpu);
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string text = toy;
    text.replace(text.find(from), from.size(), to);
    return add_error(text);
  };
  CHECK(add_error(toy).empty());
  CHECK(contains(add_error("[gpus.x]\n"), "did you mean \"gpu\"?"));
  CHECK(contains(add_error("gpu = 3\n"), "expected a table"));
  CHECK(contains(add_error("[gpu]\nx = 3\n"), "expected a table"));
  CHECK(contains(add_error("[gpu.\"a/b\"]\n"), "no '/'"));
  CHECK(contains(replaced("memory =", "memry ="), "mine.toml:6"));
  CHECK(contains(replaced("memory =", "memry ="), "did you mean \"memory\"?"));
  CHECK(contains(replaced("\"16 GiB\"", "16"), "mine.toml:6"));
  CHECK(contains(replaced("compute_units = 10", "compute_units = 0"), "compute_units"));
  CHECK(contains(replaced("vendor = \"Nobody\"\n", ""), "vendor"));
  CHECK(contains(replaced("dense_peak_bf16 = \"100 TFLOP/s\"\n", ""), "no peak at all"));
  CHECK(contains(add_error(toy + "sources = 3\n"), "expected a table"));
  CHECK(contains(add_error(toy + "sources = {memory = 3}\n"), "expected text"));
  CHECK(contains(add_error(toy + "sources = {memry = \"x\"}\n"), "did you mean \"memory\"?"));
  CHECK(contains(add_error(toy + "sources = {idle = \"x\"}\n"), "no figure \"idle\""));
  CHECK(contains(add_error(toy + "sources = {memory = \"x\"}\nassumptions = {memory = \"y\"}\n"), "same key"));
  CHECK(contains(add_error(toy + "sources = {default = \"x\"}\nassumptions = {default = \"y\"}\n"), "a default both"));
}

TEST_CASE("A wrong node is refused") {
  const auto node = [](std::string_view keys) {
    return add_error("[node.n]\ntitle = \"N\"\ngpu = \"h100-sxm\"\ngpus = 4\ncpus = 1\n" + std::string(keys));
  };
  CHECK(node("interconnect = \"nvswitch\"\nnic = \"connectx-7\"\nnics = 2\n").empty());
  CHECK(contains(node("interconnect = \"nvswich\"\nnics = 0\n"), "did you mean \"nvswitch\"?"));
  CHECK(contains(node("interconnect = \"nvswitch\"\nnic = \"connectx-77\"\nnics = 2\n"), "mine.toml:7"));
  CHECK(contains(node("interconnect = \"nvswitch\"\nnics = 2\n"), "nic = \"...\""));
  CHECK(contains(node("interconnect = \"nvswitch\"\nnic = \"connectx-7\"\nnics = 0\n"), "nics = 0"));
  CHECK(contains(node("interconnect = \"nvswitch\"\nnic = \"connectx-7\"\nnics = 2\nfabric_rate = \"1 GB/s\"\n"),
                 "only for nics = 0"));
  const std::string two = "interconnect = \"nvswitch\"\nnic = \"connectx-7\"\nnics = 2\n";
  CHECK(node(two + "nic_of_gpu = [0, 1, 1, 0]\n").empty());
  CHECK(contains(node(two + "nic_of_gpu = [0, 1]\n"), "2 numbers for 4 GPUs"));
  CHECK(contains(node(two + "nic_of_gpu = [0, 1, 2, 0]\n"), "NIC 2 of 2"));
}

TEST_CASE("A wrong model is refused") {
  const auto model = [](std::string_view keys) {
    return add_error(
        "[model.m]\ntitle = \"M\"\nlayers = 2\nhidden = 64\nffn_hidden = 256\nvocabulary = 100\nsequence_length = "
        "16\n" +
        std::string(keys));
  };
  CHECK(model("heads = 4\n").empty());
  CHECK(contains(model("heads = 5\n"), "does not divide hidden"));
  CHECK(model("heads = 5\nhead_dim = 16\n").empty());
  CHECK(contains(model("heads = 4\nkv_heads = 3\n"), "does not divide heads"));
  CHECK(contains(model("heads = 4\nexperts_per_token = 2\n"), "give experts"));
  CHECK(contains(model("heads = 4\nexperts = 4\nexperts_per_token = 5\nexpert_ffn_hidden = 8\n"), "1 to 4"));
  CHECK(contains(model("heads = 4\nexperts = 4\nexperts_per_token = 2\n"), "expert_ffn_hidden"));
  CHECK(contains(model("heads = 4\nv_head_dim = 16\n"), "kv_lora_rank"));
  CHECK(contains(model("heads = 4\nkv_lora_rank = 16\n"), "rope_head_dim"));
}

TEST_CASE("A transformer can be written without a title, as an inline table of a scenario") {
  const Value table = parse_toml(
      "layers = 2\nhidden = 64\nheads = 4\nffn_hidden = 256\nvocabulary = 100\nsequence_length = 16\n", "s.toml");
  const TransformerSpec model = read_transformer(table, "inline");
  CHECK(model.name == "inline");
  CHECK(model.head_dim == 16);
  CHECK(contains(message_of<BadInput>([] { (void)read_transformer(parse_toml("layer = 2\n", "s.toml"), "inline"); }),
                 "s.toml:1"));
}

TEST_CASE("describe lists each figure with its unit, its source and whether it is assumed") {
  const std::string text = built_in().describe("h100-sxm");
  CHECK(contains(text, "989.4 TFLOP/s"));
  CHECK(contains(text, "700 W"));
  CHECK(contains(text, "[1]"));
  CHECK(contains(text, "assumed"));
  CHECK(contains(text, "https://"));
  CHECK(contains(built_in().describe("node/dgx-h100"), "450 GB/s (of h100-sxm)"));
  for (const Catalog::Entry& entry : built_in().entries())
    CHECK(contains(built_in().describe(entry.name), entry.title));
}

TEST_CASE("Every catalog key has a line of help, and defaults are within range") {
  for (const EntryKind& kind : entry_kinds()) {
    for (const Parameter& parameter : kind.schema) {
      INFO(kind.name << "." << parameter.name);
      CHECK(parameter.help.size() > 3);
      CHECK_FALSE((parameter.required && !parameter.default_text.empty()));
    }
  }
}
