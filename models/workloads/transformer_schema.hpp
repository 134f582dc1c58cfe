// What may be written in a "transformer-training" job.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/settings.hpp"

namespace clustersim::transformer_schema {

inline constexpr double kMostRanks = 1 << 24;

constexpr Parameter degree(std::string_view key, std::string_view help) {
  return {
      .name = key, .kind = ValueKind::integer, .default_text = "1", .help = help, .minimum = 1, .maximum = kMostRanks};
}

inline constexpr std::array kParallelSchema{
    degree("tensor", "ranks that share every layer"),
    degree("pipeline", "stages"),
    degree("data", "replicas that share the global batch"),
    degree("context", "ranks that share every sequence"),
    degree("expert", "ranks that share the experts; inside the data-parallel group, so it divides data"),
    degree("virtual_stages", "model chunks per stage (interleaved-1f1b)"),
};

inline constexpr std::array<std::string_view, 5> kPrecisions{"bf16", "fp16", "fp8", "tf32", "fp32"};
inline constexpr std::array<std::string_view, 2> kGradientPrecisions{"fp32", "bf16"};
inline constexpr std::array<std::string_view, 3> kSchedules{"gpipe", "1f1b", "interleaved-1f1b"};
inline constexpr std::array<std::string_view, 4> kRecomputes{"none", "elementwise", "selective", "full"};
inline constexpr std::array<std::string_view, 3> kPlacements{"packed", "round-robin", "random"};
inline constexpr std::array<std::string_view, 2> kContextExchanges{"ring", "all-gather"};
inline constexpr std::array<std::string_view, 2> kDispatches{"per-rank", "single-controller"};

constexpr Parameter flag(std::string_view key, std::string_view default_text, std::string_view help) {
  return {.name = key, .kind = ValueKind::boolean, .default_text = default_text, .help = help};
}

constexpr Parameter pick(std::string_view key, std::string_view default_text, std::string_view help,
                         std::span<const std::string_view> choices) {
  return {.name = key, .kind = ValueKind::choice, .default_text = default_text, .help = help, .choices = choices};
}

inline constexpr std::array kSchema{
    Parameter{.name = "model", .kind = ValueKind::text, .help = "catalog model; or give architecture"},
    Parameter{.name = "architecture",
              .kind = ValueKind::any,
              .help = "a model written out, with the keys of a catalog model"},
    Parameter{.name = "sequence_length",
              .kind = ValueKind::integer,
              .help = "tokens per sequence; default: the model's trained length",
              .minimum = 1,
              .maximum = 1e9},
    Parameter{.name = "global_batch",
              .kind = ValueKind::integer,
              .help = "sequences per optimizer step, over all replicas",
              .required = true,
              .minimum = 1,
              .maximum = 1e9},
    Parameter{.name = "micro_batch",
              .kind = ValueKind::integer,
              .default_text = "1",
              .help = "sequences that go through a stage together",
              .minimum = 1,
              .maximum = 1e6},
    pick("precision", "bf16", "type of the linear layers", kPrecisions),
    pick("gradient_precision", "fp32", "type in which gradients are accumulated and reduced", kGradientPrecisions),
    Parameter{
        .name = "parallel", .kind = ValueKind::table, .help = "degrees of parallelism", .nested = kParallelSchema},
    pick("schedule", "1f1b", "order of micro-batches in a stage", kSchedules),
    pick("recompute", "none",
         "what the backward pass computes again: nothing, norms and activation functions, attention, every layer",
         kRecomputes),
    Parameter{.name = "sequence_parallel",
              .kind = ValueKind::boolean,
              .help = "shard norms and residuals over tensor ranks; default: true when tensor > 1"},
    Parameter{.name = "zero_stage",
              .kind = ValueKind::integer,
              .default_text = "0",
              .help = "what data-parallel ranks shard: 1 optimizer state, 2 and gradients, 3 and weights (FSDP)",
              .minimum = 0,
              .maximum = 3},
    Parameter{.name = "rank_order",
              .kind = ValueKind::text,
              .default_text = "tensor-context-expert-data-pipeline",
              .help = "how ranks are numbered, innermost dimension first"},
    pick("placement", "packed", "which ranks share a node", kPlacements),
    Parameter{.name = "placement_seed",
              .kind = ValueKind::integer,
              .default_text = "0",
              .help = "of placement = random",
              .minimum = 0},
    Parameter{.name = "first_gpu",
              .kind = ValueKind::integer,
              .default_text = "0",
              .help = "GPU of the cluster where the job begins",
              .minimum = 0,
              .maximum = 4e9},
    flag("overlap_gradients", "true", "reduce gradients during the last micro-batch's backward pass"),
    Parameter{.name = "overlap_parameters",
              .kind = ValueKind::boolean,
              .help = "gather sharded parameters beside forward passes; default: true for zero_stage = 3 only"},
    flag("overlap_tensor", "true", "run the backward pass's collectives of column-parallel layers beside its GEMMs"),
    pick("context_exchange", "ring", "how context ranks see each other's keys and values: overlapped or before",
         kContextExchanges),
    flag("flash_attention", "true", "fused attention; false: the score matrix goes through memory"),
    flag("dropout", "false", "keep dropout masks, as the GPT-3 family does"),
    Parameter{.name = "optimizer_bytes",
              .kind = ValueKind::number,
              .help = "optimizer state per parameter; default: Adam, 12 with 32-bit master weights (8 in fp32)",
              .minimum = 0,
              .maximum = 64},
    Parameter{.name = "expert_imbalance",
              .kind = ValueKind::number,
              .default_text = "1",
              .help = "tokens on the busiest expert rank over the mean",
              .minimum = 1,
              .maximum = 1e4},
    Parameter{.name = "workspace",
              .kind = ValueKind::bytes,
              .default_text = "3 GiB",
              .help = "GPU memory set aside for the driver, libraries, communication buffers and fragmentation",
              .minimum = 0},
    Parameter{.name = "stage_call_overhead",
              .kind = ValueKind::duration,
              .default_text = "0 s",
              .help = "host time of one launch: a forward or backward pass of one micro-batch on one stage",
              .minimum = 0,
              .maximum = 1e4},
    pick("dispatch", "per-rank", "who launches: every rank for itself, or one process for all, one call after another",
         kDispatches),
};

}  // namespace clustersim::transformer_schema
