#include "lua/command_line.h"

#include <charconv>
#include <cmath>

namespace trinity::lua {

const char* const kUsage =
    "usage: trinity [options] COMMAND [arguments]      run a command (below)\n"
    "       trinity [options] SCRIPT.lua [arguments]   run a script ('-': standard input)\n"
    "       trinity [options]                          the prompt\n"
    "       trinity help [NAME]                        a command, a chapter, a model, 'methods',\n"
    "                                                  'formats', a function of the library\n"
    "options:\n"
    "  -e CODE               run Lua code (may be repeated; a script may follow)\n"
    "  -l NAME               require a module and assign it to a global of that name\n"
    "  -i                    start the prompt afterwards\n"
    "  -j CMD, -O[LEVEL]     options of LuaJIT: -joff, -jv, -jdump, -O3\n"
    "  --threads N           worker threads (default: one per core); results do not depend on it\n"
    "  --no-strict           do not refuse globals that were never declared\n"
    "  --safe                for untrusted scripts: no io, os, ffi, debug; reads below the "
    "working\n"
    "                        directory, writes below the folder of its run\n"
    "  --write FOLDER        another folder that safe scripts read and write (may be repeated)\n"
    "  --memory-limit BYTES  of Lua values, and as much again for tensors and graphs: 64M, "
    "1.5Gi\n"
    "  --time-limit SECONDS  for each script; 2 s later the process is ended\n"
    "  --profile FILE        profile the script: folded stacks, and the hottest lines\n"
    "  --stop-on-usr1        SIGUSR1 stops the script cleanly, as Ctrl-C and SIGTERM do\n"
    "  -v, --version         print the version\n"
    "  -h, --help            print this text\n"
    "  --                    what follows is the script\n"
    "options of every command, and of every script that declares some, after its name:\n"
    "  --run NAME            the run's folder in --runs; 'none': no folder\n"
    "  --runs FOLDER         where folders of runs are (default: $TRINITY_RUNS, or runs)\n"
    "  --resume, --quiet     continue the interrupted run --run; print no progress\n"
    "  --help                this and the script's own\n"
    "Strict globals: scripts, files below a script's folder, -e and the prompt may only use "
    "globals\n"
    "that exist; declare with trinity.global(name, value) or rawset(_G, name, value). Packages\n"
    "(lua_modules, .luarocks, share/lua) are exempt.\n";

namespace {

const std::vector<std::string> kLongOptions = {"--threads",    "--no-strict", "--safe",
                                               "--write",      "--version",   "--memory-limit",
                                               "--time-limit", "--profile",   "--stop-on-usr1",
                                               "--help"};

// Those that scripts take (lib/trinity/command/options.lua).
const std::vector<std::string> kScriptOptions = {"--run", "--runs", "--resume", "--quiet"};

[[noreturn]] void refuse_option(const std::string& option) {
  for (const auto& of_scripts : kScriptOptions)
    if (option == of_scripts)
      throw UsageError(fmt::format(
          "option '{0}' belongs after the script: trinity SCRIPT.lua {0} ...", option));
  throw UsageError(fmt::format("unknown option '{}'{} (--help lists them)", option,
                               suggestion(option, kLongOptions)));
}

double parse_number(const std::string& option, const std::string& text, const char* expected) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (result.ec != std::errc() || result.ptr != end || !(value >= 0 && value <= 1e18))
    throw UsageError(fmt::format("{}: expected {}, got '{}'", option, expected, text));
  return value;
}

int parse_threads(const std::string& text) {
  const char* expected = "an integer from 0 to 4096";
  const double value = parse_number("--threads", text, expected);
  if (value != std::floor(value) || value > 4096)
    throw UsageError(fmt::format("--threads: expected {}, got '{}'", expected, text));
  return static_cast<int>(value);
}

/// One option word with its value, which is glued on ("-jv", "--threads=2") or the next word.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words) : words_(words) {}

