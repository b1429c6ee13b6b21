// The `trinity` command: runs Lua scripts over the engine.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "lua/module.h"
#include "lua/runtime.h"

namespace {

constexpr const char* kUsage =
    "usage: trinity [options] SCRIPT.lua [arguments]   run a script\n"
    "       trinity [options] NAME [arguments]         run scripts/NAME.lua\n"
    "       trinity -e CODE                            run a piece of Lua\n"
    "       trinity help | --help | --version\n"
    "options:\n"
    "  --threads N   worker threads (default: one per core); results do not depend on it\n";

struct UsageError : trinity::Error {
  using Error::Error;
};

std::vector<std::string> script_names(const std::string& home) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(home + "/scripts"))
    if (entry.path().extension() == ".lua") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A path as it is, or the name of a script in scripts/.
std::string find_script(const std::string& word, const std::string& home) {
  if (word == "-" || std::filesystem::exists(word)) return word;
  if (word.find('/') == std::string::npos && !word.ends_with(".lua")) {
    const auto names = script_names(home);
    const auto path = fmt::format("{}/scripts/{}.lua", home, word);
    if (std::filesystem::exists(path)) return path;
    throw UsageError(fmt::format("no script '{}'{} (known: {})", word,
                                 trinity::suggestion(word, names), fmt::join(names, ", ")));
  }
  throw trinity::FileError(fmt::format("{}: no such script", word));
}

void print_help(const std::string& home) {
  std::fputs(kUsage, stdout);
  fmt::print("scripts:\n");
  for (const auto& name : script_names(home)) fmt::print("  {}\n", name);
  fmt::print("every script answers --help\n");
}

int run(const std::vector<std::string>& words) {
  size_t at = 1;
  std::string code;
  bool has_code = false;
  for (; at < words.size() && words[at].starts_with("-") && words[at] != "-"; ++at) {
    const auto& word = words[at];
    const bool has_value = at + 1 < words.size();
    if (word == "--help" || word == "-h") {
      print_help(trinity::lua::find_home());
      return 0;
    }
    if (word == "--version") {
      fmt::print("trinity {} ({})\n", TRINITY_VERSION, trinity::describe_torch().text);
      return 0;
    }
    if (word == "--threads" && has_value) {
      const auto& value = words[++at];
      if (value.empty() || value.size() > 4 ||
          value.find_first_not_of("0123456789") != std::string::npos)
        throw UsageError(fmt::format("--threads: expected a number, got '{}'", value));
      trinity::lua::set_threads(std::stoi(value));
    } else if (word == "-e" && has_value) {
      code = words[++at];
      has_code = true;
    } else {
      throw UsageError(fmt::format("unknown option '{}'\n{}", word, kUsage));
    }
  }
  if (!has_code && at >= words.size()) throw UsageError(std::string("no script given\n") + kUsage);
  const auto home = trinity::lua::find_home();
  if (!has_code && words[at] == "help") {
    print_help(home);
    return 0;
  }
  trinity::lua::Runtime runtime(home);
  if (has_code) {
    runtime.set_arguments("-e", {words.begin() + static_cast<std::ptrdiff_t>(at), words.end()},
                          {words[0]});
    return runtime.run_text(code, "=(command line)");
  }
  const auto script = find_script(words[at], home);
  const std::vector<std::string> arguments(words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                           words.end());
  runtime.set_arguments(script, arguments,
                        {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at)});
  return runtime.run_file(script, arguments);
}

}  // namespace

int main(int count, char** words) {
  // Whole lines at once also into a file or pipe, in order with what goes to standard error.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run({words, words + count});
  } catch (const UsageError& error) {
    std::fprintf(stderr, "trinity: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trinity: %s\n", error.what());
    return 1;
  }
}
