// Kernel time: output tiles in waves over the compute units against memory traffic, plus the launch.
#include "models/compute/kernel_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

// The query block that fused attention gives to one compute unit (FlashAttention-2, arXiv 2307.08691, section 3.3).
constexpr double kQueryBlock = 128;
// Backward keeps more operands on chip and updates dQ with atomics; on published kernels it runs at 0.7 to 1.1, mostly
// 0.85, of the forward rate (FlashAttention-2 figures 4 to 6; Transformer Engine rows of MooreThreads/SimuMax).
constexpr double kBackwardShare = 0.85;
// Into how many parts libraries cut the inner dimension when there are fewer tiles than compute units.
constexpr std::array<double, 10> kSplits{1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

Bytes to_bytes(double traffic) {
  ensure(traffic < 9e18, "a kernel that moves {} bytes", traffic);  // past this the 64-bit count overflows
  return Bytes(std::llround(traffic));
}

double memory_seconds(const GpuSpec& gpu, double bytes) {
  const double rate = gpu.memory_bandwidth.value() * gpu.kernel.memory_efficiency;
  return (bytes + static_cast<double>(gpu.kernel.ramp_bytes.value())) / rate;
}

/// Work that falls into equal tiles, each of which one compute unit walks through along an inner dimension.
struct TiledWork {
  double tiles = 0;
  double flops_per_depth = 0;  // of one tile, per unit of the inner dimension
  double depth = 0;            // inner dimension
  double result_bytes = 0;     // 32-bit partial results of one pass, written and read again when the depth is split
  double rate = 0;             // sustained FLOP/s of the whole GPU on such tiles
};

/// The tiles run in waves of one per compute unit; a part-filled last wave takes as long as a full one. Every tile also
/// pays for `ramp_depth` of the inner dimension while its pipeline fills and drains. Too few tiles can be cut along the
/// depth (split-K), at the price of that ramp per part and of summing the parts; the library takes the fastest cut.
/// Each candidate grows with every dimension, so the fastest does too.
double tiled_seconds(const GpuSpec& gpu, const TiledWork& work) {
  const double units = gpu.compute_units;
  double best = std::numeric_limits<double>::infinity();
  for (const double split : kSplits) {
    const double waves = std::ceil(work.tiles * split / units);
    const double depth = work.depth / split + gpu.kernel.ramp_depth;
    const double compute = waves * work.flops_per_depth * depth * units / work.rate;
    const double sum = split > 1 ? split * work.result_bytes / gpu.memory_bandwidth.value() : 0;
    best = std::min(best, compute + sum);
  }
  return best;
}

double gemm_seconds(const GpuSpec& gpu, const Kernel& kernel, double peak) {
  const double m = static_cast<double>(kernel.m);
  const double n = static_cast<double>(kernel.n);
  const double batch = static_cast<double>(kernel.batch);
  // FLOPs per element fetched of a tile_m x tile_n tile are tile_m tile_n / (tile_m + tile_n), up to a constant.
  const auto reuse = [](double m_side, double n_side) { return m_side * n_side / (m_side + n_side); };
  constexpr std::uint32_t kSmallestSide = 16;
  const double full_reuse = reuse(gpu.kernel.tile_m, gpu.kernel.tile_n);
  double best = std::numeric_limits<double>::infinity();
  // The full tile and its halvings. A small tile fetches more per FLOP: its rate follows reuse / (reuse + half of the
  // full tile's reuse), which is 1 for the full tile, 3/4 at half its sides, 1/2 at a quarter.
  for (std::uint32_t rows = gpu.kernel.tile_m; rows >= kSmallestSide; rows /= 2) {
    for (std::uint32_t columns = gpu.kernel.tile_n; columns >= kSmallestSide; columns /= 2) {
      const double tile_m = rows;
      const double tile_n = columns;
      const double share = reuse(tile_m, tile_n) / (reuse(tile_m, tile_n) + 0.5 * full_reuse) * 1.5;
      TiledWork work;
      work.tiles = std::ceil(m / tile_m) * std::ceil(n / tile_n) * batch;
      work.flops_per_depth = 2 * tile_m * tile_n;
      work.depth = static_cast<double>(kernel.k);
      work.result_bytes = 2 * 4 * m * n * batch;
      work.rate = peak * gpu.kernel.gemm_efficiency * share;
      best = std::min(best, tiled_seconds(gpu, work));
    }
  }
  return best;
}

double attention_seconds(const GpuSpec& gpu, const Kernel& kernel, double peak) {
  const bool backward = kernel.kind == Kernel::Kind::attention_backward;
  const double queries = static_cast<double>(kernel.m);
  const double head_dim = static_cast<double>(kernel.k);
  const double batch = static_cast<double>(kernel.batch);
  TiledWork work;
  work.tiles = std::ceil(queries / kQueryBlock) * batch;
  work.flops_per_depth = (backward ? 10 : 4) * kQueryBlock * head_dim;
  // Causal blocks are of different length; the schedule starts the longest first, so their mean counts.
  work.depth = static_cast<double>(kernel.n) * (kernel.causal ? 0.5 : 1);
  work.result_bytes = 2 * 4 * queries * head_dim * batch;
  work.rate = peak * gpu.kernel.attention_efficiency * (backward ? kBackwardShare : 1);
  return tiled_seconds(gpu, work);
}

double require_peak(const GpuSpec& gpu, DataType type) {
  if (gpu.peak(type).value() > 0) {
    return gpu.peak(type).value();
  }
  std::string supported;
  for (std::size_t i = 0; i < kDataTypes; ++i) {
    if (gpu.dense_peak[i].value() > 0) {
      supported += (supported.empty() ? "" : ", ") + std::string(name(static_cast<DataType>(i)));
    }
  }
  infeasible("{} has no {} arithmetic; it has {}", gpu.title, name(type), supported);
}

}  // namespace

