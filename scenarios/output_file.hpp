// An output file that is either complete or not there: checked before the work, written beside, renamed at the end.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace clustersim {

class OutputFile {
 public:
  /// Checks that the path can be written, without leaving anything behind. `option` is what the user wrote
  /// ("--output"), for messages. Throws BadInput: a folder, a device, a missing folder (with the nearest name), no
  /// permission.
  OutputFile(std::string path, std::string_view option);

  /// Replaces the file by `content`. Whatever happens on the way (a full disk, a signal), the old file stays or the new
  /// one is complete, and no temporary file is left. Throws BadInput when the system refuses.
  void write(std::span<const std::byte> content) const;
  void write(std::string_view text) const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string option_;
};

}  // namespace clustersim
