#include "base/file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.h"

namespace trinity {
namespace {

namespace fs = std::filesystem;

struct Restriction {
  fs::path working;
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

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path, what, std::strerror(code)));
}

}  // namespace

void restrict_files(const std::vector<std::string>& readable) {
  Restriction restriction{fs::canonical("."), {}};
  for (const auto& folder : readable) restriction.readable.push_back(fs::weakly_canonical(folder));
  t_restriction = std::move(restriction);
}

void check_readable(const std::string& path) {
  if (!t_restriction) return;
  const auto place = resolved(path, "read");
  if (is_below(place, t_restriction->working) || is_below_any(place, t_restriction->readable))
    return;
  throw FileError(
      fmt::format("{}: cannot read: not below the working directory, which a safe script may not "
                  "leave",
                  path));
}

void check_writable(const std::string& path) {
  if (!t_restriction) return;
  const auto refuse = [&](const char* why) {
    throw FileError(fmt::format("{}: cannot write: {}", path, why));
  };
  const auto place = resolved(path, "write");
  if (!is_below(place, t_restriction->working) || place == t_restriction->working)
    refuse("not below the working directory, which a safe script may not leave");
  if (is_below_any(place, t_restriction->readable)) refuse("a file of trinity");
  for (const auto& part : place.lexically_relative(t_restriction->working))
    if (part.string().starts_with('.')) refuse("safe scripts write no hidden files");
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

void write_file(const std::string& path, std::string_view content) {
  check_writable(path);
  const auto parent = fs::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) fail(path, "cannot make its folder", error.value());
  const std::string beside = fmt::format("{}.{}.part", path, getpid());
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  if (!file) fail(path, "cannot write", errno);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(beside.c_str(), path.c_str()) != 0) {
    const int code = errno;
    std::remove(beside.c_str());
    fail(path, "cannot write", code);
  }
}

}  // namespace trinity
