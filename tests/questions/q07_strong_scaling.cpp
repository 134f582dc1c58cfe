// Question: how much per-GPU throughput is lost going from 8,192 to 16,384 GPUs at a fixed global batch?
// Published (The Llama 3 Herd of Models, arXiv 2407.21783, table 4): Llama 3 405B at 430 TFLOP/s per GPU on 8,192 H100
// (TP 8, PP 16, DP 64) and 400 on 16,384 (DP 128): strong-scaling efficiency 0.930.
#include "scenarios/run.hpp"
#include "tests/catch.hpp"

namespace {
using namespace clustersim;

double teraflops_per_gpu(const std::vector<std::string>& set) {
  LoadOptions options;
  options.set = set;
  RunOptions run;
  run.scaling = false;
  return run_scenario(load_scenario("llama3-405b-16k", options), run).step->model_rate_per_gpu.value() / 1e12;
}
}  // namespace

TEST_CASE("Llama 3 405B: 430 TFLOP/s at 8,192 GPUs within 10 %, and 0.930 of it at 16,384 within 0.03") {
  const double at_8192 = teraflops_per_gpu({"cluster.nodes=1024", "jobs[0].parallel.data=64"});
  const double at_16384 = teraflops_per_gpu({});
  CAPTURE(at_8192, at_16384);
  CHECK(at_8192 == Approx(430.0).epsilon(0.10));
  CHECK(at_16384 / at_8192 == Approx(0.930).margin(0.03));
}
