// Text files compiled into the program (catalog entries, library scenarios), so that the binary needs nothing beside
// it.
#pragma once

#include <string_view>

namespace clustersim {

struct EmbeddedFile {
  std::string_view name;  // path relative to the embedded folder: "gpus/h100-sxm.toml"
  std::string_view text;
};

}  // namespace clustersim