Kernel gemm(DataType type, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  ensure(m >= 0 && n >= 0 && k >= 0 && batch >= 0, "gemm {} x {} x {}, batch {}: a negative dimension", m, n, k, batch);
  const double rows = static_cast<double>(m);
  const double columns = static_cast<double>(n);
  const double depth = static_cast<double>(k);
  const double count = static_cast<double>(batch);
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.type = type;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = Flops(2 * rows * columns * depth * count);
  kernel.bytes = to_bytes(element_size(type) * count * (rows * depth + depth * columns + rows * columns));
  return kernel;
}

Kernel attention(DataType type, std::int64_t batch_heads, std::int64_t queries, std::int64_t keys,
                 std::int64_t head_dim, bool causal, bool backward) {
  ensure(batch_heads >= 0 && queries >= 0 && keys >= 0 && head_dim >= 0,
         "attention of {} heads, {} queries, {} keys, head size {}: a negative dimension", batch_heads, queries, keys,
         head_dim);
  const double heads = static_cast<double>(batch_heads);
  const double rows = static_cast<double>(queries);
  const double columns = static_cast<double>(keys);
  const double width = static_cast<double>(head_dim);
  Kernel kernel;
  kernel.kind = backward ? Kernel::Kind::attention_backward : Kernel::Kind::attention_forward;
  kernel.type = type;
  kernel.batch = batch_heads;
  kernel.m = queries;
  kernel.n = keys;
  kernel.k = head_dim;
  kernel.causal = causal;
  kernel.flops = Flops((backward ? 10 : 4) * heads * rows * columns * width * (causal ? 0.5 : 1));
  // Forward reads Q, K, V and writes O; backward reads those and dO, and writes dQ, dK, dV.
  const double passes = backward ? 4 : 2;
  kernel.bytes = to_bytes(element_size(type) * heads * width * passes * (rows + columns));
  return kernel;
}

Kernel memory_bound(Bytes traffic) {
  ensure(traffic.value() >= 0, "memory_bound: {} bytes", traffic.value());
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory_bound;
  kernel.bytes = traffic;
  return kernel;
}

Picoseconds kernel_time(const GpuSpec& gpu, const Kernel& kernel) {
  double seconds = to_seconds(gpu.kernel.launch);
  const double bytes = static_cast<double>(kernel.bytes.value());
  if (kernel.kind == Kernel::Kind::memory_bound) {
    return from_seconds<Picoseconds>(seconds + (bytes > 0 ? memory_seconds(gpu, bytes) : 0));
  }
  const double peak = require_peak(gpu, kernel.type);
  if (kernel.batch == 0 || kernel.m == 0 || kernel.n == 0 || kernel.k == 0) {
    return from_seconds<Picoseconds>(seconds);
  }
  const double compute =
      kernel.kind == Kernel::Kind::gemm ? gemm_seconds(gpu, kernel, peak) : attention_seconds(gpu, kernel, peak);
  seconds += std::max(compute, memory_seconds(gpu, bytes));
  return from_seconds<Picoseconds>(seconds);
}

GpuSpec under_sustained_load(const GpuSpec& gpu) {
  GpuSpec loaded = gpu;
  loaded.kernel.gemm_efficiency *= gpu.kernel.sustained_clock;
  loaded.kernel.attention_efficiency *= gpu.kernel.sustained_clock;
  return loaded;
}

}  // namespace clustersim
