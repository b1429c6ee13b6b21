// The `trinity` command: runs Lua scripts over the engine.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/late.h"
#include "base/utf8.h"
#include "launch/launch_variables.h"
#include "lua/bind/module.h"
#include "lua/command_line.h"
#include "lua/host/interrupt.h"
#include "lua/runtime.h"

namespace {

namespace fs = std::filesystem;
using trinity::Runtime;
using trinity::lua::Action;
using trinity::lua::CommandLine;
using trinity::lua::UsageError;

/// The file of the script that a word names: a command in scripts/, whatever the working directory
/// contains, or a path. Empty if the word is neither.
std::string find_script(const std::string& word, const std::string& home) {
  const bool is_name = word.find('/') == std::string::npos;
  if (auto command = fmt::format("{}/scripts/{}.lua", home, word); is_name && fs::exists(command))
    return command;
  const bool is_folder = fs::is_directory(word);
  if (word == "-" || (fs::exists(word) && !is_folder)) return word;
  if (is_name && !word.ends_with(".lua")) return "";
  throw trinity::FileError("{}: {}", word, is_folder ? "is a folder, expected a script" : "no such script");
}

/// trinity help, which prints the usage first where it has no arguments.
int help(Runtime& runtime, const std::vector<std::string>& arguments) {
  if (arguments.empty()) std::fputs(trinity::lua::kUsage, stdout);
  const auto script = runtime.home() + "/scripts/help.lua";
  runtime.set_arguments(script, arguments, {"trinity"});
  return runtime.run_file(script, arguments);
}

/// Refuses a word that is no command, with the word that replaces it or a suggestion.
int refuse_command(Runtime& runtime, const std::string& word) {
  runtime.set_arguments("trinity", {word}, {"trinity"});
  return runtime.run_text("require('trinity.command.commands').refuse(arg[1])", "=(trinity)");
}

int perform(Runtime& runtime, const std::vector<Action>& actions) {
  for (const auto& action : actions) {
    int status = 0;
    if (action.kind == Action::Kind::code)
      status = runtime.run_text(action.text, "=(command line)");
    else if (action.kind == Action::Kind::module)
      status = runtime.run_module(action.text);
    else
      status = runtime.configure_jit(action.text);
    if (status != 0 || runtime.exited()) return status;
  }
  return 0;
}

/// A script under lib/trinity/command/profiler.lua, which writes where its time went however it
/// ends.
int profiled(Runtime& runtime, const std::string& file, const std::string& script,
             const std::vector<std::string>& arguments) {
  const auto begin = fmt::format("require('trinity.command.profiler').start([=[{}]=])", file);
  if (const int status = runtime.run_text(begin, "=(profile)")) return status;
  const int status = runtime.run_file(script, arguments);
  const int written = runtime.run_text("require('trinity.command.profiler').stop()", "=(profile)");
  return status != 0 ? status : written;
}

/// The script, or without one the prompt or standard input, unless -e or -l was all.
int run_main(Runtime& runtime, const CommandLine& line, const std::vector<std::string>& words,
             const std::string& script) {
  const std::vector<std::string> arguments(
      words.begin() + static_cast<std::ptrdiff_t>(std::min(line.script + 1, words.size())),
      words.end());
  const std::vector<std::string> host(words.begin(),
                                      words.begin() + static_cast<std::ptrdiff_t>(line.script));
  runtime.set_arguments(script.empty() ? words[0] : script, arguments,
                        script.empty() ? std::vector<std::string>{} : host);
  const bool has_code = std::any_of(line.actions.begin(), line.actions.end(),
                                    [](const Action& a) { return a.kind == Action::Kind::code; });
  const bool reads_input =
      script.empty() && !line.interactive && !has_code && !isatty(STDIN_FILENO);
  if (const int status = runtime.confine(reads_input ? "-" : script)) return status;
  const int prepared = perform(runtime, line.actions);
  if (prepared != 0 || runtime.exited()) return prepared;
  if (!script.empty()) {
    const int status = line.profile.empty() ? runtime.run_file(script, arguments)
                                            : profiled(runtime, line.profile, script, arguments);
    if (status == 0) trinity::warn_of_copies();
    if (!line.interactive || status == trinity::lua::kInterruptedStatus ||
        status == trinity::lua::kEndedStatus || runtime.exited())
      return status;
  } else if (!line.interactive) {
    if (has_code) return 0;
    if (reads_input) return runtime.run_file("-");
  }
  return runtime.interact(line.interactive);
}

std::string torch_text() {
  try {
    return trinity::late<const char*()>(trinity::kTorchPart, "trinity_torch_text")();
  } catch (const trinity::Error&) {
    return "no LibTorch";
  }
}

int run(const std::vector<std::string>& words) {
  const auto line = trinity::lua::parse_command_line(words);
  const auto home = trinity::find_home();
  if (line.version) {
    fmt::print("trinity {} ({}, {})\n", TRINITY_VERSION, torch_text(), LUAJIT_VERSION);
    return 0;
  }
  if (line.threads >= 0) trinity::lua::set_threads(line.threads);
  auto options = line.options;
  options.home = home;
  options.keep_runs = true;
  options.owns_process = true;
  const bool has_word = line.script < words.size();
  const bool wants_help = line.help || (has_word && words[line.script] == "help");
  std::string script;
  if (has_word && !wants_help) script = find_script(words[line.script], home);
  const bool is_unknown = has_word && !wants_help && script.empty();
  if (wants_help || is_unknown) options.safe = false;  // no script runs but our own
  trinity::lua::take_requests_to_end(line.stops_on_usr1);
  auto runtime = std::make_unique<Runtime>(options);
  const auto first = static_cast<std::ptrdiff_t>(std::min(line.script + 1, words.size()));
  const std::vector<std::string> arguments(words.begin() + first, words.end());
  int status = 0;
  if (wants_help)
    status = help(*runtime, line.help ? std::vector<std::string>{} : arguments);
  else if (is_unknown)
    status = refuse_command(*runtime, words[line.script]);
  else
    status = run_main(*runtime, line, words, script);
  std::fflush(nullptr);
  trinity::lua::leave_on_interrupt(status);
  // A script that was stopped may have left open a command, whose end closing would wait for.
  if (trinity::lua::was_stopped()) static_cast<void>(runtime.release());
  return status;
}

/// Fails if printed text was not written; a reader that closed the pipe is no error.
int check_output(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  int code = errno;
  if (code == 0 && write(STDOUT_FILENO, "", 0) < 0) code = errno;  // one before failed
  if (code == EPIPE) return status;
  std::fprintf(stderr, "trinity: cannot write standard output: %s\n",
               code == 0 ? "a part of it is lost" : std::strerror(code));
  return status == 0 ? 1 : status;
}

/// Files that are opened must not take the numbers of standard ones that were closed (>&-): then
/// what is printed would go into them.
void keep_standard_numbers() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0)  // for the other direction: using it fails as it did
      static_cast<void>(open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

/// Stack for the C calls that a script can nest (LuaJIT allows 200, of 9 KiB each).
constexpr rlim_t kLeastStack = rlim_t{4} << 20;

/// Ensures a stack of that size. If its limit has to be raised, the program restarts
/// itself: threads have the stack size at the start.
void have_stack(char** words) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStack) return;
  const bool enough = limit.rlim_max >= kLeastStack;
  limit.rlim_cur = kLeastStack;
  if (enough && setrlimit(RLIMIT_STACK, &limit) == 0) execv("/proc/self/exe", words);
  if (!enough) throw trinity::LimitError("a stack of 4 MiB is needed (ulimit -s 4096)");
}

}  // namespace

/// Ends the process at once: the destructors of LibTorch's globals take a tenth of a second, in
/// which nothing happens that anybody waits for. The leak checker needs them.
[[noreturn]] void leave(int status) {
  std::fflush(nullptr);
#if defined(__SANITIZE_ADDRESS__) || defined(TRINITY_COVERAGE)
  std::exit(status);
#else
  _exit(status);
#endif
}

int main(int count, char** words) {
  keep_standard_numbers();
  trinity::silence_other_ranks();
  // Whole lines at once also into a file or pipe, in order with what goes to standard error.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is an error like a full disk
  int status = 1;
  try {
    have_stack(words);
    status = run({words, words + count});
  } catch (const UsageError& error) {
    std::fprintf(stderr, "trinity: %s\n", trinity::printable(error.what()).c_str());
    status = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trinity: %s\n", trinity::printable(error.what()).c_str());
  }
  leave(check_output(status));
}
