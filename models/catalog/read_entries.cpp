// From a resolved, complete entry to the typed specification that the models use.
#include "models/catalog/read_entries.hpp"

#include <algorithm>
#include <string_view>

#include "models/catalog/resolve.hpp"
#include "models/catalog/schemas.hpp"

namespace clustersim {
namespace {

Settings check(std::string_view kind_name, const std::string& name, const Value& resolved) {
  return check_settings(resolved, entry_kind(kind_name, resolved.where).schema, std::string(kind_name) + "." + name);
}

std::map<std::string, Provenance> provenance(std::string_view kind_name, const Value& resolved) {
  return provenance_of(entry_kind(kind_name, resolved.where), resolved);
}

std::uint32_t count(const Settings& settings, std::string_view key) {
  return static_cast<std::uint32_t>(settings.integer(key));
}

Watts optional_watts(const Settings& settings, std::string_view key) {
  return settings.has(key) ? settings.watts(key) : Watts(0);
}

LinkKind link_kind(const Settings& settings) {
  const std::string& text = settings.text("kind");
  return text == "infiniband" ? LinkKind::infiniband : text == "ethernet" ? LinkKind::ethernet : LinkKind::torus_link;
}

KernelConstants read_kernel_constants(const Settings& settings) {
  KernelConstants kernel;
  kernel.gemm_efficiency = settings.number("gemm_efficiency");
  kernel.memory_efficiency = settings.number("memory_efficiency");
  kernel.attention_efficiency = settings.number("attention_efficiency");
  kernel.tile_m = count(settings, "tile_m");
  kernel.tile_n = count(settings, "tile_n");
  kernel.ramp_depth = settings.number("ramp_depth");
  kernel.sustained_clock = settings.number("sustained_clock");
  kernel.launch = settings.duration("launch");
  kernel.ramp_bytes = settings.bytes("ramp_bytes");
  return kernel;
}

}  // namespace

GpuSpec read_gpu(const std::string& name, const Value& resolved) {
  const Settings settings = check("gpu", name, resolved);
  GpuSpec gpu;
  gpu.name = name;
  gpu.title = settings.text("title");
  gpu.vendor = settings.text("vendor");
  gpu.architecture = settings.text("architecture");
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    const std::string key = "dense_peak_" + std::string(clustersim::name(static_cast<DataType>(type)));
    gpu.dense_peak[type] = settings.has(key) ? settings.flop_rate(key) : FlopRate(0);
  }
  if (std::all_of(gpu.dense_peak.begin(), gpu.dense_peak.end(), [](FlopRate peak) { return peak.value() <= 0; })) {
    settings.reject("title", "the GPU has no peak at all; give at least dense_peak_bf16 or dense_peak_fp16");
  }
  gpu.memory = settings.bytes("memory");
  gpu.memory_bandwidth = settings.rate("memory_bandwidth");
  gpu.l2_cache = settings.has("l2_cache") ? settings.bytes("l2_cache") : Bytes(0);
  gpu.compute_units = count(settings, "compute_units");
  gpu.scale_up = settings.rate("scale_up");
  gpu.pcie = settings.rate("pcie");
  gpu.tdp = optional_watts(settings, "tdp");
  gpu.idle = optional_watts(settings, "idle");
  gpu.kernel = read_kernel_constants(settings);
  gpu.provenance = provenance("gpu", resolved);
  return gpu;
}

NicSpec read_nic(const std::string& name, const Value& resolved) {
  const Settings settings = check("nic", name, resolved);
  NicSpec nic;
  nic.name = name;
  nic.title = settings.text("title");
  nic.kind = link_kind(settings);
  nic.rate = settings.rate("rate");
  nic.latency = settings.duration("latency");
  nic.efficiency = settings.number("efficiency");
  nic.provenance = provenance("nic", resolved);
  return nic;
}

SwitchSpec read_switch(const std::string& name, const Value& resolved) {
  const Settings settings = check("switch", name, resolved);
  SwitchSpec result;
  result.name = name;
  result.title = settings.text("title");
  result.kind = link_kind(settings);
  result.ports = count(settings, "ports");
  result.port_rate = settings.rate("port_rate");
  result.latency = settings.duration("latency");
  result.in_network_reduction = settings.boolean("in_network_reduction");
  result.power = optional_watts(settings, "power");
  result.provenance = provenance("switch", resolved);
  return result;
}