  /// The next option word is ready in option(); false at the script or the end.
  bool next() {
    if (at_ >= words_.size() || !words_[at_].starts_with('-') || words_[at_] == "-") return false;
    const auto& word = words_[at_++];
    if (word == "--") return false;
    const bool is_long = word.starts_with("--");
    const auto end = is_long ? word.find('=') : size_t{2};
    option_ = word.substr(0, end);
    has_glued_ = end < word.size();
    glued_ = has_glued_ ? word.substr(is_long ? end + 1 : end) : "";
    return true;
  }

  const std::string& option() const { return option_; }

  std::string value() {
    if (has_glued_) return glued_;
    if (at_ >= words_.size()) throw UsageError(fmt::format("option '{}' needs a value", option_));
    return words_[at_++];
  }

  void refuse_value() const {
    if (has_glued_) throw UsageError(fmt::format("option '{}' takes no value", option_));
  }

  size_t position() const { return at_; }

 private:
  const std::vector<std::string>& words_;
  size_t at_ = 1;
  std::string option_, glued_;
  bool has_glued_ = false;
};

/// Options without a value; false when `option` is none of them.
bool set_flag(CommandLine& line, const Words& words) {
  const auto& option = words.option();
  if (option == "-i")
    line.interactive = true;
  else if (option == "-v" || option == "--version")
    line.version = true;
  else if (option == "-h" || option == "--help")
    line.help = true;
  else if (option == "--no-strict")
    line.options.strict = false;
  else if (option == "--safe")
    line.options.safe = true;
  else if (option == "--stop-on-usr1")
    line.stops_on_usr1 = true;
  else
    return false;
  words.refuse_value();
  return true;
}

/// Options with a value; false when `option` is none of them.
bool set_value(CommandLine& line, Words& words) {
  const auto option = words.option();
  if (option == "-e")
    line.actions.push_back({Action::Kind::code, words.value()});
  else if (option == "-l")
    line.actions.push_back({Action::Kind::module, words.value()});
  else if (option == "-j")
    line.actions.push_back({Action::Kind::jit, words.value()});
  else if (option == "--threads")
    line.threads = parse_threads(words.value());
  else if (option == "--write")
    line.options.writable_folders.push_back(words.value());
  else if (option == "--profile")
    line.profile = words.value();
  else if (option == "--memory-limit")
    line.options.memory_limit_bytes = parse_bytes(option, words.value());
  else if (option == "--time-limit")
    line.options.time_limit_s = parse_number(option, words.value(), "a number of seconds");
  else
    return false;
  return true;
}

}  // namespace

size_t parse_bytes(const std::string& option, const std::string& text) {
  const auto digits = text.find_last_of("0123456789.") + 1;
  auto suffix = text.substr(digits);
  if (suffix.ends_with('B')) suffix.pop_back();
  const char* expected = "a number of bytes, such as 64M or 1.5GiB";
  double value = parse_number(option, text.substr(0, digits), expected);
  if (!suffix.empty()) {
    const auto power = std::string_view("KMGT").find(suffix[0]);
    const bool binary = suffix.size() == 2 && suffix[1] == 'i';
    if (power == std::string_view::npos || (suffix.size() != 1 && !binary))
      throw UsageError(fmt::format("{}: expected {}, got '{}'", option, expected, text));
    value *= std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power) + 1);
  }
  if (value > 1e18)
    throw UsageError(fmt::format("{}: expected at most 1e18 bytes, got '{}'", option, text));
  return static_cast<size_t>(value);
}

CommandLine parse_command_line(const std::vector<std::string>& words_given) {
  CommandLine line;
  Words words(words_given);
  while (words.next()) {
    const auto& option = words.option();
    if (option.starts_with("-O")) {
      line.actions.push_back({Action::Kind::jit, words_given[words.position() - 1]});
      continue;
    }
    if (!set_flag(line, words) && !set_value(line, words)) refuse_option(option);
  }
  line.script = words.position();
  if (!line.options.safe && !line.options.writable_folders.empty())
    throw UsageError("--write needs --safe: other scripts open any file");
  if (line.options.safe && !line.profile.empty())
    throw UsageError("--profile cannot be used with --safe");
  if (line.options.safe)
    for (const auto& action : line.actions)
      if (action.kind == Action::Kind::jit)
        throw UsageError("-j and -O cannot be used with --safe");
  return line;
}

}  // namespace trinity::lua
