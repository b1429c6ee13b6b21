#include <cmath>

#include "lua/bind_torch/tensor.h"

// What losses of networks compute. Functions are named as the user's words are, so that messages
// read "nn.mse: argument 2 ('y'): ...".

namespace trinity::lua {
namespace {

using at::Tensor;

enum class Reduce { mean, sum, none };

/// "mean" (the default), "sum" or "none" at `index`.
Reduce reduce_arg(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return Reduce::mean;
  const auto name = string_arg(L, index, "reduction");
  if (name == "mean") return Reduce::mean;
  if (name == "sum") return Reduce::sum;
  if (name == "none") return Reduce::none;
  throw WrongArgument(index, "reduction",
                      fmt::format("unknown value '{}'{} (known: mean, none, sum)", name,
                                  suggestion(name, {"mean", "none", "sum"})));
}

Tensor reduced(const Tensor& losses, Reduce how) {
  return how == Reduce::mean ? losses.mean() : how == Reduce::sum ? losses.sum() : losses;
}

/// Minus what `log_probabilities` [..., categories] say of 1-based targets [...].
int negative_log_likelihood(lua_State* L, const Tensor& log_probabilities) {
  const auto targets = indices_arg(L, 2, "targets", log_probabilities.size(-1));
  const auto shape = log_probabilities.sizes();
  if (targets.sizes() != shape.slice(0, shape.size() - 1))
    throw WrongArgument(
        2, "targets",
        fmt::format("expected shape {}, got {}", describe_shape(shape.slice(0, shape.size() - 1)),
                    describe_shape(targets.sizes())));
  const auto how = reduce_arg(L, 3);
  const auto chosen = at::gather(log_probabilities, -1, targets.unsqueeze(-1)).squeeze(-1);
  return push_tensor(L, reduced(-chosen, how));
}

const Tensor& scores_arg(lua_State* L, const char* name) {
  const auto& x = tensor_arg(L, 1, name);
  if (x.dim() == 0 || !x.is_floating_point())
    throw WrongArgument(1, name,
                        "expected floating point [..., categories], got " + describe_tensor(x));
  return x;
}

int loss_cross_entropy(lua_State* L) {
  return negative_log_likelihood(L, at::log_softmax(scores_arg(L, "logits"), -1));
}

int loss_nll(lua_State* L) {
  return negative_log_likelihood(L, scores_arg(L, "log_probabilities"));
}

/// Arguments 1 and 2, of one shape and of floating point.
struct Pair {
  const Tensor &x, &y;
};
Pair pair_arg(lua_State* L, const char* first, const char* second) {
  const Pair pair{tensor_arg(L, 1, first), tensor_arg(L, 2, second)};
  if (!pair.x.is_floating_point())
    throw WrongArgument(1, first, "expected floating point, got " + describe_tensor(pair.x));
  if (pair.x.sizes() != pair.y.sizes())
    throw WrongArgument(2, second,
                        fmt::format("expected shape {}, got {}", describe_shape(pair.x.sizes()),
                                    describe_tensor(pair.y)));
  return pair;
}

/// A number at `index` that may be left out.
double setting_arg(lua_State* L, int index, const char* name, double otherwise, bool above_zero) {
  if (lua_isnoneornil(L, index)) return otherwise;
  const double value = number_arg(L, index, name);
  if (!(value >= 0) || !std::isfinite(value) || (above_zero && value == 0))
    throw WrongArgument(index, name,
                        above_zero ? "expected a positive number" : "expected a number from 0");
  return value;
}

int loss_mse(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  const auto difference = x - y;
  return push_tensor(L, reduced(difference * difference, reduce_arg(L, 3)));
}

int loss_l1(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  return push_tensor(L, reduced((x - y).abs(), reduce_arg(L, 3)));
}

int loss_smooth_l1(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  const double beta = setting_arg(L, 4, "beta", 1, false);
  return push_tensor(
      L, reduced(at::smooth_l1_loss(x, y, at::Reduction::None, beta), reduce_arg(L, 3)));
}

int loss_huber(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  const double delta = setting_arg(L, 4, "delta", 1, true);
  return push_tensor(L,
                     reduced(at::huber_loss(x, y, at::Reduction::None, delta), reduce_arg(L, 3)));
}

/// Throws WrongArgument(index, name) unless all of x are from 0 to 1.
void check_shares(const Tensor& x, int index, const char* name) {
  if (x.numel() > 0 && !(x >= 0).logical_and(x <= 1).all().item<bool>())
    throw WrongArgument(index, name, "expected numbers from 0 to 1");
}

int loss_binary_cross_entropy(lua_State* L) {
  const auto [p, targets] = pair_arg(L, "probabilities", "targets");
  check_shares(p, 1, "probabilities");
  check_shares(targets, 2, "targets");
  const auto losses =
      at::binary_cross_entropy(p, targets.to(p.scalar_type()), {}, at::Reduction::None);
  return push_tensor(L, reduced(losses, reduce_arg(L, 3)));
}

/// binary_cross_entropy_with_logits(logits, targets, reduction, positive_weight)
int loss_binary_cross_entropy_with_logits(lua_State* L) {
  const auto [logits, targets] = pair_arg(L, "logits", "targets");
  check_shares(targets, 2, "targets");
  Tensor weight;
  if (!lua_isnoneornil(L, 4))
    weight = at::full({}, setting_arg(L, 4, "positive_weight", 1, true), logits.options());
  const auto losses = at::binary_cross_entropy_with_logits(logits, targets.to(logits.scalar_type()),
                                                           {}, weight, at::Reduction::None);
  return push_tensor(L, reduced(losses, reduce_arg(L, 3)));
}

/// kl_div(log_probabilities, targets, reduction): targets are probabilities; "batchmean", too.
int loss_kl_div(lua_State* L) {
  const auto [x, targets] = pair_arg(L, "log_probabilities", "targets");
  check_shares(targets, 2, "targets");
  const auto losses = at::kl_div(x, targets.to(x.scalar_type()), at::Reduction::None);
  const bool by_row = lua_type(L, 3) == LUA_TSTRING && string_arg(L, 3, "reduction") == "batchmean";
  if (!by_row) return push_tensor(L, reduced(losses, reduce_arg(L, 3)));
  if (x.dim() == 0)
    throw WrongArgument(1, "log_probabilities", "expected rows, got " + describe_tensor(x));
  return push_tensor(L, losses.sum() / std::max<int64_t>(1, x.size(0)));
}

/// poisson_nll(log_rates, counts, reduction)
int loss_poisson_nll(lua_State* L) {
  const auto [x, y] = pair_arg(L, "log_rates", "counts");
  return push_tensor(L, reduced(x.exp() - y * x, reduce_arg(L, 3)));
}

/// gaussian_nll(mean, targets, variance, reduction)
int loss_gaussian_nll(lua_State* L) {
  const auto [mean, targets] = pair_arg(L, "mean", "targets");
  const auto& variance = tensor_arg(L, 3, "variance");
  if (variance.sizes() != mean.sizes())
    throw WrongArgument(3, "variance",
                        fmt::format("expected shape {}, got {}", describe_shape(mean.sizes()),
                                    describe_tensor(variance)));
  const auto at_least = variance.clamp_min(1e-6);
  const auto difference = mean - targets;
  const auto losses = (at_least.log() + difference * difference / at_least) / 2;
  return push_tensor(L, reduced(losses, reduce_arg(L, 4)));
}

/// Whether all of y are 1 or -1; else throws.
void check_signs(const Tensor& y, int index) {
  if (y.numel() > 0 && !(y.abs() == 1).all().item<bool>())
    throw WrongArgument(index, "signs", "expected 1 and -1");
}

/// margin_ranking(x, y, signs, reduction, margin)
int loss_margin_ranking(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  const auto& signs = tensor_arg(L, 3, "signs");
  if (signs.sizes() != x.sizes())
    throw WrongArgument(3, "signs",
                        fmt::format("expected shape {}, got {}", describe_shape(x.sizes()),
                                    describe_tensor(signs)));
  check_signs(signs, 3);
  const double margin = setting_arg(L, 5, "margin", 0, false);
  return push_tensor(L, reduced((margin - signs * (x - y)).clamp_min(0), reduce_arg(L, 4)));
}

int loss_soft_margin(lua_State* L) {
  const auto [x, signs] = pair_arg(L, "x", "signs");
  check_signs(signs, 2);
  return push_tensor(L, reduced(at::softplus(-signs * x), reduce_arg(L, 3)));
}

/// hinge_embedding(x, signs, reduction, margin)
int loss_hinge_embedding(lua_State* L) {
  const auto [x, signs] = pair_arg(L, "x", "signs");
  check_signs(signs, 2);
  const double margin = setting_arg(L, 4, "margin", 1, false);
  return push_tensor(
      L, reduced(at::where(signs == 1, x, (margin - x).clamp_min(0)), reduce_arg(L, 3)));
}

/// Throws unless x is [..., width].
void check_rows(const Tensor& x, int index, const char* name) {
  if (x.dim() < 1)
    throw WrongArgument(index, name, "expected [..., width], got " + describe_tensor(x));
}

/// cosine_embedding(x, y, signs, reduction, margin)
int loss_cosine_embedding(lua_State* L) {
  const auto [x, y] = pair_arg(L, "x", "y");
  check_rows(x, 1, "x");
  const auto& signs = tensor_arg(L, 3, "signs");
  const auto shape = x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
  if (signs.sizes() != shape)
    throw WrongArgument(
        3, "signs",
        fmt::format("expected shape {}, got {}", describe_shape(shape), describe_tensor(signs)));
  check_signs(signs, 3);
  const double margin = setting_arg(L, 5, "margin", 0, false);
  const auto cosine = at::cosine_similarity(x, y, -1, 1e-8);
  return push_tensor(L, reduced(at::where(signs == 1, 1 - cosine, (cosine - margin).clamp_min(0)),
                                reduce_arg(L, 4)));
}

/// triplet_margin(anchor, near, far, reduction, margin): Euclidean distances
int loss_triplet_margin(lua_State* L) {
  const auto [anchor, near] = pair_arg(L, "anchor", "near");
  check_rows(anchor, 1, "anchor");
  const auto& far = tensor_arg(L, 3, "far");
  if (far.sizes() != anchor.sizes())
    throw WrongArgument(3, "far",
                        fmt::format("expected shape {}, got {}", describe_shape(anchor.sizes()),
                                    describe_tensor(far)));
  const double margin = setting_arg(L, 5, "margin", 1, false);
  const auto distance = [&](const Tensor& other) {
    return at::norm(anchor - other + 1e-6, 2, {-1});
  };
  return push_tensor(
      L, reduced((distance(near) - distance(far) + margin).clamp_min(0), reduce_arg(L, 4)));
}

/// multilabel_soft_margin(logits, labels, reduction)
int loss_multilabel_soft_margin(lua_State* L) {
  const auto [x, labels] = pair_arg(L, "logits", "labels");
  check_rows(x, 1, "logits");
  const auto losses = labels * at::softplus(-x) + (1 - labels) * at::softplus(x);
  return push_tensor(L, reduced(losses.mean(-1), reduce_arg(L, 3)));
}

/// multi_margin(scores, targets, reduction, margin)
int loss_multi_margin(lua_State* L) {
  const auto& x = scores_arg(L, "scores");
  const int64_t width = x.size(-1);
  const auto targets = indices_arg(L, 2, "targets", width);
  const auto shape = x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
  if (targets.sizes() != shape)
    throw WrongArgument(2, "targets",
                        fmt::format("expected shape {}, got {}", describe_shape(shape),
                                    describe_shape(targets.sizes())));
  const double margin = setting_arg(L, 4, "margin", 1, false);
  const auto own = at::gather(x, -1, targets.unsqueeze(-1));
  const auto over = (margin - own + x).clamp_min(0);
  const auto losses =
      over.scatter(-1, targets.unsqueeze(-1), 0).sum(-1) / static_cast<double>(width);
  return push_tensor(L, reduced(losses, reduce_arg(L, 3)));
}

/// multilabel_margin(scores, targets, reduction): rows of targets end at the first 0
int loss_multilabel_margin(lua_State* L) {
  const auto& x = scores_arg(L, "scores");
  const auto targets = indices_arg(L, 2, "targets", x.size(-1), 0);
  if (targets.sizes() != x.sizes())
    throw WrongArgument(2, "targets",
                        fmt::format("expected shape {}, got {}", describe_shape(x.sizes()),
                                    describe_shape(targets.sizes())));
  const auto how = reduce_arg(L, 3);
  const auto shape = x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
  if (x.numel() == 0) throw WrongArgument(1, "scores", "expected at least one category and row");
  const int64_t width = x.size(-1);
  const auto losses = at::multilabel_margin_loss(x.reshape({-1, width}),
                                                 targets.reshape({-1, width}), at::Reduction::None);
  return push_tensor(L, reduced(losses.reshape(shape), how));
}

/// The lengths of N sequences at `index`, from `least` to `most`.
std::vector<int64_t> lengths_arg(lua_State* L, int index, const char* name, int64_t n,
                                 int64_t least, int64_t most) {
  const auto lengths = indices_arg(L, index, name, most, least);
  if (lengths.dim() != 1 || lengths.numel() != n)
    throw WrongArgument(
        index, name,
        fmt::format("expected {} lengths, got {}", n, describe_shape(lengths.sizes())));
  const auto values = (lengths + 1).contiguous();
  return {values.data_ptr<int64_t>(), values.data_ptr<int64_t>() + n};
}

/// Targets of ctc, 0-based [N, S]; what counts of them must not be the blank.
Tensor ctc_targets(lua_State* L, int64_t n, int64_t categories) {
  const auto targets = indices_arg(L, 2, "targets", categories, 0);
  if (targets.dim() != 2 || targets.size(0) != n)
    throw WrongArgument(
        2, "targets",
        fmt::format("expected [{} x longest], got {}", n, describe_shape(targets.sizes())));
  return targets;
}

/// ctc(log_probabilities, targets, lengths, target_lengths, reduction, blank, zero_infinity)
int loss_ctc(lua_State* L) {
  const auto& x = tensor_arg(L, 1, "log_probabilities");
  const bool is_float = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  if (x.dim() != 3 || !is_float || x.numel() == 0)
    throw WrongArgument(1, "log_probabilities",
                        "expected float32 or float64 [steps, sequences, categories], got " +
                            describe_tensor(x));
  const int64_t n = x.size(1), categories = x.size(2);
  const auto targets = ctc_targets(L, n, categories);
  const auto lengths = lengths_arg(L, 3, "lengths", n, 1, x.size(0));
  const auto target_lengths = lengths_arg(L, 4, "target_lengths", n, 0, targets.size(1));
  const auto how = reduce_arg(L, 5);
  const int64_t blank =
      lua_isnoneornil(L, 6) ? 0 : integer_arg(L, 6, "blank", 1, categories) - 1;
  const bool zero_infinity = flag_arg(L, 7, "zero_infinity");
  for (int64_t i = 0; i < n; ++i) {
    const auto own = targets[i].narrow(0, 0, target_lengths[static_cast<size_t>(i)]);
    if (own.numel() > 0 && (own < 0).logical_or(own == blank).any().item<bool>())
      throw WrongArgument(
          2, "targets",
          fmt::format("sequence {}: expected categories other than the blank, {}", i + 1,
                      blank + 1));
  }
  const auto reduction = how == Reduce::mean  ? at::Reduction::Mean
                         : how == Reduce::sum ? at::Reduction::Sum
                                              : at::Reduction::None;
  const auto known = targets.clamp_min(0);
  const auto losses = about(1, "log_probabilities", [&] {
    return at::ctc_loss(x, known, lengths, target_lengths, blank, reduction, zero_infinity);
  });
  return push_tensor(L, losses);
}

}  // namespace

const std::vector<luaL_Reg> kTensorLossFunctions = {
    TRINITY_BIND("mse", loss_mse),
    TRINITY_BIND("l1", loss_l1),
    TRINITY_BIND("smooth_l1", loss_smooth_l1),
    TRINITY_BIND("huber", loss_huber),
    TRINITY_BIND("cross_entropy", loss_cross_entropy),
    TRINITY_BIND("nll", loss_nll),
    TRINITY_BIND("binary_cross_entropy", loss_binary_cross_entropy),
    TRINITY_BIND("binary_cross_entropy_with_logits", loss_binary_cross_entropy_with_logits),
    TRINITY_BIND("kl_div", loss_kl_div),
    TRINITY_BIND("poisson_nll", loss_poisson_nll),
    TRINITY_BIND("gaussian_nll", loss_gaussian_nll),
    TRINITY_BIND("margin_ranking", loss_margin_ranking),
    TRINITY_BIND("soft_margin", loss_soft_margin),
    TRINITY_BIND("hinge_embedding", loss_hinge_embedding),
    TRINITY_BIND("cosine_embedding", loss_cosine_embedding),
    TRINITY_BIND("triplet_margin", loss_triplet_margin),
    TRINITY_BIND("multi_margin", loss_multi_margin),
    TRINITY_BIND("multilabel_margin", loss_multilabel_margin),
    TRINITY_BIND("multilabel_soft_margin", loss_multilabel_soft_margin),
    TRINITY_BIND("ctc", loss_ctc)};

}  // namespace trinity::lua
