#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>

#include "base/confine.h"
#include "base/error.h"
#include "base/hold.h"
#include "base/stop.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

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

constexpr const char* kSeal = ".seal";

/// A name in an open folder.
struct Place {
  Descriptor folder;
  std::string name;
  int at() const { return folder.get(); }
};

/// The folder of a file to be written, opened once: later calls are relative to it. make_folders:
/// creates missing folders.
Place find_place(const std::string& path, bool make_folders = false) {
  refuse_hidden(path, "cannot write");
  if (path.find('\0') != std::string::npos)
    throw FileError("cannot write: the file name contains a zero byte");
  const auto parent = fs::path(path).parent_path();
  std::error_code error;
  if (make_folders && !parent.empty()) fs::create_directories(parent, error);
  if (error) fail_file(path, "cannot make its folder", error.value());
  Descriptor folder(
      call::open(AT_FDCWD, parent.empty() ? "." : parent.string(), O_PATH | O_DIRECTORY));
  if (!folder) fail_file(path, "cannot write", errno);
  return {std::move(folder), fs::path(path).filename()};
}

/// Removes a file or a folder with its contents. Returns 0 or errno.
int remove_at(int folder, const std::string& name);

/// Names in an open folder, without `.` and `..`. Returns 0 or errno.
int read_names(const Descriptor& folder, std::vector<std::string>& names) {
  const int copy = fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : fdopendir(copy), closedir);
  if (!entries) {
    const int code = errno;
    if (copy >= 0) close(copy);
    return code;
  }
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return 0;
}

