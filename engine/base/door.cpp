#include "base/door.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/stop.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

/// A folder of restricted threads: its name without links, and its descriptor.
struct Known {
  fs::path path;
  std::shared_ptr<const Descriptor> folder;
};

struct Restriction {
  std::vector<Known> writable, readable;
  Known start;               // the working directory
  std::optional<Known> own;  // the run's folder
  fs::path program;
};
thread_local std::optional<Restriction> t_restriction;

constexpr std::ptrdiff_t kMostFolders = 64;
constexpr int kMostTries = 1000;

std::atomic<int64_t> g_calls{0}, g_failing{0};
std::atomic<int> g_code{0};

/// True if this call is to fail (tests).
bool fails() {
  if (g_calls.fetch_add(1, std::memory_order_relaxed) + 1 != g_failing) return false;
  errno = g_code;
  return true;
}

/// Whether Ctrl-C ends an interrupted call: yes for calls that wait for others, no for calls that
/// save data.
enum class Waits { no, yes };

/// Repeats a system call after EINTR.
template <class Call>
auto persist(Waits waits, const Call& call) -> decltype(call()) {
  for (bool first = true;; first = false) {
    const auto got = first && fails() ? -1 : call();
    if (got >= 0 || errno != EINTR) return got;
    if (waits == Waits::yes) poll_stop();
  }
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

/// The folder of the library that contains this code.
fs::path program_folder() {
  Dl_info own;
  std::error_code error;
  if (dladdr(reinterpret_cast<void*>(&program_folder), &own) == 0) return {};
  const auto file = fs::canonical(own.dli_fname, error);
  return error ? fs::path() : file.parent_path();
}

std::optional<Known> known(const fs::path& path) {
  Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return std::nullopt;
  return Known{path, std::make_shared<const Descriptor>(std::move(folder))};
}

/// The path as the system sees it. C functions end it at the first zero byte.
fs::path resolved(const std::string& path, const char* verb) {
  if (path.find('\0') != std::string::npos)
    throw ForbiddenFile(fmt::format("cannot {}: the file name contains a zero byte", verb));
  std::error_code error;
  auto absolute = fs::absolute(path.empty() ? "." : path, error);
  if (!error) absolute = fs::weakly_canonical(absolute, error);
  if (error) throw ForbiddenFile(fmt::format("{}: cannot {}: {}", path, verb, error.message()));
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute;
}

/// Refuses hidden names in a permitted folder, and paths that are too deep.
void check_inner(const std::string& path, const fs::path& inner, const char* verb) {
  const auto hides = [](const fs::path& part) {
    return part.string().starts_with('.') && part != ".";
  };
  if (std::any_of(inner.begin(), inner.end(), hides))
    throw ForbiddenFile(fmt::format("{}: cannot {}: a hidden file", path, verb));
  if (std::distance(inner.begin(), inner.end()) > kMostFolders)
    throw ForbiddenFile(
        fmt::format("{}: cannot {}: more than {} folders deep", path, verb, kMostFolders));
}

/// The deepest folder of `folders` that contains `place`.
const Known* holder(const fs::path& place, const std::vector<const Known*>& folders) {
  const Known* found = nullptr;
  for (const auto* folder : folders)
    if (is_below(place, folder->path) &&
        (!found || folder->path.native().size() > found->path.native().size()))
      found = folder;
  return found;
}

[[noreturn]] void refuse_outside(const std::string& path, const fs::path& place, const char* verb) {
  const auto& fence = *t_restriction;
  if (is_below(place, fence.start.path))
    throw ForbiddenFile(
        fmt::format("{}: cannot {}: neither below the folder of its run nor below "
                    "one given with --write, which a safe script may not leave",
                    path, verb));
  throw ForbiddenFile(fmt::format(
      "{}: cannot {}: not below the working directory{}, which a safe script may not leave", path,
      verb, fence.writable.empty() ? "" : " or a folder given with --write"));
}

/// The permitted folder through which a restricted thread reaches a file.
const Known& permitted(const std::string& path, const fs::path& place, Purpose purpose) {
  const auto& fence = *t_restriction;
  const bool reads = purpose == Purpose::read;
  const char* verb = reads ? "read" : "write";
  std::vector<const Known*> folders, library;
  for (const auto& folder : fence.readable) library.push_back(&folder);
  if (const auto* ours = holder(place, library)) {
    if (reads) return *ours;
    throw ForbiddenFile(fmt::format("{}: cannot write: a file of trinity", path));
  }
  if (!reads && !fence.program.empty() && is_below(place, fence.program))
    throw ForbiddenFile(fmt::format("{}: cannot write: in the folder of the program", path));
  for (const auto& folder : fence.writable) folders.push_back(&folder);
  if (purpose != Purpose::write) folders.push_back(&fence.start);
  if (fence.own) folders.push_back(&*fence.own);
  const auto* found = holder(place, folders);
  if (!found) refuse_outside(path, place, verb);
  if (!reads && place == found->path && purpose == Purpose::write)
    throw ForbiddenFile(fmt::format("{}: cannot write: the folder itself", path));
  check_inner(path, place.lexically_relative(found->path), verb);
  return *found;
}

/// Opens the folder `inner` below another, with the system's guarantee to stay below it.
Descriptor walk(const std::string& path, int from, const fs::path& inner, bool make_folders) {
  const auto open = [&](const fs::path& below) {
    return Descriptor(
        call::open_beneath(from, below.empty() ? "." : below.native(), O_PATH | O_DIRECTORY));
  };
  Descriptor at = open(inner);
  if (!at && errno == ENOENT && make_folders) {
    fs::path below;
    at = open(below);
    for (const auto& step : inner) {
      if (!at) break;
      if (call::make_folder(at.get(), step) != 0 && errno != EEXIST)
        fail_file(path, "cannot make its folder", errno);
      at = open(below /= step);
    }
  }
  if (!at) fail_file(path, make_folders ? "cannot make its folder" : "cannot open", errno);
  return at;
}

/// Refuses run records, which scripts must not write.
void refuse_record(const std::string& path, const Place& place) {
  struct stat about;
  if (place.name == "run.json" || (place.name == "script.lua" &&
                                   fstatat(place.at, "run.json", &about, AT_SYMLINK_NOFOLLOW) == 0))
    throw ForbiddenFile(
        fmt::format("{}: cannot write: run records are written by trinity alone", path));
}

Place find_fenced(const std::string& path, Purpose purpose, bool make_folders) {
  const auto place = resolved(path, purpose == Purpose::read ? "read" : "write");
  const auto& from = permitted(path, place, purpose);
  const auto inner = place.lexically_relative(from.path);
  Place found{walk(path, from.folder->get(), inner.parent_path(), make_folders), 0,
              inner.filename()};
  found.at = found.folder.get();
  if (purpose == Purpose::write) refuse_record(path, found);
  return found;
}

/// The folder of an unrestricted path: its links are the owner's.
Place find_free(const std::string& path, bool make_folders) {
  const auto parent = fs::path(path).parent_path();
  std::error_code error;
  if (make_folders && !parent.empty()) fs::create_directories(parent, error);
  if (error) fail_file(path, "cannot make its folder", error.value());
  Descriptor folder(
      call::open(AT_FDCWD, parent.empty() ? "." : parent.string(), O_PATH | O_DIRECTORY));
  if (!folder) fail_file(path, "cannot write", errno);
  const int at = folder.get();
  return {std::move(folder), at, fs::path(path).filename()};
}

}  // namespace

