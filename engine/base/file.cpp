#include "base/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace trinity {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw FileError(fmt::format("{}: {}: {}", path, what, std::strerror(code)));
}

}  // namespace

std::string read_file(const std::string& path) {
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
  const auto parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
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
