#include "lua/repl.h"

#include <fmt/format.h>
#include <readline.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <tuple>
#include <vector>

#include "lua/host/check.h"
#include "lua/host/interrupt.h"
#include "lua/host/structs.h"

namespace trinity::lua {
namespace {

namespace fs = std::filesystem;

constexpr int kHistoryLines = 1000;
constexpr const char* kChunkName = "=stdin";

constexpr size_t kMaxEntries = 64, kMaxKeys = 10000, kMaxText = 60, kLineWidth = 78;
constexpr size_t kMaxInner = 8;  // entries of a table within a table that is shown

/// A string as Lua would read it, cut when long.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text.substr(0, kMaxText)) {
    if (c == '\'' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (std::iscntrl(static_cast<unsigned char>(c)))
      out += fmt::format("\\{:03}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + (text.size() > kMaxText ? "...'" : "'");
}

bool has_tostring(lua_State* L, int index) {
  if (!luaL_getmetafield(L, index, "__tostring")) return false;
  lua_pop(L, 1);
  return true;
}

/// tostring(value), by what tostring was when the program began.
std::string plain(lua_State* L, int index) {
  if (luaL_callmeta(L, index, "__tostring")) {
    const auto text = text_at(L, -1);
    lua_pop(L, 1);
    return text;
  }
  switch (lua_type(L, index)) {
    case LUA_TNIL:
      return "nil";
    case LUA_TBOOLEAN:
      return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TNUMBER: {
      lua_pushvalue(L, index);  // a conversion in place would confuse lua_next
      const auto text = text_at(L, -1);
      lua_pop(L, 1);
      return text;
    }
    case LUA_TSTRING:
      return text_at(L, index);
    default:
      return fmt::format("{}: {}", luaL_typename(L, index), lua_topointer(L, index));
  }
}

std::string show_inner_table(lua_State* L, int index);

/// A value inside a table: one short line.
std::string show_inner(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TSTRING) return quoted(text_at(L, index));
  if (lua_istable(L, index) && !has_tostring(L, index)) {
    return show_inner_table(L, index);
  }
  if (lua_isfunction(L, index)) return "function";  // its address says nothing here
  auto text = plain(L, index);
  const auto end = std::min(text.find('\n'), kMaxText);
  return end < text.size() ? text.substr(0, end) + "..." : text;
}

bool is_identifier(const std::string& text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

struct Entry {
  int kind;  // numbers, then strings, then the rest
  double number;
  std::string key, value;
};

/// Collects what is not in the list part; counts everything beyond the limit into `left_out`.
std::vector<Entry> named_entries(lua_State* L, int index, size_t list_size, size_t& left_out) {
  std::vector<Entry> entries;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const int type = lua_type(L, -2);
    const double number = type == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
    const bool in_list = type == LUA_TNUMBER && number >= 1 &&
                         number <= static_cast<double>(list_size) &&
                         number == static_cast<double>(static_cast<size_t>(number));
    if (!in_list && entries.size() >= kMaxKeys) {
      ++left_out;
    } else if (!in_list && type == LUA_TSTRING) {
      const auto key = text_at(L, -2);
      entries.push_back(
          {1, 0, is_identifier(key) ? key : fmt::format("[{}]", quoted(key)), show_inner(L, -1)});
    } else if (!in_list) {
      entries.push_back({type == LUA_TNUMBER ? 0 : 2, number,
                         fmt::format("[{}]", show_inner(L, -2)), show_inner(L, -1)});
    }
    lua_pop(L, 1);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.kind, a.number, a.key) < std::tie(b.kind, b.number, b.key);
  });
  return entries;
}

/// A table inside a table: whole where it is short and holds no further one, else "{...}".
std::string show_inner_table(lua_State* L, int index) {
  if (index < 0) index += lua_gettop(L) + 1;
  size_t left_out = 0, count = 0;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const bool is_nested = lua_istable(L, -1) && !has_tostring(L, -1);
    lua_pop(L, 1);
    if (++count > kMaxInner || is_nested) {
      lua_pop(L, 1);
      return "{...}";
    }
  }
  std::vector<std::string> parts;
  const size_t list_size = std::min(lua_objlen(L, index), kMaxInner);
  for (size_t i = 1; i <= list_size; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    parts.push_back(show_inner(L, -1));
    lua_pop(L, 1);
  }
  for (const auto& entry : named_entries(L, index, list_size, left_out))
    parts.push_back(fmt::format("{} = {}", entry.key, entry.value));
  if (parts.empty()) return "{}";
  const auto text = fmt::format("{{ {} }}", fmt::join(parts, ", "));
  return text.size() <= kMaxText ? text : "{...}";
}

/// The text of lib/trinity/command/prompt.lua for a value, or nothing.
std::string shown_by_library(lua_State* L, int index) {
  const int top = lua_gettop(L);
  std::string text;
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "trinity.command.prompt");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "show");
    lua_pushvalue(L, index);
    if (lua_pcall(L, 1, 1, 0) == 0 && lua_type(L, -1) == LUA_TSTRING) text = text_at(L, -1);
  }
  lua_settop(L, top);
  return text;
}

std::string show_table(lua_State* L, int index) {
  const size_t list_size = lua_objlen(L, index);
  std::vector<std::string> parts;
  for (size_t i = 1; i <= std::min(list_size, kMaxEntries); ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    parts.push_back(show_inner(L, -1));
    lua_pop(L, 1);
  }
  size_t left_out = list_size - parts.size();
  for (const auto& entry : named_entries(L, index, list_size, left_out)) {
    if (parts.size() < kMaxEntries)
      parts.push_back(fmt::format("{} = {}", entry.key, entry.value));
    else
      ++left_out;
  }
  if (left_out > 0) parts.push_back(fmt::format("... {} more", left_out));
  if (parts.empty()) return "{}";
  const auto line = fmt::format("{{ {} }}", fmt::join(parts, ", "));
  if (line.size() <= kLineWidth) return line;
  return fmt::format("{{\n  {}\n}}", fmt::join(parts, ",\n  "));
}

/// The value at `index` as the prompt prints it: strings as they are, tables with sorted keys and
/// at most 64 entries, short tables within them, functions and arrays as the library says
/// (lib/trinity/command/prompt.lua, where it is loaded), everything with a __tostring through that.
/// Unprotected: __tostring may raise a Lua error.
std::string show(lua_State* L, int index) {
  if (index < 0) index += lua_gettop(L) + 1;
  luaL_checkstack(L, LUA_MINSTACK, "too many values");
  if (lua_istable(L, index) && !has_tostring(L, index)) return show_table(L, index);
  if (lua_isfunction(L, index) || lua_type(L, index) == kCdata) {
    const auto text = shown_by_library(L, index);
    if (!text.empty()) return text;
  }
  return plain(L, index);
}

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
