// An output file that is either complete or not there: checked before the work, written beside, renamed at the end.
#include "scenarios/output_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

namespace fs = std::filesystem;

/// Holds back the signals that would end the program between making a temporary file and removing it. They are
/// delivered when this goes out of scope.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// A new file beside the target, removed again unless renamed into place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) {
    name_ = (folder_of(target) / fmt::format(".{}.XXXXXX", fs::path(target).filename().string())).string();
    descriptor_ = mkostemp(name_.data(), O_CLOEXEC);
    error_ = descriptor_ < 0 ? errno : 0;
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (error_ == 0 && !renamed_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] int error() const { return error_; }

  /// Each returns 0 or the system's error number.
  [[nodiscard]] int write(std::span<const std::byte> content) const {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      content = content.subspan(static_cast<std::size_t>(written));
    }
    return 0;
  }
  int rename_to(const std::string& target) {
    // mkostemp makes the file private; give it the permissions that an ordinary new file would have.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(descriptor_, 0666 & ~mask) != 0 || ::fsync(descriptor_) != 0) return errno;
    if (::rename(name_.c_str(), target.c_str()) != 0) return errno;
    renamed_ = true;
    // The new name itself must survive a power cut too; a file system that cannot promise it is no reason to fail.
    const int folder = ::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      ::fsync(folder);
      ::close(folder);
    }
    return 0;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  int error_ = 0;
  bool renamed_ = false;
};

std::string nearest_folder(const fs::path& folder) {
  std::error_code error;
  const fs::path parent = folder_of(folder.string());
  std::vector<std::string> names;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (entry->is_directory(unreadable)) names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return did_you_mean(folder.filename().string(), names);
}

}  // namespace

OutputFile::OutputFile(std::string path, std::string_view option) : path_(std::move(path)), option_(option) {
  if (path_.empty()) bad_input("{}: the file name is empty", option_);
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (fs::is_directory(status) || path_.ends_with('/')) {
    bad_input("{} {}: is a folder; expected the name of a file", option_, path_);
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    bad_input("{} {}: is not an ordinary file, and would be replaced", option_, path_);
  }
  // A link is written through: what it points to is replaced, not the link.
  if (fs::is_symlink(fs::symlink_status(path_, error))) path_ = fs::weakly_canonical(path_, error).string();
  const fs::path folder = folder_of(path_);
  if (!fs::is_directory(folder, error)) {
    bad_input("{} {}: the folder {} does not exist{}", option_, path_, folder.string(), nearest_folder(folder));
  }
  const SignalsHeld held;
  const TemporaryFile probe(path_);
  if (probe.error() != 0) {
    bad_input("{} {}: cannot write into {}: {}", option_, path_, folder.string(), std::strerror(probe.error()));
  }
}

void OutputFile::write(std::span<const std::byte> content) const {
  const SignalsHeld held;
  TemporaryFile file(path_);
  int error = file.error();
  if (error == 0) error = file.write(content);
  if (error == 0) error = file.rename_to(path_);
  if (error != 0) bad_input("{} {}: writing failed: {}", option_, path_, std::strerror(error));
}

void OutputFile::write(std::string_view text) const { write(std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace clustersim
