// The table that nccl-tests prints, for a simulated cluster: one operation over a range of sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/collective.hpp"

namespace clustersim {

/// "8..8G": from..to, doubling; "8..8G*4": times 4; "1M..4M+1M": plus 1 MiB; "1M,32M,1G": as listed.
/// As in nccl-tests, K, M, G and T are binary; "KiB" to "TiB" and "B" mean the same. Throws BadInput.
std::vector<Bytes> parse_size_range(std::string_view text, const SourceLocation& where = {});

/// How the collectives are timed.
enum class NcclTestForm : std::uint8_t {
  pipelined,  // plan_collective() on an idle network
  stepped,    // the same schedule without overlap: round after round
  simulated,  // run_step_by_step(), transfer by transfer, members waiting for data and port only
};
NcclTestForm parse_nccl_test_form(std::string_view text);  // throws BadInput with the nearest name

struct NcclTestOptions {
  Collective operation = Collective::all_reduce;
  std::vector<Bytes> sizes;
  NcclTestForm form = NcclTestForm::pipelined;
  std::string type =
      "float";  // int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, fp8_e4m3, fp8_e5m2
  std::string reduction = "sum";
};

struct NcclTestRow {
  Bytes size{0};
  std::int64_t count = 0;  // elements, as nccl-tests counts them: per rank for gathered and scattered buffers
  std::string type;
  std::string reduction;   // "none" where nothing is reduced
  std::int32_t root = -1;  // -1 where there is none
  Picoseconds time{0};
  Rate algorithm_bandwidth{0};
  Rate bus_bandwidth{0};
  std::string algorithm;
  std::string reason;
};

std::vector<NcclTestRow> run_nccl_test(const Group& group, const CommunicationModel& model,
                                       const NcclTestOptions& options);

/// Columns as nccl-tests prints them, so that its readers can read them, with the algorithm at the end of each line.
std::string nccl_test_table(const std::vector<NcclTestRow>& rows);

}  // namespace clustersim
