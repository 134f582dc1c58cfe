// How long a GPU kernel takes: a roofline with launch cost, tile and wave quantization, and a bandwidth ramp.
#pragma once

#include <cstdint>

#include "models/catalog/catalog.hpp"
#include "sim/units.hpp"

namespace clustersim {

/// A kernel by what it does, not by its code.
struct Kernel {
  enum class Kind : std::uint8_t { gemm, attention_forward, attention_backward, memory_bound };
  Kind kind = Kind::memory_bound;
  DataType type = DataType::bf16;
  // gemm: `batch` products of [m x k] by [k x n]. attention: batch x heads in `batch`, m = queries, n = keys, k = head
  // size.
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool causal = false;  // attention: half the score matrix is masked
  Flops flops{0};       // operations the hardware executes (attention backward: with its recomputed scores)
  Bytes bytes{0};       // memory traffic, at least each operand once
};

Kernel gemm(DataType type, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1);
/// Fused attention (FlashAttention): 4 x batch x m x n x k FLOPs forward, 10 x backward; half when causal.
Kernel attention(DataType type, std::int64_t batch_heads, std::int64_t queries, std::int64_t keys,
                 std::int64_t head_dim, bool causal, bool backward);
Kernel memory_bound(Bytes traffic);

/// Wall time of one kernel on an otherwise idle GPU: launch + max(compute, memory), with the constants of gpu.kernel.
/// - memory = (bytes + ramp_bytes) / (memory_efficiency x bandwidth).
/// - compute: output tiles run in whole waves over the compute units, each for depth + ramp_depth at the sustained
/// rate;
///   the fastest of the tile sizes and splits of the depth that libraries choose from.
/// Never under flops / peak, and never falls when a dimension grows; a kernel without work costs its launch. Published
/// GEMM times are met within 6 to 8 % (median) on A100, H100 and B200. Clocks and cache hits are not modelled.
/// Throws Infeasible when the GPU has no peak for the type.
Picoseconds kernel_time(const GpuSpec& gpu, const Kernel& kernel);

/// The GPU as a long job finds it: at its power limit the clock of the arithmetic settles at sustained_clock of what a
/// short benchmark sees, from which the other constants come. Memory has a clock of its own and keeps its rate. The
/// catalog's peaks stay what they are.
GpuSpec under_sustained_load(const GpuSpec& gpu);

}  // namespace clustersim
