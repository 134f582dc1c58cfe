// Writes HDF5 in the form that netCDF-4 gives it: dimension scales, attributes, variable-length UTF-8 strings.
//
// Layout after the HDF5 Dimension Scale Specification and the netCDF-4 file format (Unidata, NetCDF User's Guide,
// appendix "File Format Specifications"): creation order is tracked, a dimension is a dataset with CLASS and NAME, its
// users point to it in DIMENSION_LIST and it points back in REFERENCE_LIST.
#include "scenarios/netcdf_writer.hpp"

#include <hdf5.h>

#include <utility>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>, "HDF5 1.10 or newer is needed");

void require(herr_t status, std::string_view what) { ensure(status >= 0, "HDF5 could not {}", what); }

Hdf5Handle text_type() {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "copy a type");
  require(H5Tset_size(type.get(), H5T_VARIABLE), "make a text type");
  require(H5Tset_cset(type.get(), H5T_CSET_UTF8), "make a text type");
  return type;
}

/// Attributes that belong to the dimension-scale specification are fixed-length ASCII.
void fixed_text_attribute(hid_t object, const char* name, const std::string& text) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "copy a type");
  require(H5Tset_size(type.get(), text.size() + 1), "make a text type");
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a scalar");
  const Hdf5Handle attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                             name);
  require(H5Awrite(attribute.get(), type.get(), text.c_str()), name);
}

void text_attribute(hid_t object, const std::string& name, const std::string& text) {
  const Hdf5Handle type = text_type();
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a scalar");
  const Hdf5Handle attribute(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose, name);
  const char* pointer = text.c_str();
  require(H5Awrite(attribute.get(), type.get(), static_cast<const void*>(&pointer)), name);
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  result.reserve(texts.size());
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

void write(const Hdf5Handle& variable, hid_t type, const void* values, std::string_view name) {
  require(H5Dwrite(variable.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), name);
}

// Copies, because the library's own types must not be closed.
Hdf5Handle number_type() { return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose, "copy a type"}; }
Hdf5Handle integer_type() { return {H5Tcopy(H5T_STD_I64LE), H5Tclose, "copy a type"}; }

struct BackReference {
  hobj_ref_t dataset;
  int dimension;
};

}  // namespace

Hdf5Handle::Hdf5Handle(std::int64_t id, Close close, std::string_view what) : id_(id), close_(close) {
  ensure(id >= 0, "HDF5 could not make \"{}\"", what);
}

Hdf5Handle::~Hdf5Handle() {
  if (id_ >= 0) close_(id_);
}

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

void NetcdfWriter::attribute(std::string_view name, std::string_view text) {
  text_attribute(group_.get(), std::string(name), std::string(text));
}

void NetcdfWriter::attribute(std::string_view name, std::int64_t value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a scalar");
  const Hdf5Handle attribute(
      H5Acreate2(group_.get(), std::string(name).c_str(), H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose, name);
  require(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), name);
}