Descriptor::~Descriptor() {
  if (file_ >= 0) close(file_);
}

int Descriptor::finish() {
  return close(std::exchange(file_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

void fail_file(const std::string& path, const char* what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path.empty() ? "''" : path, what, std::strerror(code)));
}

void restrict_files(const std::vector<std::string>& writable,
                    const std::vector<std::string>& readable) {
  Restriction fence;
  const auto start = known(fs::canonical("."));
  if (!start) fail_file(".", "cannot open the working directory", errno);
  fence.start = *start;
  if (!Descriptor(call::open_beneath(start->folder->get(), ".", O_PATH | O_DIRECTORY)))
    throw Error(fmt::format(
        "--safe: expected a system that keeps files below a folder (openat2, Linux 5.6), got: {}",
        std::strerror(errno)));
  fence.program = program_folder();
  for (const auto& folder : writable) {
    std::error_code error;
    const auto found = known(fs::canonical(folder, error));
    if (error || !found) fail_file(folder, "cannot allow it to safe scripts", ENOTDIR);
    fence.writable.push_back(*found);
  }
  for (const auto& folder : readable)
    if (const auto found = known(fs::weakly_canonical(folder))) fence.readable.push_back(*found);
  t_restriction = std::move(fence);
}

void own_folder(const std::string& path) {
  if (!t_restriction) return;
  const auto place = resolved(path, "write");
  permitted(path, place, Purpose::record);
  if (const auto found = known(place)) t_restriction->own = *found;
}

bool is_restricted() { return t_restriction.has_value(); }

Place find_place(const std::string& path, Purpose purpose, bool make_folders) {
  if (t_restriction) return find_fenced(path, purpose, make_folders);
  if (purpose != Purpose::read) return find_free(path, make_folders);
  return {Descriptor(), AT_FDCWD, path};
}

namespace {

Descriptor open_with(const std::string& path, int flags) {
  const auto place = find_place(path, Purpose::read);
  const int links = place.at == AT_FDCWD ? 0 : O_NOFOLLOW;
  Descriptor file(call::open(place.at, place.name, O_RDONLY | flags | links));
  if (!file) fail_file(path, "cannot read", errno);
  return file;
}

}  // namespace

Descriptor open_to_read(const std::string& path) { return open_with(path, 0); }

Descriptor open_regular(const std::string& path) {
  auto file = open_with(path, O_NONBLOCK | O_NOCTTY);
  struct stat about;
  if (fstat(file.get(), &about) != 0) fail_file(path, "cannot read", errno);
  if (!S_ISREG(about.st_mode)) throw FileError(path + ": cannot read: not a file");
  return file;
}

namespace call {

int open(int folder, const std::string& name, int flags, mode_t mode) {
  return persist(Waits::yes, [&] { return openat(folder, name.c_str(), flags | O_CLOEXEC, mode); });
}

int open_beneath(int folder, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int i = 0;; ++i) {  // EAGAIN: folders were moved meanwhile
    const auto got = persist(
        Waits::yes, [&] { return syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how); });
    if (got >= 0 || errno != EAGAIN || i == kMostTries) return static_cast<int>(got);
  }
}

ssize_t read(int file, void* to, size_t bytes) {
  return persist(Waits::yes, [&] { return ::read(file, to, bytes); });
}

ssize_t write(int file, const void* from, size_t bytes) {
  return persist(Waits::no, [&] { return ::write(file, from, bytes); });
}

int sync(int file) {
  return persist(Waits::no, [&] { return fsync(file); });
}

int rename(int folder, const std::string& from, const std::string& to, unsigned flags) {
  return persist(Waits::no,
                 [&] { return renameat2(folder, from.c_str(), folder, to.c_str(), flags); });
}

int make_folder(int folder, const std::string& name) {
  return persist(Waits::no, [&] { return mkdirat(folder, name.c_str(), 0777); });
}

int remove(int folder, const std::string& name, int flags) {
  return persist(Waits::no, [&] { return unlinkat(folder, name.c_str(), flags); });
}

}  // namespace call

int64_t fail_call(int64_t nth, int code) {
  g_code = code;
  g_failing = nth;
  return g_calls.exchange(0);
}

}  // namespace trinity
