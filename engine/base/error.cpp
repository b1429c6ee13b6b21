#include "base/error.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trinity {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

namespace {

/// Names of earlier versions (underscores for hyphens) and those that replaced them.
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"account", "breakdown"},
    {"context_kind", "cp_comm_type"},
    {"head_norm", "qk_norm"},
    {"head_width", "head_dim"},
    {"key_heads", "num_kv_heads"},
    {"latent", "kv_lora_rank"},
    {"model_flop_utilisation", "mfu"},
    {"normalise_advantage", "normalize_advantage"},
    {"overlap_tensor", "overlap_tp_grad_allreduce"},
    {"plain_width", "qk_nope_head_dim"},
    {"query_latent", "q_lora_rank"},
    {"rotary_width", "qk_rope_head_dim"},
    {"shard", "zero_stage"},
    {"synchronise", "sync"},
    {"value_width", "v_head_dim"},
};

std::string underscored(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

}  // namespace

std::string_view renamed(std::string_view name) {
  const auto given = underscored(name);
  for (const auto& [earlier, now] : kRenamed)
    if (given == earlier) return now;
  return {};
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  // Longer names are not typed by hand, and the work is quadratic in the length.
  constexpr size_t kLongest = 256;
  if (name.empty() || name.size() > kLongest) return {};
  if (const auto now = renamed(name); !now.empty())
    for (const auto& candidate : candidates)
      if (underscored(candidate) == now) return fmt::format(", now called '{}'", candidate);
  // A third of a word may be wrong, at most three letters; otherwise it is another word.
  size_t best = 1 + std::min({size_t{3}, (name.size() + 2) / 3, name.size() - 1});
  const std::string* nearest = nullptr;
  for (const auto& candidate : candidates) {
    // The distance is at least the difference in length.
    if (std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size()) > best)
      continue;
    const size_t distance = edit_distance(name, candidate);
    // Ties: the first candidate that `name` is a prefix of.
    const bool goes_on = nearest && candidate.starts_with(name) && !nearest->starts_with(name);
    if (distance < best || (distance == best && goes_on)) {
      best = distance;
      nearest = &candidate;
    }
  }
  return nearest ? fmt::format(", did you mean '{}'?", *nearest) : std::string();
}

void check_failed(const char* file, int line, const char* expression, const std::string& values) {
  std::string_view path = file;
  if (const auto slash = path.rfind("engine/"); slash != std::string_view::npos)
    path.remove_prefix(slash);
  throw Error("{}:{}: check failed: {} ({})", path, line, expression, values);
}

}  // namespace trinity
