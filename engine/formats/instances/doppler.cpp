#include "formats/instances/doppler.h"

#include <charconv>
#include <map>

#include "base/error.h"

namespace trinity {
namespace {

constexpr int64_t kMost = 999'999'999'999'999;  // below 1e6 s, the simulator's limit per operator

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::string clip(std::string_view text) {
  return text.size() <= 40 ? std::string(text) : std::string(text.substr(0, 37)) + "...";
}

class DopplerReader {
 public:
  DopplerReader(const std::string& source, const std::string& name)
      : source_(source), builder_(name) {}

  Graph read(std::string_view text) {
    rest_ = text;
    const auto nodes = header();
    const auto inputs = list("ids of input nodes");
    if (inputs.size() >= static_cast<size_t>(nodes))
      fail("expected fewer input nodes than the {} nodes of line {}, got {}", nodes, first_line_, inputs.size());
    count_ = nodes - static_cast<int64_t>(inputs.size());
    const auto sources = list("sources of edges");
    check_nodes(sources, "source");
    const auto targets = list("targets of edges");
    check_nodes(targets, "target");
    if (sources.size() != targets.size())
      fail("expected {} targets, one for each source, got {}", sources.size(), targets.size());
    const int edge_line = line_;
    for (int64_t i = 0; i < count_; ++i) add_operator(i);
    while (next_line())
      if (!is_blank(taken_))
        fail("expected the end of the file after {} lines of operators, got '{}'", count_, clip(taken_));
    line_ = edge_line;
    add_edges(sources, targets);
    try {
      return builder_.build();
    } catch (const Error& error) {
      throw FileError("{}: {}", source_, error.what());
    }
  }

 private:
  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> what, Values&&... values) const {
    throw FileError("{}:{}: {}", source_, line_, fmt::format(what, std::forward<Values>(values)...));
  }

  bool next_line() {
    if (rest_.empty()) return false;
    const auto end = rest_.find('\n');
    taken_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++line_;
    return true;
  }

  void need_line(const std::string& what) {
    if (!next_line()) {
      ++line_;
      fail("expected {}, got the end of the file", what);
    }
  }

  int64_t number(std::string_view digits, const char* what, int64_t most) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = !digits.empty() && is_digit(digits[0]) &&
                       end == digits.data() + digits.size();
    if (!whole) fail("{}: expected a whole number, got '{}'", what, clip(digits));
    if (error != std::errc() || value > most)
      fail("{}: expected at most {}, got {}", what, most, clip(digits));
    return value;
  }

  static std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
  }

  int64_t header() {
    do need_line("the number of nodes");
    while (is_blank(taken_));
    first_line_ = line_;
    const auto nodes = number(trimmed(taken_), "number of nodes", int64_t{kMaxOperators});
    if (nodes < 1) fail("number of nodes: expected at least 1, got 0");
    return nodes;
  }

  /// Runs of digits separated by commas and spaces.
  std::vector<int32_t> list(const char* what) {
    need_line(fmt::format("a list of {}", what));
    std::vector<int32_t> values;
    for (size_t at = 0; at < taken_.size();) {
      const char c = taken_[at];
      if (c == ',' || c == ' ' || c == '\t' || c == '\r') {
        ++at;
        continue;
      }
      auto end = at;
      while (end < taken_.size() && is_digit(taken_[end])) ++end;
      if (end == at)
        fail("{}: expected numbers with commas, got '{}'", what, clip(taken_.substr(at)));
      values.push_back(static_cast<int32_t>(
          number(taken_.substr(at, end - at), what, int64_t{kMaxOperators})));
      at = end;
    }
    return values;
  }

  void check_nodes(const std::vector<int32_t>& nodes, const char* what) const {
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i] >= count_)
        fail("{} of edge {}: expected a node from 0 to {}, got {}", what, i + 1, count_ - 1, nodes[i]);
  }

  void add_operator(int64_t i) {
    need_line(fmt::format("line {} of {} with 'compute,communication'", i + 1, count_));
    const auto line = trimmed(taken_);
    const auto comma = line.find(',');
    if (comma == std::string_view::npos)
      fail("operator {}: expected 'compute,communication', got '{}'", i, clip(line));
    Operator op;
    op.name = std::to_string(i);
    op.type = "Operator";
    op.measured_time_s =
        static_cast<double>(number(trimmed(line.substr(0, comma)), "compute", kMost)) * 1e-9;
    op.attributes["file_position"] = i + 1;
    bytes_.push_back(number(trimmed(line.substr(comma + 1)), "communication", kMost));
    operators_.push_back(builder_.add_operator(std::move(op)));
    outputs_.push_back({add_output(static_cast<size_t>(i))});
  }

  int32_t add_output(size_t node) {
    Tensor output;
    output.bytes = bytes_[node];
    try {
      return builder_.add_output(operators_[node], std::move(output));
    } catch (const Error& error) {
      fail("{}", error.what());
    }
  }

  void add_edges(const std::vector<int32_t>& sources, const std::vector<int32_t>& targets) {
    std::map<std::pair<int32_t, int32_t>, size_t> times;  // occurrences of an edge so far
    std::vector<std::vector<int64_t>> positions(operators_.size());
    for (size_t e = 0; e < sources.size(); ++e) {
      const auto source = static_cast<size_t>(sources[e]), target = static_cast<size_t>(targets[e]);
      if (source == target) fail("edge {} goes from node {} to itself", e + 1, source);
      const size_t time = times[{sources[e], targets[e]}]++;
      auto& outputs = outputs_[source];
      if (time == outputs.size()) outputs.push_back(add_output(source));
      builder_.read(operators_[target], outputs[time]);
      positions[target].push_back(static_cast<int64_t>(e) + 1);
    }
    for (size_t i = 0; i < positions.size(); ++i)
      if (!positions[i].empty())
        builder_.op(operators_[i]).attributes["input_positions"] = std::move(positions[i]);
  }

  const std::string& source_;
  GraphBuilder builder_;
  std::string_view rest_, taken_;
  int line_ = 0, first_line_ = 0;
  int64_t count_ = 0;  // number of operators
  std::vector<int64_t> bytes_;
  std::vector<int32_t> operators_;
  std::vector<std::vector<int32_t>> outputs_;  // per operator: one tensor per repetition of an edge
};

}  // namespace

bool is_doppler(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!is_blank(line)) return line.find_first_not_of("0123456789 \t\r") == std::string_view::npos;
  }
  return false;
}

Graph parse_doppler(const std::string& text, const std::string& source,
                    const std::string& graph_name) {
  return DopplerReader(source, graph_name).read(text);
}

}  // namespace trinity
