// Writes HDF5 in the form that netCDF-4 gives it: dimension scales, attributes, variable-length UTF-8 strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clustersim {

/// An HDF5 identifier that closes itself. `id` is HDF5's hid_t, a 64-bit integer since version 1.10.
class Hdf5Handle {
 public:
  using Close = int (*)(std::int64_t);
  Hdf5Handle() = default;
  /// Throws BrokenContract naming `what` when HDF5 gave no identifier: files are built in memory, so that only a fault
  /// of this program can be the reason.
  Hdf5Handle(std::int64_t id, Close close, std::string_view what);
  ~Hdf5Handle();
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  [[nodiscard]] std::int64_t get() const { return id_; }

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

/// One group: its dimensions, variables and attributes. A dimension must be added before the variables that use it, and
/// is known in this group only. finish() last.
class NetcdfWriter {
 public:
  explicit NetcdfWriter(Hdf5Handle group) : group_(std::move(group)) {}

  void attribute(std::string_view name, std::string_view text);
  void attribute(std::string_view name, std::int64_t value);

  // Dimensions are coordinate variables. None may be empty.
  void text_dimension(const std::string& name, const std::vector<std::string>& values, std::string_view description);
  void integer_dimension(const std::string& name, const std::vector<std::int64_t>& values, std::string_view units,
                         std::string_view description);

  // Values in C order; no dimensions for a scalar.
  void numbers(std::string_view name, const std::vector<std::string>& dimensions, const std::vector<double>& values,
               std::string_view units, std::string_view description);
  void integers(std::string_view name, const std::vector<std::string>& dimensions,
                const std::vector<std::int64_t>& values, std::string_view units, std::string_view description);
  void texts(std::string_view name, const std::vector<std::string>& dimensions, const std::vector<std::string>& values,
             std::string_view description);

  NetcdfWriter group(const std::string& name);
  /// Tells every dimension which variables use it.
  void finish();

 private:
  struct Reference {
    std::string variable;
    int position;
  };
  struct Dimension {
    std::size_t size = 0;
    std::vector<Reference> users;
  };
  Hdf5Handle create(const std::string& name, const std::vector<std::string>& dimensions, std::size_t values,
                    const Hdf5Handle& type);
  void describe(const Hdf5Handle& variable, std::string_view units, std::string_view description);
  void make_dimension(const Hdf5Handle& variable, const std::string& name, std::size_t size);
  void refer_to_dimensions(const Hdf5Handle& variable, const std::string& name,
                           const std::vector<std::string>& dimensions);

  Hdf5Handle group_;
  std::map<std::string, Dimension> dimensions_;
};

/// A file that exists in memory only, until someone writes its image.
class NetcdfFile {
 public:
  NetcdfFile();
  NetcdfWriter root();
  [[nodiscard]] std::vector<std::byte> image();

 private:
  Hdf5Handle file_;
};

}  // namespace clustersim