Hdf5Handle NetcdfWriter::create(const std::string& name, const std::vector<std::string>& dimensions, std::size_t values,
                                const Hdf5Handle& type) {
  std::vector<hsize_t> shape;
  std::size_t expected = 1;
  for (const std::string& dimension : dimensions) {
    const auto found = dimensions_.find(dimension);
    ensure(found != dimensions_.end(), "variable {} has the unknown dimension {}", name, dimension);
    shape.push_back(found->second.size);
    expected *= found->second.size;
  }
  ensure(values == expected, "variable {} has {} values for {} places", name, values, expected);
  const Hdf5Handle space(
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
      H5Sclose, name);
  const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "make properties");
  require(H5Pset_obj_track_times(properties.get(), false), "leave dates out");
  require(H5Pset_attr_creation_order(properties.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
          "track the order");
  return {H5Dcreate2(group_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
          H5Dclose, name};
}

void NetcdfWriter::describe(const Hdf5Handle& variable, std::string_view units, std::string_view description) {
  if (!units.empty()) text_attribute(variable.get(), "units", std::string(units));
  text_attribute(variable.get(), "description", std::string(description));
}

void NetcdfWriter::make_dimension(const Hdf5Handle& variable, const std::string& name, std::size_t size) {
  fixed_text_attribute(variable.get(), "CLASS", "DIMENSION_SCALE");
  fixed_text_attribute(variable.get(), "NAME", name);
  ensure(size > 0, "dimension {} is empty", name);
  dimensions_[name].size = size;
}

void NetcdfWriter::text_dimension(const std::string& name, const std::vector<std::string>& values,
                                  std::string_view description) {
  dimensions_[name].size = values.size();
  const Hdf5Handle type = text_type();
  const Hdf5Handle variable = create(name, {name}, values.size(), type);
  write(variable, type.get(), static_cast<const void*>(pointers(values).data()), name);
  make_dimension(variable, name, values.size());
  describe(variable, "1", description);
}

void NetcdfWriter::integer_dimension(const std::string& name, const std::vector<std::int64_t>& values,
                                     std::string_view units, std::string_view description) {
  dimensions_[name].size = values.size();
  const Hdf5Handle variable = create(name, {name}, values.size(), integer_type());
  write(variable, H5T_NATIVE_INT64, values.data(), name);
  make_dimension(variable, name, values.size());
  describe(variable, units, description);
}

void NetcdfWriter::numbers(std::string_view name, const std::vector<std::string>& dimensions,
                           const std::vector<double>& values, std::string_view units, std::string_view description) {
  const Hdf5Handle variable = create(std::string(name), dimensions, values.size(), number_type());
  write(variable, H5T_NATIVE_DOUBLE, values.data(), name);
  describe(variable, units, description);
  refer_to_dimensions(variable, std::string(name), dimensions);
}

void NetcdfWriter::integers(std::string_view name, const std::vector<std::string>& dimensions,
                            const std::vector<std::int64_t>& values, std::string_view units,
                            std::string_view description) {
  const Hdf5Handle variable = create(std::string(name), dimensions, values.size(), integer_type());
  write(variable, H5T_NATIVE_INT64, values.data(), name);
  describe(variable, units, description);
  refer_to_dimensions(variable, std::string(name), dimensions);
}

void NetcdfWriter::texts(std::string_view name, const std::vector<std::string>& dimensions,
                         const std::vector<std::string>& values, std::string_view description) {
  const Hdf5Handle type = text_type();
  const Hdf5Handle variable = create(std::string(name), dimensions, values.size(), type);
  write(variable, type.get(), static_cast<const void*>(pointers(values).data()), name);
  describe(variable, "1", description);
  refer_to_dimensions(variable, std::string(name), dimensions);
}

void NetcdfWriter::refer_to_dimensions(const Hdf5Handle& variable, const std::string& name,
                                       const std::vector<std::string>& dimensions) {
  if (dimensions.empty()) return;
  std::vector<hobj_ref_t> references(dimensions.size());
  std::vector<hvl_t> lists(dimensions.size());
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    require(H5Rcreate(&references[i], group_.get(), dimensions[i].c_str(), H5R_OBJECT, -1), "refer to a dimension");
    lists[i] = {1, &references[i]};
    dimensions_[dimensions[i]].users.push_back({name, static_cast<int>(i)});
  }
  const Hdf5Handle type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose, "make a list type");
  const hsize_t size = dimensions.size();
  const Hdf5Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose, "make a list");
  const Hdf5Handle attribute(
      H5Acreate2(variable.get(), "DIMENSION_LIST", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  require(H5Awrite(attribute.get(), type.get(), lists.data()), "write a list of dimensions");
}

void NetcdfWriter::finish() {
  for (const auto& [name, dimension] : dimensions_) {
    if (dimension.users.empty()) continue;
    std::vector<BackReference> references(dimension.users.size());  // padding zeroed too: it ends up in the file
    for (std::size_t i = 0; i < references.size(); ++i) {
      const Reference& user = dimension.users[i];
      require(H5Rcreate(&references[i].dataset, group_.get(), user.variable.c_str(), H5R_OBJECT, -1),
              "refer to a variable");
      references[i].dimension = user.position;
    }
    const Hdf5Handle type(H5Tcreate(H5T_COMPOUND, sizeof(BackReference)), H5Tclose, "make a pair type");
    require(H5Tinsert(type.get(), "dataset", HOFFSET(BackReference, dataset), H5T_STD_REF_OBJ), "make a pair type");
    require(H5Tinsert(type.get(), "dimension", HOFFSET(BackReference, dimension), H5T_NATIVE_INT), "make a pair type");
    const hsize_t size = references.size();
    const Hdf5Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose, "make a list");
    const Hdf5Handle variable(H5Dopen2(group_.get(), name.c_str(), H5P_DEFAULT), H5Dclose, name);
    const Hdf5Handle attribute(
        H5Acreate2(variable.get(), "REFERENCE_LIST", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
        name);
    require(H5Awrite(attribute.get(), type.get(), references.data()), "write a list of variables");
  }
}

NetcdfWriter NetcdfWriter::group(const std::string& name) {
  const Hdf5Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "make properties");
  constexpr unsigned kOrdered = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  require(H5Pset_link_creation_order(properties.get(), kOrdered), "track the order");
  require(H5Pset_attr_creation_order(properties.get(), kOrdered), "track the order");
  require(H5Pset_obj_track_times(properties.get(), false), "leave dates out");
  return NetcdfWriter(
      {H5Gcreate2(group_.get(), name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose, name});
}

NetcdfFile::NetcdfFile() {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make properties");
  constexpr std::size_t kGrowth = std::size_t{1} << 20U;
  require(H5Pset_fapl_core(access.get(), kGrowth, false), "keep a file in memory");
  // The earliest format that can hold each object, so that every netCDF-4 library reads it. It also keeps the
  // superblock at version 0, without a checksum: H5Fget_file_image clears the "open for writing" flag of later ones and
  // leaves the checksum as it was (seen in HDF5 1.10.8), so that nobody can open the image.
  require(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18), "choose the format");
  const Hdf5Handle properties(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "make properties");
  constexpr unsigned kOrdered = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  require(H5Pset_link_creation_order(properties.get(), kOrdered), "track the order");
  require(H5Pset_attr_creation_order(properties.get(), kOrdered), "track the order");
  require(H5Pset_obj_track_times(properties.get(), false), "leave dates out");
  file_ =
      Hdf5Handle(H5Fcreate("clustersim-result", H5F_ACC_TRUNC, properties.get(), access.get()), H5Fclose, "the file");
}

NetcdfWriter NetcdfFile::root() {
  return NetcdfWriter({H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose, "the root group"});
}

std::vector<std::byte> NetcdfFile::image() {
  require(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), "complete the file");
  const ssize_t size = H5Fget_file_image(file_.get(), nullptr, 0);
  ensure(size > 0, "HDF5 could not say how large the file is");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  ensure(H5Fget_file_image(file_.get(), bytes.data(), bytes.size()) == size, "HDF5 could not hand the file over");
  return bytes;
}

}  // namespace clustersim