namespace {

/// The NICs, or with nics = 0 the GPUs' own fabric ports.
void read_node_network(NodeSpec& node, const Settings& settings, const Catalog& catalog, const Value& resolved) {
  NodeShape& shape = node.shape;
  shape.nics = count(settings, "nics");
  if (shape.nics == 0) {
    if (settings.has("nic")) {
      settings.reject("nic", "the node has nics = 0; leave nic out or give the number of NICs");
    }
    shape.nic_rate = settings.has("fabric_rate") ? settings.rate("fabric_rate") : Rate(0);
    shape.nic_latency = settings.has("fabric_latency") ? settings.duration("fabric_latency") : Picoseconds(0);
    return;
  }
  if (!settings.has("nic")) {
    settings.reject("nics", "give the catalog name of the NICs as nic = \"...\"");
  }
  for (const char* key : {"fabric_rate", "fabric_latency"}) {
    if (settings.has(key)) {
      settings.reject(key, "only for nics = 0, where the fabric attaches to the GPUs themselves");
    }
  }
  const NicSpec& nic = catalog.nic(settings.text("nic"), resolved.find("nic")->where);
  node.nic = nic.name;
  shape.nic_rate = nic.rate;
  shape.nic_latency = nic.latency;
}

std::string read_interconnect(const Settings& settings) {
  const std::string& text = settings.text("interconnect");
  std::vector<std::string> names;
  for (const NodeInterconnect& known : node_interconnects()) {
    names.emplace_back(known.name);
  }
  if (std::find(names.begin(), names.end(), text) == names.end()) {
    settings.reject("interconnect", "expected one of {}{}", fmt::join(names, ", "), did_you_mean(text, names));
  }
  return text;
}

void read_nic_of_gpu(NodeShape& shape, const Settings& settings) {
  if (!settings.has("nic_of_gpu")) {
    return;
  }
  const auto& list = settings.integers("nic_of_gpu");
  if (list.size() != shape.gpus) {
    settings.reject("nic_of_gpu", "{} numbers for {} GPUs; give the nearest NIC of each", list.size(), shape.gpus);
  }
  for (const std::int64_t nic : list) {
    if (nic >= static_cast<std::int64_t>(shape.nics)) {
      settings.reject("nic_of_gpu", "NIC {} of {}; they are numbered from 0", nic, shape.nics);
    }
    shape.nic_of_gpu.push_back(static_cast<std::uint32_t>(nic));
  }
}

}  // namespace

NodeSpec read_node(const std::string& name, const Value& resolved, const Catalog& catalog) {
  const Settings settings = check("node", name, resolved);
  const GpuSpec& gpu = catalog.gpu(settings.text("gpu"), resolved.find("gpu")->where);
  NodeSpec node;
  node.name = name;
  node.title = settings.text("title");
  node.gpu = gpu.name;
  node.provenance = provenance("node", resolved);

  NodeShape& shape = node.shape;
  shape.name = name;
  shape.gpus = count(settings, "gpus");
  shape.interconnect = read_interconnect(settings);
  // A rate that the node does not state is its GPU's, and so is where that figure comes from.
  const auto rate_or = [&](std::string_view key, Rate otherwise, const std::string& gpu_key) {
    if (settings.has(key)) {
      return settings.rate(key);
    }
    const auto origin = gpu.provenance.find(gpu_key);
    node.provenance[std::string(key)] = origin == gpu.provenance.end() ? Provenance{} : origin->second;
    return otherwise;
  };
  shape.gpu_link = rate_or("gpu_link", gpu.scale_up, "scale_up");
  shape.gpu_link_latency = settings.duration("gpu_link_latency");
  shape.in_network_reduction = settings.boolean("in_network_reduction");
  shape.cpus = count(settings, "cpus");
  shape.pcie_switches = count(settings, "pcie_switches");
  shape.pcie_rate = rate_or("pcie_rate", gpu.pcie, "pcie");
  shape.pcie_latency = settings.duration("pcie_latency");
  shape.cpu_link = settings.rate("cpu_link");
  read_node_network(node, settings, catalog, resolved);
  read_nic_of_gpu(shape, settings);
  node.host_memory = settings.has("host_memory") ? settings.bytes("host_memory") : Bytes(0);
  node.max_power = optional_watts(settings, "max_power");
  node.scale_up_efficiency = settings.number("scale_up_efficiency");
  node.pcie_efficiency = settings.number("pcie_efficiency");
  return node;
}