/// Opens an entry that is a folder, not a link, for listing.
Descriptor open_listed(int folder, const std::string& name) {
  return Descriptor(call::open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
}

int remove_at(int folder, const std::string& name) {
  if (call::remove(folder, name) == 0) return 0;
  const int code_of_file =
      errno;  // a confined thread may be allowed to remove folders only: EACCES
  if (code_of_file != EISDIR && code_of_file != EPERM && code_of_file != EACCES)
    return code_of_file;
  std::vector<std::string> names;
  {
    const auto inner = open_listed(folder, name);
    if (!inner) return errno == ENOTDIR || errno == ELOOP ? code_of_file : errno;
    if (const int code = read_names(inner, names); code != 0) return code;
    for (const auto& one : names)
      if (const int code = remove_at(inner.get(), one); code != 0 && code != ENOENT) return code;
  }
  return call::remove(folder, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

/// Returns 0 or errno.
int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const auto written = call::write(file, content.data(), content.size());
    if (written < 0) return errno;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

/// Returns 0 or errno. Some file systems have no fsync: EINVAL.
int sync_file(int file) { return call::sync(file) == 0 || errno == EINVAL ? 0 : errno; }

/// A random name that list_folder() and safe scripts do not see, and that names the writing system:
/// .NAME.SYSTEM-RANDOM.part.
std::string hidden_name(const std::string& name) {
  constexpr size_t kMostOfName = 200;  // names are limited to 255 bytes
  uint64_t random = 0;
  while (getrandom(&random, sizeof random, 0) != sizeof random) continue;
  return fmt::format(".{}.{:08x}-{:016x}.part", name.substr(0, kMostOfName), system_tag(), random);
}

/// The system in such a name; none for other names.
std::optional<uint32_t> writer_of(std::string_view name) {
  constexpr std::string_view kEnding = ".part";
  constexpr size_t kTag = 8, kRandom = 16;
  if (!name.starts_with('.') || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  if (name.size() < kTag + kRandom + 3) return std::nullopt;
  const auto marks = name.substr(name.size() - kTag - kRandom - 2);
  uint32_t tag = 0;
  const auto read = std::from_chars(marks.data() + 1, marks.data() + 1 + kTag, tag, 16);
  const bool whole = read.ptr == marks.data() + 1 + kTag && marks.front() == '.' &&
                     marks[kTag + 1] == '-' &&
                     marks.substr(kTag + 2).find_first_not_of("0123456789abcdef") == marks.npos;
  return whole ? std::optional(tag) : std::nullopt;
}

/// True if nobody writes to a file of such a name any more: its lock is free. It must also be old
/// if it is a folder, which is locked a moment after its creation, or from another system, whose
/// locks may not be visible here. `held` keeps the lock, so that no writer gets it meanwhile.
bool is_abandoned(int folder, const std::string& name, uint32_t writer, Descriptor& held) {
  constexpr time_t kOldElsewhere_s = 24 * 3600, kOldFolder_s = 60;
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  struct stat about;
  if (fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const auto age_s = std::time(nullptr) - about.st_mtime;
  if (writer != system_tag() && age_s < kOldElsewhere_s) return false;
  if (S_ISREG(about.st_mode)) {
    held = Descriptor(call::open(folder, name, kFlags));
  } else if (S_ISDIR(about.st_mode)) {
    const auto inner = open_listed(folder, name);
    if (!inner || age_s < kOldFolder_s) return false;
    held = Descriptor(call::open(inner.get(), ".lock", kFlags));
    if (!held && errno == ENOENT) return true;
  }
  return held && lock_file(held.get(), false) == 0;
}

/// Removes leftovers of killed writers in a folder, as far as possible.
void clear_abandoned(const Place& place) {
  const Descriptor folder(call::open(place.at(), ".", O_RDONLY | O_DIRECTORY));
  std::vector<std::string> names;
  if (!folder || read_names(folder, names) != 0) return;
  for (const auto& name : names) {
    Descriptor held;
    const auto writer = writer_of(name);
    if (writer && is_abandoned(folder.get(), name, *writer, held)) remove_at(folder.get(), name);
  }
}

/// A temporary file or folder next to its target; removed unless it has replaced the target.
class Beside {
 public:
  explicit Beside(const Place& place) : place_(place) {}
  ~Beside() {
    if (made_) discard();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  /// Each returns 0 or errno.
  int make_file(std::string_view content, Durability durability, mode_t mode);
  int make_folder(const NewFiles& files, const std::string& seal);
  int take_place(unsigned flags = 0);
  /// held while it exists under the temporary name; for a created folder also afterwards
  Descriptor lock;

 private:
  int begin_file();
  void discard() noexcept;

  const Place& place_;
  std::string name_;
  bool made_ = false;
};

Descriptor make_new(int folder, const std::string& name) {
  return Descriptor(call::open(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
}

/// Listing a folder needs memory; without it, the folder stays and the next writer removes it.
void Beside::discard() noexcept {
  try {
    remove_at(place_.at(), name_);
  } catch (const std::bad_alloc&) {
  }
}

/// Fills a new file. `mode` 0: from the umask. Returns 0 or errno.
int fill(int file, std::string_view content, Durability durability, mode_t mode) {
  if (const int code = write_all(file, content); code != 0) return code;
  if (mode != 0 && fchmod(file, mode) != 0 && !is_confined()) return errno;
  return durability == Durability::synced ? sync_file(file) : 0;
}

/// Creates a file and its lock. If a cleaner removes it in between, another one is created. Without
/// locks nobody cleans.
int Beside::begin_file() {
  for (;;) {
    name_ = hidden_name(place_.name);
    lock = make_new(place_.at(), name_);
    if (!lock) return errno;
    made_ = true;
    struct stat about;
    const int code = lock_file(lock.get(), true);
    if (code != EAGAIN && (fstat(lock.get(), &about) != 0 || about.st_nlink > 0)) return 0;
    made_ = false;  // it is being removed
  }
}

int Beside::make_file(std::string_view content, Durability durability, mode_t mode) {
  if (const int code = begin_file(); code != 0) return code;
  if (const int code = fill(lock.get(), content, durability, mode); code != 0) return code;
  // Closing reports errors that some file systems find only then; the lock lasts as long as a
  // descriptor.
  Descriptor other(fcntl(lock.get(), F_DUPFD_CLOEXEC, 0));
  return other ? other.finish() : 0;
}

int Beside::make_folder(const NewFiles& files, const std::string& seal) {
  name_ = hidden_name(place_.name);
  if (call::make_folder(place_.at(), name_) != 0) return errno;
  made_ = true;
  const auto folder = open_listed(place_.at(), name_);
  if (!folder) return errno;
  lock = lock_new_folder(folder.get());
  for (const auto& [name, content] : files) {
    auto file = make_new(folder.get(), name);
    if (!file) return errno;
    if (const int code = fill(file.get(), content, Durability::synced, 0); code != 0) return code;
    if (const int code = file.finish(); code != 0) return code;
  }
  if (!seal.empty()) static_cast<void>(symlinkat(seal.c_str(), folder.get(), kSeal) == 0);
  return sync_file(folder.get());
}

int Beside::take_place(unsigned flags) {
  int got = call::rename(place_.at(), name_, place_.name, flags);
  if (got != 0 && flags != 0 && errno == EINVAL)  // a file system without such flags
    got = call::rename(place_.at(), name_, place_.name);
  if (got != 0) return errno;
  made_ = false;
  return 0;
}

/// Makes a rename durable. Returns 0 or errno.
int sync_folder(const Place& place) {
  const Descriptor folder(call::open(place.at(), ".", O_RDONLY | O_DIRECTORY));
  // A folder that is writable but not readable cannot be synced.
  if (!folder) return errno == EACCES ? 0 : errno;
  return sync_file(folder.get());
}

/// A file to be written: its location after following links, and what exists there.
struct Target {
  Place place;
  std::optional<struct stat> there;
  bool is_regular() const { return !there || S_ISREG(there->st_mode); }
};

Target find_target(const std::string& path) {
  Target target{find_place(path, true), {}};
  struct stat about;
  if (fstatat(target.place.at(), target.place.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0)
    return target;
  if (S_ISLNK(about.st_mode)) {
    std::error_code error;
    const auto place = fs::canonical(path, error);
    if (error) return target;  // a dangling link, which is replaced
    target.place = find_place(place.string());
    if (fstatat(target.place.at(), target.place.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0)
      return target;
  }
  target.there = about;
  return target;
}

void write_to_device(const std::string& path, const Place& place, std::string_view content) {
  Descriptor file(call::open(place.at(), place.name, O_WRONLY | O_NOFOLLOW));
  int code = file ? write_all(file.get(), content) : errno;
  if (code == 0) code = file.finish();
  if (code != 0) fail_file(path, "cannot write", code);
}

Descriptor open_with(const std::string& path, int flags) {
  refuse_hidden(path, "cannot read");
  Descriptor file(call::open(AT_FDCWD, path, O_RDONLY | flags));
  if (!file) fail_file(path, "cannot read", errno);
  return file;
}

/// Collects leftovers of killed writers below an open folder and removes them.
int clear(const Descriptor& folder) {
  std::vector<std::string> names;
  if (const int code = read_names(folder, names); code != 0) return code;
  for (const auto& name : names) {
    if (name.starts_with('.') && name.ends_with(".part")) {
      if (const int code = remove_at(folder.get(), name); code != 0 && code != ENOENT) return code;
    } else if (const auto inner = open_listed(folder.get(), name)) {
      if (const int code = clear(inner); code != 0) return code;
    }
  }
  return 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (file_ >= 0) close(file_);
}

int Descriptor::finish() {
  return close(std::exchange(file_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

void fail_file(const std::string& path, const char* what, int code) {
  const bool denied = is_confined() && (code == EACCES || code == EPERM || code == EXDEV);
  throw FileError("{}: {}: {}{}", path.empty() ? "''" : path, what, std::strerror(code),
                  denied ? " (" + confinement() + ")" : "");
}

namespace call {

int open(int folder, const std::string& name, int flags, mode_t mode) {
  return persist(Waits::yes, [&] { return openat(folder, name.c_str(), flags | O_CLOEXEC, mode); });
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

Descriptor open_to_read(const std::string& path) { return open_with(path, 0); }

Descriptor open_regular(const std::string& path) {
  auto file = open_with(path, O_NONBLOCK | O_NOCTTY);
  struct stat about;
  if (fstat(file.get(), &about) != 0) fail_file(path, "cannot read", errno);
  if (!S_ISREG(about.st_mode)) throw FileError(path + ": cannot read: not a file");
  return file;
}

std::string read_file(const std::string& path) {
  const auto file = open_to_read(path);
  std::string content;
  char buffer[1 << 16];
  ssize_t got;
  while ((got = call::read(file.get(), buffer, sizeof buffer)) > 0)
    content.append(buffer, static_cast<size_t>(got));
  if (got < 0) fail_file(path, "cannot read", errno);
  return content;
}

bool is_readable(const std::string& path) {
  refuse_hidden(path, "cannot read");
  const Descriptor file(call::open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!file && errno == EACCES && is_confined()) fail_file(path, "cannot read", EACCES);
  return static_cast<bool>(file);
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  refuse_hidden(path, "cannot list");
  const Descriptor folder(call::open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  int code = folder ? read_names(folder, names) : errno;
  if (code == ENOENT || code == ENOTDIR || (code == EACCES && !is_confined())) code = 0;
  if (code != 0) fail_file(path, "cannot list", code);
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::sort(names.begin(), names.end());
  return names;
}

void write_file(const std::string& path, std::string_view content, Durability durability) {
  const auto target = find_target(path);
  if (!target.is_regular()) return write_to_device(path, target.place, content);
  if (durability == Durability::synced) clear_abandoned(target.place);
  Beside beside(target.place);
  const mode_t mode = target.there ? target.there->st_mode & 07777 : 0;
  int code = beside.make_file(content, durability, mode);
  if (code == 0) code = beside.take_place();
  if (code == 0 && durability == Durability::synced) code = sync_folder(target.place);
  if (code != 0) fail_file(path, "cannot write", code);
}

void check_output(const std::string& path) {
  const auto target = find_target(path);
  int code = 0;
  if (!target.is_regular()) {  // a device or pipe
    if (S_ISDIR(target.there->st_mode))
      code = EISDIR;
    else if (faccessat(target.place.at(), target.place.name.c_str(), W_OK, 0) != 0)
      code = errno;
  } else {
    clear_abandoned(target.place);
    code = Beside(target.place).make_file("", Durability::unsynced, 0);
  }
  if (code != 0) fail_file(path, "cannot write", code);
}

void append_file(const std::string& path, std::string_view content, Durability durability) {
  const auto place = find_place(path);
  const Descriptor file(
      call::open(place.at(), place.name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0666));
  if (!file) fail_file(path, "cannot write", errno);
  const off_t before = lseek(file.get(), 0, SEEK_END);
  int code = write_all(file.get(), content);
  if (code == 0 && durability == Durability::synced) code = sync_file(file.get());
  if (code != 0) {
    // Removes a partial record after a full disk; if that fails, readers ignore it.
    if (before >= 0) static_cast<void>(!ftruncate(file.get(), before));
    fail_file(path, "cannot write", code);
  }
}

bool make_folder(const std::string& path, const NewFiles& files, const std::string& seal,
                 Hold hold) {
  const auto name = path.substr(0, path.find_last_not_of('/') + 1);
  const auto place = find_place(name, true);
  clear_abandoned(place);
  Beside beside(place);
  if (const int code = beside.make_folder(files, seal); code != 0)
    fail_file(path, "cannot make the folder", code);
  // An empty folder belongs to no run: its maker was killed.
  static_cast<void>(call::remove(place.at(), place.name, AT_REMOVEDIR));
  const int code = beside.take_place(RENAME_NOREPLACE);
  if (code == EEXIST || code == ENOTEMPTY || code == ENOTDIR) return false;
  if (code != 0) fail_file(path, "cannot make the folder", code);
  if (hold == Hold::yes) keep_lock(std::move(beside.lock));
  sync_folder(place);
  return true;
}

std::string read_seal(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(fs::path(path) / kSeal, error).string();
}

void remove_leftovers(const std::string& path) {
  const auto place = find_place(path);
  const auto folder = open_listed(place.at(), place.name);
  const int code = folder ? clear(folder) : errno;
  if (code != 0) fail_file(path, "cannot clear", code);
}

void remove_tree(const std::string& path) {
  const auto place = find_place(path);
  const int code = remove_at(place.at(), place.name);
  if (code != 0) fail_file(path, "cannot remove", code);
}

}  // namespace trinity
