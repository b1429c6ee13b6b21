#include "formats/export/dot.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "graph/units.h"

namespace trinity {
namespace {

constexpr int64_t kLabelled = int64_t{1} << 20;  // minimum bytes of an edge with a size label

struct Colour {
  const char* fill;
  const char* text;
};
/// Okabe and Ito, "Color Universal Design" (2008), with grey in place of black.
constexpr std::array<Colour, 8> kColours = {{{"#E69F00", "black"},
                                             {"#56B4E9", "black"},
                                             {"#009E73", "black"},
                                             {"#F0E442", "black"},
                                             {"#0072B2", "white"},
                                             {"#D55E00", "black"},
                                             {"#CC79A7", "black"},
                                             {"#999999", "black"}}};

/// Text for a label, with DOT's escapes and HTML entities escaped.
std::string escaped(const std::string& text) {
  const auto valid = nlohmann::json::parse(
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::string result;
  for (const char c : valid.get_ref<const std::string&>()) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '&')
      result += "&amp;";
    else
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

const char* border(Phase phase) {
  constexpr const char* styles[] = {"solid", "dashed", "dotted"};
  return styles[static_cast<size_t>(phase)];
}

class Writer {
 public:
  Writer(const Graph& graph, const DotOptions& options) : graph_(graph), options_(options) {
    if (!placed()) return;
    const auto& placement = options.placement;
    if (placement.size() != static_cast<size_t>(graph.operator_count()))
      throw ArgumentError("a placement of graph '{}' needs {} entries, got {}", graph.name(), graph.operator_count(),
                          placement.size());
    used_.assign(options.devices.size(), false);
    for (int32_t o = 0; o < graph.operator_count(); ++o) {
      const int32_t device = device_of(o);
      if (device < 0 || device >= static_cast<int64_t>(options.devices.size()))
        throw ArgumentError("operator '{}' is placed on device {}, expected 1 to {} (devices with a name)",
                            graph.op(o).name, int64_t{device} + 1, options.devices.size());
      used_[device] = true;
    }
  }

  std::string write() {
    line(fmt::format("digraph \"{}\" {{", escaped(graph_.name())));
    line("  node [shape=box, style=\"filled\", fillcolor=white, fontname=\"sans-serif\"];");
    line("  edge [fontname=\"sans-serif\", fontsize=10];");
    if (options_.units)
      write_units();
    else
      write_operators();
    if (placed()) write_legend();
    line("}");
    return std::move(text_);
  }

 private:
  bool placed() const { return !options_.placement.empty(); }
  int32_t device_of(int32_t op) const { return options_.placement[op]; }
  void line(const std::string& text) { text_ += text + "\n"; }

  std::string colours(int32_t device) const {
    const auto& colour = kColours[static_cast<size_t>(device) % kColours.size()];
    return fmt::format(", fillcolor=\"{}\", fontcolor={}", colour.fill, colour.text);
  }

  void node(int32_t number, std::string label, const std::string& type, Phase phase,
            int32_t first_operator) {
    label = fmt::format("{}\\n{}", escaped(label), escaped(type));
    std::string look = fmt::format("style=\"filled,{}\"", border(phase));
    if (placed()) {
      const int32_t device = device_of(first_operator);
      look += colours(device);
      if (options_.devices.size() > kColours.size())
        label += "\\n" + escaped(options_.devices[device]);
    }
    line(fmt::format("  n{} [label=\"{}\", {}];", number, label, look));
  }

  void edge(int32_t from, int32_t to, int64_t bytes, bool crosses) {
    std::string look;
    if (bytes >= kLabelled) look = fmt::format("label=\"{}\"", format_bytes(bytes));
    if (crosses) look += look.empty() ? "penwidth=3" : ", penwidth=3";
    line(fmt::format("  n{} -> n{}{};", from, to, look.empty() ? "" : " [" + look + "]"));
  }

  void write_operators() {
    const auto& csr = graph_.csr();
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      const auto& op = graph_.op(o);
      node(o, op.name, op.type, op.phase, o);
    }
    for (int32_t o = 0; o < graph_.operator_count(); ++o) {
      std::map<int32_t, int64_t> readers;  // by reader: bytes of all tensors of o that it reads
      for (auto [edge, last] = boost::out_edges(o, csr); edge != last; ++edge)
        readers[static_cast<int32_t>(boost::target(*edge, csr))] +=
            graph_.tensor(csr[*edge].tensor).bytes;
      for (const auto& [reader, bytes] : readers)
        edge(o, reader, bytes, placed() && device_of(o) != device_of(reader));
    }
  }

  void write_units() {
    const auto units = make_unit_graph(graph_);
    for (int32_t u = 0; u < units.size(); ++u) {
      const auto members = graph_.unit(u);
      Phase phase = Phase::update;
      for (const int32_t member : members) {
        phase = std::min(phase, graph_.op(member).phase);
        if (placed() && device_of(member) != device_of(members[0]))
          throw ArgumentError("operators '{}' and '{}' share a colocation unit but are on two devices",
                              graph_.op(members[0]).name, graph_.op(member).name);
      }
      const auto& first = graph_.op(members[0]);
      node(
          u,
          members.size() == 1 ? first.name : fmt::format("{} + {}", first.name, members.size() - 1),
          first.type, phase, members[0]);
    }
    for (const auto& [from, to, bytes] : units.edges)
      edge(from, to, bytes,
           placed() && device_of(graph_.unit(from)[0]) != device_of(graph_.unit(to)[0]));
  }

  void write_legend() {
    line("  subgraph cluster_devices {");
    line("    label=\"devices\"; fontname=\"sans-serif\";");
    for (size_t d = 0; d < used_.size(); ++d)
      if (used_[d])
        line(fmt::format("    d{} [label=\"{}\"{}];", d, escaped(options_.devices[d]),
                         colours(static_cast<int32_t>(d))));
    line("  }");
  }

  const Graph& graph_;
  const DotOptions& options_;
  std::vector<bool> used_;  // [device]: holds an operator
  std::string text_;
};

}  // namespace

std::string graph_to_dot(const Graph& graph, const DotOptions& options) {
  return Writer(graph, options).write();
}

}  // namespace trinity
