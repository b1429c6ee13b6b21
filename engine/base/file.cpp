#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

struct Restriction {
  std::vector<fs::path> allowed;  // the working directory first
  std::vector<fs::path> readable;
};
thread_local std::optional<Restriction> t_restriction;

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

bool is_below_any(const fs::path& path, const std::vector<fs::path>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const fs::path& folder) { return is_below(path, folder); });
}

/// A name as the system will see it. C's functions end it at the first zero byte.
fs::path resolved(const std::string& path, const char* verb) {
  if (path.find('\0') != std::string::npos)
    throw FileError(fmt::format("cannot {}: a zero byte in the name of a file", verb));
  std::error_code error;
  auto absolute = fs::absolute(path.empty() ? "." : path, error);
  if (!error) absolute = fs::weakly_canonical(absolute, error);
  if (error) throw FileError(fmt::format("{}: cannot {}: {}", path, verb, error.message()));
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute;
}

bool is_hidden(const fs::path& path, const fs::path& folder) {
  const auto inner = path.lexically_relative(folder);
  return std::any_of(inner.begin(), inner.end(), [](const fs::path& part) {
    return part.string().starts_with('.') && part != ".";
  });
}

/// Refuses what is in no allowed folder, or hidden in one.
void check_allowed(const std::string& path, const fs::path& place, const char* verb) {
  const auto& allowed = t_restriction->allowed;
  bool below = false;
  for (const auto& folder : allowed) {
    if (!is_below(place, folder)) continue;
    if (!is_hidden(place, folder)) return;
    below = true;
  }
  if (below) throw FileError(fmt::format("{}: cannot {}: a hidden file", path, verb));
  throw FileError(fmt::format(
      "{}: cannot {}: not below the working directory{}, which a safe script may not leave", path,
      verb, allowed.size() > 1 ? " or a folder given with --allow" : ""));
}

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path, what, std::strerror(code)));
}

/// An open file, closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  explicit operator bool() const { return file_ >= 0; }
  int get() const { return file_; }
  /// Closes it now; 0 or the error's number.
  int finish() { return close(std::exchange(file_, -1)) == 0 ? 0 : errno; }

 private:
  int file_;
};

/// What is written beside a file goes where it did not take the file's place.
struct Removed {
  fs::path path;
  ~Removed() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// 0 or the error's number.
int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const auto written = write(file, content.data(), content.size());
    if (written >= 0)
      content.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

/// A name in the same folder that list_folder() and safe scripts do not see, and that no other
/// process or thread takes.
fs::path hidden_beside(const fs::path& target) {
  static std::atomic<uint64_t> count{0};
  constexpr size_t kMostOfName = 200;  // names end at 255 bytes
  return target.parent_path() / fmt::format(".{}.{}-{}.part",
                                            target.filename().string().substr(0, kMostOfName),
                                            getpid(), ++count);
}

/// 0 or the error's number. Some file systems have no fsync: EINVAL.
int sync_file(int file) { return fsync(file) == 0 || errno == EINVAL ? 0 : errno; }

/// Makes a file with all of `content`; `mode` 0: as the umask says. 0 or the error's number.
int write_whole(const fs::path& path, std::string_view content, Durability durability,
                mode_t mode) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return errno;
  if (const int code = write_all(file.get(), content); code != 0) return code;
  if (mode != 0 && fchmod(file.get(), mode) != 0) return errno;
  if (durability == Durability::synced)
    if (const int code = sync_file(file.get()); code != 0) return code;
  return file.finish();
}

/// Makes a rename last. 0 or the error's number.
int sync_folder(const fs::path& folder) {
  const Descriptor file(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC));
  // A folder that may be written but not read cannot be synced.
  if (!file) return errno == EACCES ? 0 : errno;
  return sync_file(file.get());
}

void write_to_device(const std::string& path, std::string_view content) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  int code = file ? write_all(file.get(), content) : errno;
  if (code == 0) code = file.finish();
  if (code != 0) fail(path, "cannot write", code);
}

}  // namespace

void restrict_files(const std::vector<std::string>& allowed,
                    const std::vector<std::string>& readable) {
  Restriction restriction{{fs::canonical(".")}, {}};
  for (const auto& folder : allowed) {
    if (!fs::is_directory(folder)) fail(folder, "cannot allow it to safe scripts", ENOTDIR);
    restriction.allowed.push_back(fs::canonical(folder));
  }
  for (const auto& folder : readable) restriction.readable.push_back(fs::weakly_canonical(folder));
  t_restriction = std::move(restriction);
}

