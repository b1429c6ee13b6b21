#include "base/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const char* what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path, what, std::strerror(code)));
}

}  // namespace

void check_output(const std::string& path) {
  check_writable(path);
  const auto parent = fs::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) refuse(path, "cannot make its folder", error.value());
  struct stat there;
  const bool exists = stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) refuse(path, "cannot write", EISDIR);
  if (exists && !S_ISREG(there.st_mode)) {  // a device or pipe
    if (access(path.c_str(), W_OK) != 0) refuse(path, "cannot write", errno);
    return;
  }
  const auto target = exists ? fs::canonical(path, error) : fs::path(path);
  if (error) refuse(path, "cannot write", error.value());
  const auto trial = target.parent_path() / fmt::format(".trial.{}.part", getpid());
  const int file = open(trial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) refuse(path, "cannot write", errno);
  close(file);
  unlink(trial.c_str());
}

}  // namespace trinity
