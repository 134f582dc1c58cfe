// Question: is my MFU 20 % or 40 %? What is the denominator?
// https://github.com/NVIDIA/Megatron-LM/issues/1276: about 400 TFLOP/s on H100, whose bf16 peak is 989 dense and 1,979
// with 2:4 sparsity; maintainers: dense. https://github.com/foundation-model-stack/fms-fsdp/issues/89: 9,600 tokens/s x
// 0.05 TFLOP = 480 TFLOP/s. A nanoGPT pull request (464) reported 104 % on H100 from an A100's denominator.
#include <string>

#include "models/workloads/transformer_shape.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("400 and 480 TFLOP/s on an H100 are 40.4 % and 48.5 % of its dense bf16 peak") {
  const Catalog catalog = Catalog::built_in();
  const GpuSpec& h100 = catalog.gpu("h100-sxm");
  CHECK(model_flops_utilization(Flops(400e12), 1.0, h100, DataType::bf16, 1) == Approx(0.404).margin(5e-4));
  CHECK(model_flops_utilization(Flops(9600 * 0.05e12), 1.0, h100, DataType::bf16, 1) == Approx(0.485).margin(5e-4));
}

TEST_CASE("A utilization above 1 is refused with the peak, the type and the GPU in the message") {
  const Catalog catalog = Catalog::built_in();
  const GpuSpec& a100 = catalog.gpu("a100-sxm-80gb");
  try {
    (void)model_flops_utilization(Flops(1.04 * 312e12), 1.0, a100, DataType::bf16, 1);
    FAIL("accepted");
  } catch (const Infeasible& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(text.find("312 TFLOP/s") != std::string::npos);
    CHECK(text.find("bf16") != std::string::npos);
    CHECK(text.find("a100-sxm-80gb") != std::string::npos);
    CHECK(text.find("1.040") != std::string::npos);
    CHECK(text.find("dense") != std::string::npos);
  }
}

TEST_CASE("A type that the GPU does not have is refused rather than measured against nothing") {
  const Catalog catalog = Catalog::built_in();
  CHECK_THROWS_AS(model_flops_utilization(Flops(1e12), 1.0, catalog.gpu("a100-sxm-80gb"), DataType::fp8, 1),
                  Infeasible);
}
