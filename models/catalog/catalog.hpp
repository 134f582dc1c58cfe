// Hardware and model figures as data: TOML entries with a source for every figure, no product knowledge in code.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/settings.hpp"
#include "sim/units.hpp"
#include "topologies/node.hpp"

namespace clustersim {

enum class DataType : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, int8, fp4 };
inline constexpr std::size_t kDataTypes = 8;
std::string_view name(DataType type);
DataType parse_data_type(std::string_view text);  // throws BadInput with the nearest name
/// Bytes of one element (fp4: 0.5).
double element_size(DataType type);

/// Where a figure comes from. `assumed` figures are recalled or unknown; using one is reported to the user.
struct Provenance {
  std::string source;
  bool assumed = false;
};

/// The few constants of the kernel-time model (models/compute/kernel_time.hpp says what each means).
struct KernelConstants {
  double gemm_efficiency = 0.8;       // sustained share of dense peak on large, perfectly tiled GEMMs
  double memory_efficiency = 0.9;     // sustained share of memory bandwidth on large streams
  double attention_efficiency = 0.6;  // sustained share of dense peak in fused attention, forward
  std::uint32_t tile_m = 128;         // largest GEMM output tile of one compute unit; halves of it are tried too
  std::uint32_t tile_n = 128;
  double ramp_depth = 128;        // inner dimension (GEMM k, attention keys) that filling a tile's pipeline costs
  Picoseconds launch{4'000'000};  // a kernel's fixed cost on a busy stream
  Bytes ramp_bytes{1'000'000};    // stream size at which half the sustained bandwidth is reached, launch apart
  double sustained_clock = 1;     // clock held through hours of training over that of a short kernel benchmark
};

struct GpuSpec {
  std::string name;   // "h100-sxm"
  std::string title;  // "NVIDIA H100 SXM 80GB"
  std::string vendor;
  std::string architecture;
  std::array<FlopRate, kDataTypes> dense_peak{};  // 0 = not supported
  Bytes memory{0};
  Rate memory_bandwidth{0};
  Bytes l2_cache{0};
  std::uint32_t compute_units = 0;  // SMs, CUs, TensorCores
  Rate scale_up{0};                 // all scale-up links of one GPU, per direction
  Rate pcie{0};                     // per direction
  Watts tdp{0};
  Watts idle{0};
  KernelConstants kernel;
  std::map<std::string, Provenance> provenance;  // per key of the entry
  [[nodiscard]] FlopRate peak(DataType type) const { return dense_peak[static_cast<std::size_t>(type)]; }
};

struct NicSpec {
  std::string name;
  std::string title;
  LinkKind kind = LinkKind::infiniband;
  Rate rate{0};              // per direction
  Picoseconds latency{0};    // one way through the adapter
  double efficiency = 0.97;  // payload share of line rate on large messages
  std::map<std::string, Provenance> provenance;
};

struct SwitchSpec {
  std::string name;
  std::string title;
  LinkKind kind = LinkKind::infiniband;
  std::uint32_t ports = 0;
  Rate port_rate{0};
  Picoseconds latency{0};
  bool in_network_reduction = false;
  Watts power{0};
  std::map<std::string, Provenance> provenance;
};

struct NodeSpec {
  std::string name;  // "dgx-h100"
  std::string title;
  std::string gpu;  // catalog name
  std::string nic;  // catalog name; "" = none
  NodeShape shape;  // complete: rates filled in from the GPU and NIC entries
  Bytes host_memory{0};
  Watts max_power{0};
  double scale_up_efficiency = 0.8;  // payload share of the scale-up line rate on large messages
  double pcie_efficiency = 0.85;
  std::map<std::string, Provenance> provenance;
};

/// A dense or mixture-of-experts decoder as published.
struct TransformerSpec {
  std::string name;  // "llama3-405b"
  std::string title;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;  // of a dense layer
  bool gated = true;            // SwiGLU (three matrices) or GELU (two)
  std::int64_t vocabulary = 0;
  std::int64_t sequence_length = 0;  // trained length
  bool tied_embeddings = false;
  bool learned_positions = false;
  bool biases = false;  // linear layers with bias and LayerNorm with shift (GPT style)
  // mixture of experts; experts = 0 means dense
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t shared_experts = 0;
  std::int64_t expert_ffn_hidden = 0;
  std::int64_t dense_layers = 0;  // leading layers without experts
  // multi-head latent attention (DeepSeek); 0 = ordinary attention
  std::int64_t kv_lora_rank = 0;
  std::int64_t q_lora_rank = 0;
  std::int64_t rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
  std::map<std::string, Provenance> provenance;
};

/// The built-in entries plus any files the user adds. Immutable once loaded.
class Catalog {
 public:
  /// The entries compiled into the program.
  static Catalog built_in();
  /// Reads one more file (any number of entries); a name that exists already is replaced. Throws BadInput.
  void add_file(const std::string& path);

  // Each throws BadInput with the nearest name; `where` is where the name was written.
  [[nodiscard]] const GpuSpec& gpu(std::string_view name, const SourceLocation& where = {}) const;
  [[nodiscard]] const NicSpec& nic(std::string_view name, const SourceLocation& where = {}) const;
  [[nodiscard]] const SwitchSpec& network_switch(std::string_view name, const SourceLocation& where = {}) const;
  [[nodiscard]] const NodeSpec& node(std::string_view name, const SourceLocation& where = {}) const;
  [[nodiscard]] const TransformerSpec& transformer(std::string_view name, const SourceLocation& where = {}) const;

  struct Entry {
    std::string kind;  // "gpu", "nic", "switch", "node", "model"
    std::string name;
    std::string title;
  };
  [[nodiscard]] std::vector<Entry> entries() const;  // by kind, then name
  /// Every figure of an entry with unit, source and an "assumed" mark, ready to print. Throws BadInput.
  [[nodiscard]] std::string describe(std::string_view name) const;

 private:
  std::map<std::string, GpuSpec, std::less<>> gpus_;
  std::map<std::string, NicSpec, std::less<>> nics_;
  std::map<std::string, SwitchSpec, std::less<>> switches_;
  std::map<std::string, NodeSpec, std::less<>> nodes_;
  std::map<std::string, TransformerSpec, std::less<>> transformers_;
  std::map<std::string, Value, std::less<>> raw_;  // "gpu/h100-sxm" -> resolved entry, for describe()
  void add(const std::vector<Value>& files);
  [[nodiscard]] std::string describe_entry(const std::string& key) const;
};

/// A transformer written as a table (the keys of a catalog model), for models that are in no catalog. Throws BadInput.
TransformerSpec read_transformer(const Value& table, const std::string& name);

/// Reads TOML text into a Value tree with places. Throws BadInput with file:line for syntax errors.
Value parse_toml(std::string_view text, const std::string& file);
/// Reads a file: missing, a directory, unreadable, not UTF-8 text, too large each have their own message.
Value read_toml_file(const std::string& path);
/// Writes a Value tree as TOML.
std::string to_toml(const Value& table);

}  // namespace clustersim
