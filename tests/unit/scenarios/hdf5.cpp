// The result file, read back through the HDF5 C interface and, where it is installed, through xarray.
#include "scenarios/hdf5.hpp"

#include <hdf5.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"
#include "tests/unit/scenarios/example_step.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Picoseconds seconds(double value) { return from_seconds<Picoseconds>(value); }

Result example() {
  StepReport report = example_step();
  report.steps = 1800;
  report.step.communication = {
      {Collective::all_reduce, Cause::exposed_data, "ring", "größer ist besser", 4, 1e9, seconds(1)}};
  report.labels = {"forward", "backward"};
  report.step.timeline = {{0, 0, 0, Cause::compute, seconds(0), seconds(1)},
                          {1, 0, 1, Cause::compute, seconds(1), seconds(2)}};
  report.figures.flop_terms = {{"linear layers", Flops(200e12)}, {"attention", Flops(40e12)}};
  report.resources = {{"node0/nic0 -> leaf0", {0, 16, 1e9, 0.25, gigabits_per_second(400)}},
                      {"leaf0 -> node0/nic0", {1, 16, 5e8, 0.125, gigabits_per_second(400)}}};
  derive_figures(report);
  Result result;
  result.scenario = "example";
  result.description = "a description";
  result.scenario_hash = "0123456789abcdef";
  result.resolved_text = "name = \"example\"\n";
  result.version = "9.9.9";
  result.seed = 7;
  result.assumptions = {"one", "two"};
  result.step = std::move(report);
  return result;
}

Result study() {
  Result result;
  result.scenario = "study";
  result.points = {example(), example()};
  result.points[0].label = "cluster.nodes = 1";
  result.points[1].label = "cluster.nodes = 2";
  return result;
}

/// The image in a file of its own.
class ResultFile {
 public:
  explicit ResultFile(const Result& result) {
    const std::vector<std::byte> image = hdf5_image(result);
    path_ = folder_.write("result.h5", {reinterpret_cast<const char*>(image.data()), image.size()});
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    REQUIRE(file_ >= 0);
  }
  ~ResultFile() { H5Fclose(file_); }
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  [[nodiscard]] hid_t id() const { return file_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
  hid_t file_ = -1;
};

std::vector<double> doubles(hid_t file, const char* name) {
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  const hid_t space = H5Dget_space(dataset);
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  REQUIRE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  H5Sclose(space);
  H5Dclose(dataset);
  return values;
}

/// A variable-length text attribute.
std::string text_attribute(hid_t object, const char* name) {
  REQUIRE(H5Aexists(object, name) > 0);
  const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  REQUIRE(H5Tis_variable_str(type) > 0);
  REQUIRE(H5Tget_cset(type) == H5T_CSET_UTF8);
  char* text = nullptr;
  REQUIRE(H5Aread(attribute, type, static_cast<void*>(&text)) >= 0);
  std::string result = text == nullptr ? "" : text;
  H5free_memory(text);
  H5Tclose(type);
  H5Aclose(attribute);
  return result;
}

std::vector<hsize_t> shape_of(hid_t dataset) {
  const hid_t space = H5Dget_space(dataset);
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  H5Sclose(space);
  return shape;
}

std::size_t attribute_length(hid_t dataset, const char* name) {
  const hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
  REQUIRE(attribute >= 0);
  const hid_t space = H5Aget_space(attribute);
  const auto length = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  H5Sclose(space);
  H5Aclose(attribute);
  return length;
}

/// Each entry of DIMENSION_LIST names a dimension scale of the right length, which names the variable back.
void check_dimension_list(hid_t dataset, const std::vector<hsize_t>& shape) {
  REQUIRE(attribute_length(dataset, "DIMENSION_LIST") == shape.size());
  const hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  std::vector<hvl_t> lists(shape.size());
  REQUIRE(H5Aread(attribute, type, lists.data()) >= 0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    REQUIRE(lists[i].len == 1);
    const hid_t scale = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, lists[i].p);
    REQUIRE(scale >= 0);
    CHECK(H5Aexists(scale, "CLASS") > 0);
    CHECK(H5Aexists(scale, "REFERENCE_LIST") > 0);
    CHECK(shape_of(scale) == std::vector<hsize_t>{shape[i]});
    H5Dclose(scale);
  }
  const hid_t space = H5Aget_space(attribute);
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists.data());
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
}

struct Visit {
  std::size_t variables = 0;
  std::size_t scales = 0;
  std::size_t back_references = 0;
  std::size_t dimensions_used = 0;
};

herr_t visit_object(hid_t root, const char* name, const H5O_info_t* info, void* data) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  INFO("variable " << name);
  auto& visit = *static_cast<Visit*>(data);
  const hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT);
  CHECK_FALSE(text_attribute(dataset, "description").empty());
  CHECK_FALSE(text_attribute(dataset, "units").empty());
  const std::vector<hsize_t> shape = shape_of(dataset);
  ++visit.variables;
  if (H5Aexists(dataset, "CLASS") > 0) {
    ++visit.scales;
    CHECK(shape.size() == 1);
    if (H5Aexists(dataset, "REFERENCE_LIST") > 0) visit.back_references += attribute_length(dataset, "REFERENCE_LIST");
  } else if (!shape.empty()) {
    check_dimension_list(dataset, shape);
    visit.dimensions_used += shape.size();
  }
  H5Dclose(dataset);
  return 0;
}

Visit visit_all(hid_t file) {
  Visit visit;
  REQUIRE(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &visit, H5O_INFO_BASIC) >= 0);
  return visit;
}

