// The schemas of catalog entries: every key with its unit, meaning and range.
#include "models/catalog/schemas.hpp"

#include <algorithm>
#include <array>

namespace clustersim {
namespace {

using enum ValueKind;

constexpr Parameter kTitle{.name = "title", .kind = text, .help = "full product name", .required = true};
constexpr Parameter kSources{
    .name = "sources", .kind = any, .help = "where each figure was read: default = \"...\", or per key"};
constexpr Parameter kAssumptions{
    .name = "assumptions", .kind = any, .help = "figures that are recalled or guessed, with the reason, per key"};

constexpr Parameter peak(std::string_view key, std::string_view help) {
  return {.name = key, .kind = flop_rate, .help = help, .minimum = 0};
}

constexpr Parameter share(std::string_view key, std::string_view default_text, std::string_view help) {
  return {.name = key, .kind = number, .default_text = default_text, .help = help, .minimum = 0.01, .maximum = 1};
}

constexpr std::array kGpu{
    kTitle,
    Parameter{.name = "vendor", .kind = text, .help = "maker", .required = true},
    Parameter{.name = "architecture", .kind = text, .help = "the maker's name of the generation", .required = true},
    peak("dense_peak_fp64", "dense peak, 64-bit floats (matrix units where there are any)"),
    peak("dense_peak_fp32", "dense peak, 32-bit floats"),
    peak("dense_peak_tf32", "dense peak, TF32 matrix units"),
    peak("dense_peak_bf16", "dense peak, bfloat16 matrix units"),
    peak("dense_peak_fp16", "dense peak, 16-bit float matrix units"),
    peak("dense_peak_fp8", "dense peak, 8-bit float matrix units"),
    peak("dense_peak_int8", "dense peak, 8-bit integer matrix units (operations/s)"),
    peak("dense_peak_fp4", "dense peak, 4-bit float matrix units"),
    Parameter{.name = "memory", .kind = bytes, .help = "device memory", .required = true, .minimum = 1e6},
    Parameter{
        .name = "memory_bandwidth", .kind = rate, .help = "device memory bandwidth", .required = true, .minimum = 1e6},
    Parameter{.name = "l2_cache", .kind = bytes, .help = "last-level cache on the die", .minimum = 0},
    Parameter{.name = "compute_units",
              .kind = integer,
              .help = "SMs, CUs, tensor cores: what one GEMM tile runs on",
              .required = true,
              .minimum = 1,
              .maximum = 1e6},
    Parameter{.name = "scale_up",
              .kind = rate,
              .default_text = "0 B/s",
              .help = "all scale-up links of one GPU, per direction",
              .minimum = 0},
    Parameter{.name = "pcie", .kind = rate, .help = "host slot, per direction", .required = true, .minimum = 0},
    Parameter{.name = "tdp", .kind = watts, .help = "board power limit", .minimum = 0},
    Parameter{.name = "idle", .kind = watts, .help = "power of an empty GPU", .minimum = 0},
    share("gemm_efficiency", "0.8", "share of dense peak on large, perfectly tiled GEMMs"),
    share("memory_efficiency", "0.9", "share of memory bandwidth on large streams"),
    share("attention_efficiency", "0.5", "share of dense peak in fused attention, forward, long sequences"),
    Parameter{.name = "tile_m",
              .kind = integer,
              .default_text = "128",
              .help = "largest GEMM output tile of one compute unit, rows",
              .minimum = 1,
              .maximum = 65536},
    Parameter{.name = "tile_n",
              .kind = integer,
              .default_text = "128",
              .help = "largest GEMM output tile of one compute unit, columns",
              .minimum = 1,
              .maximum = 65536},
    Parameter{.name = "ramp_depth",
              .kind = number,
              .default_text = "128",
              .help = "inner dimension k spent once per tile on filling and draining its pipeline",
              .minimum = 0,
              .maximum = 1e6},
    Parameter{.name = "sustained_clock",
              .kind = number,
              .default_text = "1",
              .help = "clock held through hours of training over that of a short kernel benchmark",
              .minimum = 0.1,
              .maximum = 1},
    Parameter{.name = "launch",
              .kind = duration,
              .default_text = "4 us",
              .help = "fixed cost of a kernel on a busy stream",
              .minimum = 0,
              .maximum = 1},
    Parameter{.name = "ramp_bytes",
              .kind = bytes,
              .default_text = "1 MB",
              .help = "stream size that reaches half the sustained memory bandwidth, launch apart",
              .minimum = 0,
              .maximum = 1e12},
    kSources,
    kAssumptions,
};

constexpr std::array<std::string_view, 3> kLinkKinds{"infiniband", "ethernet", "torus-link"};

constexpr std::array kNic{
    kTitle,
    Parameter{.name = "kind", .kind = choice, .help = "network it plugs into", .required = true, .choices = kLinkKinds},
    Parameter{.name = "rate", .kind = rate, .help = "line rate, per direction", .required = true, .minimum = 1},
    Parameter{.name = "latency",
              .kind = duration,
              .help = "one way through the adapter",
              .required = true,
              .minimum = 0,
              .maximum = 1},
    share("efficiency", "0.97", "payload share of the line rate on large messages"),
    kSources,
    kAssumptions,
};

constexpr std::array kSwitch{
    kTitle,
    Parameter{.name = "kind", .kind = choice, .help = "network it serves", .required = true, .choices = kLinkKinds},
    Parameter{
        .name = "ports", .kind = integer, .help = "ports at port_rate", .required = true, .minimum = 2, .maximum = 1e5},
    Parameter{.name = "port_rate",
              .kind = rate,
              .help = "line rate of a port, per direction",
              .required = true,
              .minimum = 1},
    Parameter{.name = "latency",
              .kind = duration,
              .help = "port to port, per hop",
              .required = true,
              .minimum = 0,
              .maximum = 1},
    Parameter{.name = "in_network_reduction",
              .kind = boolean,
              .default_text = "false",
              .help = "reduces and multicasts (SHARP)"},
    Parameter{.name = "power", .kind = watts, .help = "typical power, modules apart", .minimum = 0},
    kSources,
    kAssumptions,
};

constexpr std::array kNode{
    kTitle,
    Parameter{.name = "gpu", .kind = text, .help = "catalog name of its GPUs", .required = true},
    Parameter{
        .name = "gpus", .kind = integer, .help = "GPUs in one node", .required = true, .minimum = 1, .maximum = 4096},
    Parameter{.name = "interconnect", .kind = text, .help = "how the GPUs are joined", .required = true},
    Parameter{.name = "gpu_link",
              .kind = rate,
              .help = "all scale-up links of one GPU, per direction (default: the GPU's scale_up)",
              .minimum = 0},
    Parameter{.name = "gpu_link_latency",
              .kind = duration,
              .default_text = "0.3 us",
              .help = "one scale-up link, switch included",
              .minimum = 0,
              .maximum = 1},
    Parameter{.name = "in_network_reduction",
              .kind = boolean,
              .default_text = "false",
              .help = "the scale-up switches reduce and multicast (NVLS)"},
    Parameter{.name = "nic", .kind = text, .help = "catalog name of its NICs; left out when nics = 0"},
    Parameter{.name = "nics",
              .kind = integer,
              .help = "compute NICs; 0: the fabric attaches to the GPUs themselves",
              .required = true,
              .minimum = 0,
              .maximum = 4096},
    Parameter{
        .name = "fabric_rate", .kind = rate, .help = "nics = 0: one fabric link of a GPU, per direction", .minimum = 0},
    Parameter{.name = "fabric_latency",
              .kind = duration,
              .help = "nics = 0: one way through the GPU's fabric port",
              .minimum = 0,
              .maximum = 1},
    Parameter{.name = "cpus", .kind = integer, .help = "CPU sockets", .required = true, .minimum = 0, .maximum = 4096},
    Parameter{.name = "pcie_switches",
              .kind = integer,
              .default_text = "0",
              .help = "0: GPUs and NICs hang on the CPUs' root ports",
              .minimum = 0,
              .maximum = 4096},
    Parameter{
        .name = "pcie_rate", .kind = rate, .help = "x16 slot, per direction (default: the GPU's pcie)", .minimum = 1},
    Parameter{.name = "pcie_latency",
              .kind = duration,
              .default_text = "0.3 us",
              .help = "one PCIe hop",
              .minimum = 0,
              .maximum = 1},
    Parameter{.name = "cpu_link",
              .kind = rate,
              .default_text = "60 GB/s",
              .help = "between sockets, per direction",
              .minimum = 0},
    Parameter{.name = "nic_of_gpu",
              .kind = integers,
              .help = "nearest NIC of each GPU (default: spread evenly)",
              .minimum = 0},
    Parameter{.name = "host_memory", .kind = bytes, .help = "CPU memory", .minimum = 0},
    Parameter{.name = "max_power", .kind = watts, .help = "maximum power of the node", .minimum = 0},
    share("scale_up_efficiency", "0.8", "payload share of the scale-up line rate on large messages"),
    share("pcie_efficiency", "0.85", "payload share of the PCIe line rate on large messages"),
    kSources,
    kAssumptions,
};

constexpr Parameter count(std::string_view key, std::string_view help) {
  return {.name = key, .kind = integer, .help = help, .required = true, .minimum = 1, .maximum = 1e9};
}
constexpr Parameter optional_count(std::string_view key, std::string_view help) {
  return {.name = key, .kind = integer, .default_text = "0", .help = help, .minimum = 0, .maximum = 1e9};
}
constexpr Parameter flag(std::string_view key, std::string_view default_text, std::string_view help) {
  return {.name = key, .kind = boolean, .default_text = default_text, .help = help};
}

constexpr std::array kModel{
    kTitle,
    count("layers", "decoder layers"),
    count("hidden", "model width"),
    count("heads", "attention (query) heads"),
    optional_count("kv_heads", "key-value heads; 0: as many as heads"),
    optional_count("head_dim", "width of a head; 0: hidden / heads"),
    count("ffn_hidden", "inner width of a dense layer's feed-forward block"),
    flag("gated", "true", "SwiGLU (three matrices) rather than GELU (two)"),
    count("vocabulary", "rows of the embedding"),
    count("sequence_length", "trained length"),
    flag("tied_embeddings", "false", "the output projection is the embedding"),
    flag("learned_positions", "false", "a position embedding of sequence_length rows"),
    flag("biases", "false", "linear layers with bias, LayerNorm with shift"),
    optional_count("experts", "routed experts of a layer; 0: dense"),
    optional_count("experts_per_token", "routed experts that see a token"),
    optional_count("shared_experts", "experts that see every token"),
    optional_count("expert_ffn_hidden", "inner width of one expert"),
    optional_count("dense_layers", "leading layers without experts"),
    optional_count("kv_lora_rank", "latent attention: rank of the key-value projection; 0: ordinary attention"),
    optional_count("q_lora_rank", "latent attention: rank of the query projection"),
    optional_count("rope_head_dim", "latent attention: rotary part of a head"),
    optional_count("v_head_dim", "latent attention: value part of a head"),
    kSources,
    kAssumptions,
};

constexpr std::array<EntryKind, 5> kKinds{{
    {"gpu", "gpus", kGpu, true},
    {"nic", "nics", kNic, true},
    {"switch", "switches", kSwitch, true},
    {"node", "nodes", kNode, true},
    {"model", "models", kModel, false},
}};

}  // namespace

std::span<const EntryKind> entry_kinds() { return kKinds; }

bool is_label(std::string_view key) {
  constexpr std::array<std::string_view, 6> kLabels{"title", "vendor",  "architecture",
                                                    "like",  "sources", "assumptions"};
  return std::find(kLabels.begin(), kLabels.end(), key) != kLabels.end();
}

}  // namespace clustersim
