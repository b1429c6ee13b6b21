#include "strategy/recompute_modules.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/index.h"
#include "base/words.h"

namespace trinity {
namespace {

constexpr const char* kRecomputeWords[] = {"none",        "selective", "full", "core_attn", "layernorm",
                                           "mla_up_proj", "mlp",       "moe",  "moe_act",   "shared_experts"};
constexpr auto kWholeWords = std::span(kRecomputeWords).first(3), kModules = std::span(kRecomputeWords).subspan(3);

bool holds_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

/// True if a module has the operator of this name within its layer.
bool has_operator(RecomputeModule module, std::string_view name) {
  constexpr std::string_view kNetwork = "feed_forward/";
  const bool network = name.starts_with(kNetwork);
  const auto rest = network ? name.substr(kNetwork.size()) : std::string_view();
  switch (module) {
    case RecomputeModule::core_attn:
      return false;  // attention_core()
    case RecomputeModule::layernorm:
      return name == "norm_1" || name == "norm_2";
    case RecomputeModule::mla_up_proj:
      return name.starts_with("attention/") &&
             holds_any(name, {"query_norm", "latent_norm", "query_up", "key_value", "_rotary"});
    case RecomputeModule::mlp:
      return !rest.empty() && (std::string_view("giua").find(rest[0]) != std::string_view::npos || rest == "down/input");
    case RecomputeModule::moe:
      return rest.starts_with("router/") || rest.starts_with("dispatch") || rest.starts_with("experts/") ||
             rest.starts_with("shared/");
    case RecomputeModule::moe_act:
      return rest.starts_with("experts/activation");
    case RecomputeModule::shared_experts:
      return rest.starts_with("shared/");
  }
  return false;
}

}  // namespace

void parse_recompute(std::string_view text, Parallelism& given) {
  given.recompute_modules = 0;
  const auto whole = std::find(kWholeWords.begin(), kWholeWords.end(), text);
  if (whole != kWholeWords.end()) {
    given.recompute = static_cast<Recompute>(whole - kWholeWords.begin());
    return;
  }
  given.recompute = Recompute::modules;
  for (size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find('+', from), text.size());
    const auto word = text.substr(from, end - from);
    const auto found = parse_word("recompute", word, kRecomputeWords);
    if (found < kWholeWords.size())
      throw ArgumentError("recompute: '{}' cannot be combined with other modules, got '{}'", word, text);
    given.recompute_modules |= static_cast<uint8_t>(1U << (found - kWholeWords.size()));
    from = end + 1;
  }
}

std::string recompute_text(const Parallelism& given) {
  if (given.recompute != Recompute::modules) return kWholeWords[static_cast<size_t>(given.recompute)];
  std::string text;
  for (size_t module = 0; module < std::size(kModules); ++module)
    if ((given.recompute_modules >> module & 1) != 0) text += (text.empty() ? "" : "+") + std::string(kModules[module]);
  return text;
}

std::vector<int32_t> module_operators(const Parallelism& given, const Graph& graph, const Layers& layers) {
  std::vector<int32_t> found;
  for (size_t module = 0; module < std::size(kModules); ++module) {
    if ((given.recompute_modules >> module & 1) == 0) continue;
    const auto kind = static_cast<RecomputeModule>(module);
    const auto core = kind == RecomputeModule::core_attn ? attention_core(graph, layers) : std::vector<bool>();
    const size_t before = found.size();
    for (int32_t op = 0; op < graph.operator_count(); ++op) {
      if (graph.op(op).phase != Phase::forward || layers.of[op] < 0 || layers.of[op] >= layers.count) continue;
      const std::string_view name = graph.op(op).name;
      const auto stem = name.find(layers.stem);
      const auto slash = stem == std::string_view::npos ? stem : name.find('/', stem + layers.stem.size());
      if (core.empty() ? slash != std::string_view::npos && has_operator(kind, name.substr(slash + 1)) : core[at(op)])
        found.push_back(op);
    }
    // Norms and rotations of other attention have the names of latent attention's.
    if (kind == RecomputeModule::mla_up_proj &&
        std::none_of(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                     [&](int32_t op) { return graph.op(op).name.ends_with("/key_value"); }))
      found.resize(before);
    if (found.size() == before)
      throw ArgumentError("recompute: graph '{}' has no operators of module '{}'", graph.name(), kModules[module]);
  }
  return found;
}

}  // namespace trinity