bool python_has(const std::string& modules) {
  return std::system(("python3 -c 'import " + modules + "' >/dev/null 2>&1").c_str()) == 0;
}

/// Exit code of the Python program; `sys.argv[1]` is the file.
int run_python(const std::string& program, const std::string& path) {
  return std::system(("python3 -c '" + program + "' '" + path + "'").c_str());
}

}  // namespace

TEST_CASE("values, attributes and provenance come back") {
  const ResultFile file(example());
  CHECK(doubles(file.id(), "step_time") == std::vector<double>{2.0});
  CHECK(doubles(file.id(), "steps") == std::vector<double>{1800});
  CHECK(doubles(file.id(), "total_time") == std::vector<double>{3600});
  CHECK(doubles(file.id(), "total_tokens") == std::vector<double>{1.8e6});
  CHECK(doubles(file.id(), "gpu_hours") == std::vector<double>{3});
  CHECK(doubles(file.id(), "mfu")[0] == Approx(0.4));
  CHECK(doubles(file.id(), "resource_utilization") == std::vector<double>{0.25, 0.125});
  CHECK(doubles(file.id(), "memory") == std::vector<double>{0x1p30, 0x1p31});
  CHECK(doubles(file.id(), "rank_class_size") == std::vector<double>{2, 1});
  CHECK(doubles(file.id(), "timeline_end") == std::vector<double>{1, 2});
  const std::vector<double> ledger = doubles(file.id(), "ledger");
  REQUIRE(ledger.size() == kCauses * 2);
  CHECK(ledger[static_cast<std::size_t>(Cause::compute) * 2] == 1.5);
  CHECK(ledger[static_cast<std::size_t>(Cause::compute) * 2 + 1] == 1);
  CHECK(ledger[static_cast<std::size_t>(Cause::bubble) * 2 + 1] == 0.75);
  CHECK(text_attribute(file.id(), "scenario_toml") == "name = \"example\"\n");
  CHECK(text_attribute(file.id(), "scenario_hash") == "0123456789abcdef");
  CHECK(text_attribute(file.id(), "version") == "9.9.9");
  CHECK(text_attribute(file.id(), "assumptions") == "one\ntwo");
}

TEST_CASE("every variable has units, a description and dimension scales that know it") {
  for (const Result& result : {example(), study()}) {
    const ResultFile file(result);
    const Visit visit = visit_all(file.id());
    CHECK(visit.variables > 30);
    CHECK(visit.scales >= 8);
    CHECK(visit.back_references == visit.dimensions_used);
  }
}

TEST_CASE("the same result gives the same bytes, whatever the clock says") {
  Result first = example();
  Result second = example();
  second.wall_s = 12;
  second.peak_rss_mib = 34;
  const std::vector<std::byte> image = hdf5_image(first);
  sleep(1);  // dates in HDF5 files have a resolution of a second
  CHECK(image == hdf5_image(second));
  first.step->step.rank_classes[0].representative = 1;
  CHECK(image != hdf5_image(first));
}

TEST_CASE("a step without network, timeline or communication has no empty variables") {
  Result result = example();
  result.step->resources.clear();
  result.step->step.communication.clear();
  result.step->step.timeline.clear();
  const ResultFile file(result);
  CHECK(H5Lexists(file.id(), "resource", H5P_DEFAULT) == 0);
  CHECK(H5Lexists(file.id(), "communication", H5P_DEFAULT) == 0);
  CHECK(H5Lexists(file.id(), "interval", H5P_DEFAULT) == 0);
  CHECK(H5Lexists(file.id(), "ledger", H5P_DEFAULT) > 0);
}

TEST_CASE("xarray opens the file without help") {
  if (!python_has("xarray, h5netcdf")) {
    std::cout << "skipped: python3 has no xarray with h5netcdf\n";
    return;
  }
  const std::string program = R"(
import sys, xarray
engines = ["h5netcdf"]
try:
    import netCDF4
    engines.append("netcdf4")
except ImportError:
    pass
for engine in engines:
    with xarray.open_dataset(sys.argv[1], engine=engine) as d:
        assert dict(d.sizes) == {"cause": 12, "rank_class": 2, "resource": 2, "communication": 1, "memory_item": 2,
                                 "flop_term": 2, "label": 2, "interval": 2}, dict(d.sizes)
        assert float(d.step_time) == 2.0 and d.step_time.attrs["units"] == "s"
        assert int(d.steps) == 1800 and d.total_time.attrs["units"] == "s" and d.gpu_hours.attrs["units"] == "h"
        assert float(d.ledger.sel(cause="compute", rank_class=1)) == 1.0
        assert float(d.memory.sel(memory_item="activations")) == 2.0**31
        assert d.communication_reason.values[0] == "gr\u00f6\u00dfer ist besser"
        assert int(d.attrs["schema_version"]) == 1 and int(d.attrs["seed"]) == 7
        assert d.attrs["scenario_toml"].startswith("name = ")
        assert all("units" in d[v].attrs and "description" in d[v].attrs for v in d.variables)
)";
  const ResultFile file(example());
  CHECK(run_python(program, file.path()) == 0);
  const std::string by_point = R"(
import sys, xarray
with xarray.open_dataset(sys.argv[1], engine="h5netcdf") as d:
    assert d.mfu.dims == ("point",) and d.sizes["point"] == 2
    assert list(d.point_label.values) == ["cluster.nodes = 1", "cluster.nodes = 2"]
with xarray.open_dataset(sys.argv[1], engine="h5netcdf", group="point_1") as d:
    assert float(d.step_time) == 2.0
)";
  const ResultFile points(study());
  CHECK(run_python(by_point, points.path()) == 0);
}