void check_readable(const std::string& path) {
  if (!t_restriction) return;
  const auto place = resolved(path, "read");
  if (is_below_any(place, t_restriction->readable)) return;
  check_allowed(path, place, "read");
}

void check_writable(const std::string& path) {
  if (!t_restriction) return;
  const auto place = resolved(path, "write");
  if (is_below_any(place, t_restriction->readable))
    throw FileError(fmt::format("{}: cannot write: a file of trinity", path));
  check_allowed(path, place, "write");
  if (place == t_restriction->allowed.front())
    throw FileError(fmt::format("{}: cannot write: the working directory itself", path));
}

std::string read_file(const std::string& path) {
  check_readable(path);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) fail(path, "cannot read", errno);
  std::string content;
  char buffer[1 << 16];
  size_t got;
  while ((got = std::fread(buffer, 1, sizeof buffer, file)) > 0) content.append(buffer, got);
  const int code = std::ferror(file) ? errno : 0;
  std::fclose(file);
  if (code) fail(path, "cannot read", code);
  return content;
}

void write_file(const std::string& path, std::string_view content, Durability durability) {
  check_writable(path);
  const auto parent = fs::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) fail(path, "cannot make its folder", error.value());
  struct stat there;
  const bool exists = stat(path.c_str(), &there) == 0;
  // Devices and pipes are written to, not replaced; of a link the file that it leads to is.
  if (exists && !S_ISREG(there.st_mode)) return write_to_device(path, content);
  const auto target = exists ? fs::canonical(path, error) : fs::path(path);
  if (error) fail(path, "cannot write", error.value());
  const auto beside = hidden_beside(target);
  const Removed removed{beside};
  int code = write_whole(beside, content, durability, exists ? there.st_mode & 07777 : 0);
  if (code == 0 && std::rename(beside.c_str(), target.c_str()) != 0) code = errno;
  if (code == 0 && durability == Durability::synced) code = sync_folder(target.parent_path());
  if (code != 0) fail(path, "cannot write", code);
}

void append_file(const std::string& path, std::string_view content, Durability durability) {
  check_writable(path);
  const Descriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file) fail(path, "cannot write", errno);
  const off_t before = lseek(file.get(), 0, SEEK_END);
  int code = write_all(file.get(), content);
  if (code == 0 && durability == Durability::synced) code = sync_file(file.get());
  if (code != 0) {
    // No torn record stays where the disk was full; where this fails, readers leave it out.
    if (before >= 0) static_cast<void>(!ftruncate(file.get(), before));
    fail(path, "cannot write", code);
  }
}

bool make_folder(const std::string& path, const std::string& first, std::string_view content) {
  check_writable(path);
  const fs::path target =
      fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  if (error) fail(path, "cannot make its folder", error.value());
  const auto beside = hidden_beside(target);
  const Removed removed{beside};
  if (mkdir(beside.c_str(), 0777) != 0) fail(path, "cannot make the folder", errno);
  if (const int code = write_whole(beside / first, content, Durability::synced, 0); code != 0)
    fail(path, "cannot make the folder", code);
  if (std::rename(beside.c_str(), target.c_str()) == 0) {
    sync_folder(target.parent_path());
    return true;
  }
  const int code = errno;
  if (code == EEXIST || code == ENOTEMPTY || code == ENOTDIR) return false;
  fail(path, "cannot make the folder", code);
}

void remove_leftovers(const std::string& path) {
  check_writable(path);
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    const auto name = at->path().filename().string();
    if (name.starts_with('.') && name.ends_with(".part")) found.push_back(at->path());
  }
  for (const auto& leftover : found) {
    if (error) break;
    fs::remove_all(leftover, error);
  }
  if (error) fail(path, "cannot clear", error.value());
}

void remove_tree(const std::string& path) {
  check_writable(path);
  std::error_code error;
  const auto removed = fs::remove_all(path, error);
  if (error) fail(path, "cannot remove", error.value());
  if (removed == 0) fail(path, "cannot remove", ENOENT);
}

}  // namespace trinity