namespace {

void check_experts(const Settings& settings, const TransformerSpec& model) {
  if (model.experts == 0) {
    for (const char* key : {"experts_per_token", "shared_experts", "expert_ffn_hidden", "dense_layers"}) {
      if (settings.integer(key) != 0) {
        settings.reject(key, "only for mixtures of experts; give experts as well");
      }
    }
    return;
  }
  if (model.experts_per_token < 1 || model.experts_per_token > model.experts) {
    settings.reject("experts_per_token", "expected 1 to {} (experts)", model.experts);
  }
  if (model.expert_ffn_hidden < 1) {
    settings.reject("expert_ffn_hidden", "expected the inner width of one expert");
  }
  if (model.dense_layers > model.layers) {
    settings.reject("dense_layers", "more than the {} layers", model.layers);
  }
}

void check_latent_attention(const Settings& settings, const TransformerSpec& model) {
  if (model.kv_lora_rank == 0) {
    for (const char* key : {"q_lora_rank", "rope_head_dim", "v_head_dim"}) {
      if (settings.integer(key) != 0) {
        settings.reject(key, "only for latent attention; give kv_lora_rank as well");
      }
    }
  } else if (model.rope_head_dim < 1 || model.v_head_dim < 1) {
    settings.reject("kv_lora_rank", "latent attention also needs rope_head_dim and v_head_dim");
  }
}

}  // namespace

TransformerSpec read_transformer(const Value& written, const std::string& name) {
  Value table = written;
  if (table.is_table() && table.find("title") == nullptr) {  // a model of one scenario needs no title
    std::get<Value::Table>(table.data).emplace_back("title", Value{name, written.where});
  }
  const Settings settings = check("model", name, table);
  TransformerSpec model;
  model.name = name;
  model.title = settings.text("title");
  model.layers = settings.integer("layers");
  model.hidden = settings.integer("hidden");
  model.heads = settings.integer("heads");
  model.kv_heads = settings.integer("kv_heads") == 0 ? model.heads : settings.integer("kv_heads");
  model.head_dim = settings.integer("head_dim");
  if (model.head_dim == 0) {
    if (model.hidden % model.heads != 0) {
      settings.reject("heads", "does not divide hidden = {}; give head_dim", model.hidden);
    }
    model.head_dim = model.hidden / model.heads;
  }
  if (model.heads % model.kv_heads != 0) {
    settings.reject("kv_heads", "does not divide heads = {}", model.heads);
  }
  model.ffn_hidden = settings.integer("ffn_hidden");
  model.gated = settings.boolean("gated");
  model.vocabulary = settings.integer("vocabulary");
  model.sequence_length = settings.integer("sequence_length");
  model.tied_embeddings = settings.boolean("tied_embeddings");
  model.learned_positions = settings.boolean("learned_positions");
  model.biases = settings.boolean("biases");
  model.experts = settings.integer("experts");
  model.experts_per_token = settings.integer("experts_per_token");
  model.shared_experts = settings.integer("shared_experts");
  model.expert_ffn_hidden = settings.integer("expert_ffn_hidden");
  model.dense_layers = settings.integer("dense_layers");
  model.kv_lora_rank = settings.integer("kv_lora_rank");
  model.q_lora_rank = settings.integer("q_lora_rank");
  model.rope_head_dim = settings.integer("rope_head_dim");
  model.v_head_dim = settings.integer("v_head_dim");
  check_experts(settings, model);
  check_latent_attention(settings, model);
  model.provenance = provenance("model", table);
  return model;
}

}  // namespace clustersim
