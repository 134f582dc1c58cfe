// The simulated nccl-tests: size ranges, counts, and the table.
#include "models/collectives/nccl_test.hpp"

#include <sstream>

#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

std::vector<std::int64_t> values(std::string_view text) {
  std::vector<std::int64_t> result;
  for (const Bytes size : parse_size_range(text)) result.push_back(size.value());
  return result;
}

std::string refusal(std::string_view text) {
  try {
    parse_size_range(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("size ranges", "[nccl-test]") {
  CHECK(values("8..64") == std::vector<std::int64_t>{8, 16, 32, 64});
  CHECK(values("8..100") == std::vector<std::int64_t>{8, 16, 32, 64});
  CHECK(values("1K..64K*4") == std::vector<std::int64_t>{1024, 4096, 16384, 65536});
  CHECK(values("1M..3M+1M") == std::vector<std::int64_t>{1 << 20, 2 << 20, 3 << 20});
  CHECK(values("4 KiB, 1M,7") == std::vector<std::int64_t>{4096, 1 << 20, 7});
  CHECK(values("8..8G").size() == 31);
  CHECK(values("8..8G").back() == std::int64_t{8} << 30);
  CHECK(values("5") == std::vector<std::int64_t>{5});
  for (const char* wrong : {"", "x", "8..", "8..4", "0..8", "8..8G*1", "8..8G+0", "-8..8", "8...9", "9999999999999T",
                            "8,", "1..1G+1", "8..8G*x"}) {
    CAPTURE(wrong);
    CHECK(refusal(wrong).find("size range") != std::string::npos);
  }
}

TEST_CASE("rows count elements as nccl-tests does", "[nccl-test]") {
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 4);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  NcclTestOptions options;
  options.sizes = {Bytes(1024)};
  for (const auto& [operation, count, root, reduction] : {std::tuple{Collective::all_reduce, 256, -1, "sum"},
                                                          {Collective::all_gather, 64, -1, "none"},
                                                          {Collective::reduce_scatter, 64, -1, "sum"},
                                                          {Collective::broadcast, 256, 0, "none"},
                                                          {Collective::reduce, 256, 0, "sum"},
                                                          {Collective::all_to_all, 64, -1, "none"},
                                                          {Collective::send_receive, 256, -1, "none"}}) {
    options.operation = operation;
    const std::vector<NcclTestRow> rows = run_nccl_test(group, {}, options);
    REQUIRE(rows.size() == 1);
    CAPTURE(name(operation));
    CHECK(rows[0].count == count);
    CHECK(rows[0].root == root);
    CHECK(rows[0].reduction == reduction);
    // algbw = size / time, busbw = algbw x factor.
    CHECK(rows[0].algorithm_bandwidth.value() == Approx(1024 / to_seconds(rows[0].time)));
    CHECK(rows[0].bus_bandwidth.value() ==
          Approx(1024 / to_seconds(rows[0].time) * bus_bandwidth_factor(operation, 4)));
    CHECK_FALSE(rows[0].reason.empty());
  }
  options.type = "flot";
  try {
    run_nccl_test(group, {}, options);
    CHECK(false);
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()).find("did you mean \"float\"") != std::string::npos);
  }
}

TEST_CASE("forms agree where they must", "[nccl-test]") {
  // A ring between single-GPU nodes has nothing to overlap: the three forms take the same time, but for a tick per
  // step.
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 8);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  NcclTestOptions options;
  options.sizes = {mebibytes(64)};
  CommunicationModel model;
  model.algorithm = "ring";
  const auto time = [&](std::string_view form) {
    options.form = parse_nccl_test_form(form);
    return run_nccl_test({*cluster, gpus}, model, options)[0].time.count();
  };
  const auto pipelined = time("pipelined");
  CHECK(std::abs(time("stepped") - pipelined) <= 1);
  CHECK(std::abs(time("simulated") - pipelined) <= 14);
  CHECK_THROWS_AS(parse_nccl_test_form("pipeline"), BadInput);
}

TEST_CASE("the table can be read by readers of nccl-tests", "[nccl-test]") {
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 4);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  NcclTestOptions options;
  options.sizes = parse_size_range("8..8G*1024");
  const std::vector<NcclTestRow> rows = run_nccl_test({*cluster, gpus}, {}, options);
  std::istringstream lines(nccl_test_table(rows));
  std::string line;
  std::size_t data = 0;
  while (std::getline(lines, line)) {
    if (line[0] == '#') continue;
    std::istringstream fields(line);
    std::int64_t size = 0;
    std::int64_t count = 0;
    std::string type, reduction;
    int root = 0;
    double microseconds = 0, algbw = 0, busbw = 0;
    REQUIRE((fields >> size >> count >> type >> reduction >> root >> microseconds >> algbw >> busbw));
    CHECK(size == rows[data].size.value());
    CHECK(microseconds == Approx(to_seconds(rows[data].time) * 1e6).epsilon(0.01));
    CHECK(busbw == Approx(rows[data].bus_bandwidth.value() / 1e9).epsilon(0.01).margin(0.006));
    ++data;
  }
  CHECK(data == rows.size());
}
