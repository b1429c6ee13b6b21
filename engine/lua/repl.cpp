#include "lua/repl.h"

#include <readline.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>

#include "lua/host/interrupt.h"
#include "lua/host/show.h"

namespace trinity::lua {
namespace {

namespace fs = std::filesystem;

constexpr int kHistoryLines = 1000;
constexpr const char* kChunkName = "=stdin";

/// The source of lines.
class LineSource {
 public:
  virtual ~LineSource() = default;
  /// A line without its end; nothing at end of input, and when interrupted.
  virtual std::optional<std::string> read(const char* prompt) = 0;
};

class PlainLines : public LineSource {
 public:
  explicit PlainLines(bool prompts) : prompts_(prompts) {}
  std::optional<std::string> read(const char* prompt) override {
    if (prompts_) {
      std::fputs(prompt, stdout);
      std::fflush(stdout);
    }
    char* line = nullptr;
    size_t size = 0;
    const auto length = getline(&line, &size, stdin);
    const std::unique_ptr<char, decltype(&std::free)> owner(line, &std::free);
    if (length < 0) return std::nullopt;
    std::string text(line, static_cast<size_t>(length));
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

 private:
  bool prompts_;
};

/// libedit keeps one line editor a process, so this state is the process's too.
ScriptRunner* g_completing = nullptr;
std::vector<std::string> g_matches;

char* next_match(const char*, int index) {
  static size_t at = 0;
  if (index == 0) at = 0;
  return at < g_matches.size() ? strdup(g_matches[at++].c_str()) : nullptr;
}

char** complete(const char* word, int, int end) {
  rl_attempted_completion_over = 1;  // no names of files
  g_matches.clear();
  const auto line = std::string(rl_line_buffer).substr(0, static_cast<size_t>(end));
  g_completing->protect([&](lua_State* L) {
    if (!completed_by_library(L, line, word, g_matches)) g_matches = completions(L, word);
  });
  return g_matches.empty() ? nullptr : rl_completion_matches(word, next_match);
}

/// $XDG_STATE_HOME/trinity/history, or below ~/.local/state; empty where there is no home.
std::string history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* user = std::getenv("HOME");
  if (state && *state == '/') return std::string(state) + "/trinity/history";
  return user ? std::string(user) + "/.local/state/trinity/history" : "";
}

class EditedLines : public LineSource {
 public:
  explicit EditedLines(ScriptRunner& runner) : history_(history_path()) {
    g_completing = &runner;
    rl_readline_name = "trinity";
    rl_initialize();
    rl_basic_word_break_characters = " \t\n\"\\'`@$><=;|&{}()[]+-*/%^#~,!?";
    rl_attempted_completion_function = complete;
    rl_completion_append_character = '\0';
    using_history();
    stifle_history(kHistoryLines);
    if (!history_.empty()) {
      std::error_code error;
      fs::create_directories(fs::path(history_).parent_path(), error);
      read_history(history_.c_str());
    }
  }
  ~EditedLines() override { g_completing = nullptr; }

  std::optional<std::string> read(const char* prompt) override {
    const std::unique_ptr<char, decltype(&std::free)> line(readline(prompt), &std::free);
    if (!line) return std::nullopt;
    std::string text = line.get();
    if (!text.empty() && text != last_) {
      add_history(text.c_str());
      if (!history_.empty()) write_history(history_.c_str());
      last_ = text;
    }
    return text;
  }

 private:
  std::string history_, last_;
};

/// Result of load_text.
struct Reading {
  bool is_expression = false, is_incomplete = false;
};

/// Loads text as a chunk, as an expression where it is one: the chunk then returns nil before its
/// values. On failure leaves the message that belongs to it as a statement; more lines may mend it
/// where it is incomplete.
int load_text(lua_State* L, const std::string& text, Reading& reading) {
  reading = {};
  const auto load = [&](const std::string& chunk) {
    const int status = luaL_loadbufferx(L, chunk.data(), chunk.size(), kChunkName, "t");
    if (status != LUA_ERRSYNTAX) return status;
    size_t length = 0;
    const char* message = lua_tolstring(L, -1, &length);
    reading.is_incomplete |= std::string_view(message, length).ends_with("'<eof>'");
    return status;
  };
  const bool equals = text.starts_with('=');
  // The nil keeps a call from being a tail call: errors then have their position.
  int status = load("return nil, " + text.substr(equals ? 1 : 0));
  reading.is_expression = status == 0;
  if (status == 0 || equals) return status;
  lua_pop(L, 1);
  status = load(text);
  reading.is_incomplete &= status != 0;
  return status;
}

/// Prints what a chunk returned, and keeps the first value as `_`.
void show_results(lua_State* L, int first) {
  const int last = lua_gettop(L);
  if (last < first) return;
  std::string line;
  for (int i = first; i <= last; ++i) line += (i > first ? "\t" : "") + show(L, i);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  lua_pushliteral(L, "_");
  lua_pushvalue(L, first);
  lua_rawset(L, LUA_GLOBALSINDEX);
}

/// Remembers names that end with their line, for a better message when they are used later.
void note_locals(HostState& host, const std::string& text) {
  static const std::regex kLocal(
      R"(^\s*local\s+(?:function\s+)?([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*))");
  static const std::regex kName(R"([A-Za-z_]\w*)");
  std::smatch match;
  const auto line = text.substr(0, 200);  // std::regex recurses
  if (!std::regex_search(line, match, kLocal)) return;
  const std::string names = match[1];
  for (std::sregex_iterator at(names.begin(), names.end(), kName), end; at != end; ++at)
    host.ended_locals.insert(at->str());
}

class Prompt {
 public:
  Prompt(ScriptRunner& runner, bool always_prompt)
      : runner_(runner), terminal_(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
    if (terminal_)
      lines_ = std::make_unique<EditedLines>(runner);
    else
      lines_ = std::make_unique<PlainLines>(always_prompt);
  }

  int run() {
    for (;;) {
      const auto end = read_statement();
      if (end == End::input) break;
      if (end == End::interrupted) {
        if (!terminal_ || status_ == kEndedStatus) return status_;
        std::fputc('\n', stdout);
        continue;
      }
      Reading reading;
      const auto load = [&](lua_State* L) { return load_text(L, text_, reading); };
      const auto show = [&](lua_State* L, int first) {
        show_results(L, first + (reading.is_expression ? 1 : 0));
      };
      const auto outcome = runner_.run(load, {}, show);
      report(outcome);
      if (outcome.exited || outcome.status == kEndedStatus ||
          (outcome.status == kInterruptedStatus && !terminal_))
        return outcome.status;
      note_locals(*host_state(runner_.state()), text_);
    }
    if (terminal_) std::fputc('\n', stdout);
    return 0;
  }

 private:
  enum class End { complete, input, interrupted };

  End read_statement() {
    text_.clear();
    const char* prompt = "> ";
    do {
      const auto line = lines_->read(prompt);
      if (!line && was_interrupted()) {
        status_ = stop_status();
        forget_interrupt(runner_.state());
        return End::interrupted;
      }
      if (!line) return text_.empty() ? End::input : End::complete;
      text_ += (text_.empty() ? "" : "\n") + *line;
      prompt = ">> ";
    } while (is_incomplete());
    return End::complete;
  }

  bool is_incomplete() {
    Reading reading;
    runner_.protect([&](lua_State* L) { load_text(L, text_, reading); });
    return reading.is_incomplete;
  }

  ScriptRunner& runner_;
  bool terminal_;
  std::unique_ptr<LineSource> lines_;
  std::string text_;
  int status_ = 0;  // of the interruption
};

}  // namespace

int run_repl(ScriptRunner& runner, bool always_prompt) {
  HostState& host = *host_state(runner.state());
  host.interactive = true;
  host.declared.insert("_");
  Prompt prompt(runner, always_prompt);
  const int status = prompt.run();
  host.interactive = false;
  return status;
}

}  // namespace trinity::lua
