#include <cmath>
#include <limits>

#include "execute/kernels/kernels.h"
#include "graph/meaning.h"

// Attention as one operator, and the steps of ring attention (graph/meaning.h).

namespace trinity {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// Concatenated heads [batch, length, heads x size] as [batch, KV heads, query heads per KV head,
/// length, size].
Tensor by_heads(const Tensor& x, int64_t heads, int64_t groups) {
  return x.unflatten(-1, {groups, heads / groups, x.size(-1) / heads}).permute({0, 2, 3, 1, 4});
}

Tensor side_by_side(const Tensor& x) { return x.permute({0, 3, 1, 2, 4}).flatten(2).contiguous(); }

/// Values per row [batch, heads, length, ...] in the layout of by_heads().
Tensor of_rows(const Tensor& x, int64_t groups) {
  return x.unflatten(1, {groups, x.size(1) / groups}).unsqueeze(4);
}

/// Data common to all steps: heads, scale, and which keys a query sees.
class Scores {
 public:
  /// heads: query heads in this part.
  Scores(const KernelCall& call, int64_t heads)
      : heads_(heads),
        groups_(std::max<int64_t>(1, heads * call.integer("kv_num_heads",
                                                          call.integer("q_num_heads", 1)) /
                                         call.integer("q_num_heads", 1))),
        causal_(call.integer("is_causal", 0) != 0),
        softcap_(call.integer("softcap", 0) != 0),
        window_(call.integer("window", 0)),
        first_(call.integer("queries_begin", 0) - call.integer("keys_begin", 0)) {}

  int64_t groups() const { return groups_; }
  Tensor queries(const Tensor& x) const { return by_heads(x, heads_, groups_); }
  Tensor keys(const Tensor& x) const { return by_heads(x, groups_, groups_); }
  /// Keys and values packed in one tensor.
  std::pair<Tensor, Tensor> unpacked(const Tensor& both, const Tensor& queries) const {
    const int64_t width = queries.size(-1) / heads_ * groups_;
    return {both.narrow(-1, 0, width), both.narrow(-1, width, both.size(-1) - width)};
  }
  static double scale(const KernelCall& call, const Tensor& queries) {
    return call.number("scale", 1 / std::sqrt(static_cast<double>(queries.size(-1))));
  }

  /// Matmul of scaled queries and keys for all pairs, softcapped.
  Tensor all(const Tensor& queries, const Tensor& keys) const {
    const Tensor products = at::matmul(queries, keys.transpose(-2, -1));
    return softcap_ ? at::tanh(products) : products;
  }
  /// The same, with minus infinity for keys that a query does not see.
  Tensor seen(const Tensor& scores) const {
    if (!causal_) return scores;
    const auto positions =
        at::arange(first_, first_ + scores.size(-2), scores.options().dtype(at::kLong));
    return scores.masked_fill(unseen_keys(positions, scores.size(-1), window_),
                              -std::numeric_limits<double>::infinity());
  }
  /// The gradient of the matmul from the gradient of the scores.
  Tensor through_softcap(const Tensor& gradient, const Tensor& scores) const {
    return softcap_ ? gradient * (1 - scores * scores) : gradient;
  }

 private:
  int64_t heads_, groups_;
  bool causal_, softcap_;
  int64_t window_, first_;
};

/// A step of ring attention: accumulates the contribution of one block of keys and values to the
/// queries of this part, relative to the largest score so far (online softmax, Milakov and
/// Gimelshein 2018; in blocks Dao et al. 2022, over a ring Liu et al. 2023). Inputs: queries, keys
/// and values (first step), or queries, packed keys and values, and the accumulators: weighted
/// values, and per row the maximum and sum of exponentials. The first block contains a query's own
/// position, so later maxima are never minus infinity.
Tensors attention_step(const KernelCall& call) {
  const bool first = call.text("ring_step", "") == "first", last = call.text("ring_step", "") == "last";
  const Tensor& query = call.inputs.at(0);
  const Scores scores(call, first ? call.output_shape(1).at(1) : call.inputs.at(3).size(1));
  const auto [keys, values] = first ? std::pair(call.inputs.at(1), call.inputs.at(2))
                                    : scores.unpacked(call.inputs.at(1), query);
  const Tensor own = scores.queries(query);
  const Tensor found =
      scores.seen(scores.all(own * Scores::scale(call, own), scores.keys(keys)));
  Tensor most = found.amax(-1, true);
  const Tensor shares =
      at::exp(found - at::where(at::isinf(most), at::zeros_like(most), most));
  Tensor sum = shares.sum(-1, true), weighted = at::matmul(shares, scores.keys(values));
  if (!first) {
    const Tensor before = of_rows(call.inputs.at(3).select(-1, 0), scores.groups());
    const Tensor now = at::maximum(before, most);
    const Tensor old_share = at::exp(before - now), share = at::exp(most - now);
    sum = of_rows(call.inputs.at(3).select(-1, 1), scores.groups()) * old_share + sum * share;
    weighted = scores.queries(call.inputs.at(2)) * old_share + weighted * share;
    most = now;
  }
  const auto rows = [](const Tensor& x) { return x.squeeze(-1).flatten(1, 2); };
  if (last) return {side_by_side(weighted / sum), rows(most + at::log(sum))};
  return {side_by_side(weighted), at::stack({rows(most), rows(sum)}, -1)};
}

/// The needed gradients, among the gradients of all inputs.
Tensors chosen(const KernelCall& call, const Tensors& gradients) {
  Tensors found;
  for (const int64_t input : call.list("gradient_inputs"))
    found.push_back(gradients.at(static_cast<size_t>(input)));
  return found;
}

/// A step of the gradient: the contribution of one block of keys and values to the queries'
/// gradient, and the block's own gradients, from the logarithms of the rows' sums (Dao et al. 2022,
/// algorithm 4). Inputs: gradient of the result and queries; in the last step keys and values,
/// result and logarithms, in other steps result, logarithms and packed keys and values; except in
/// the first step the accumulators (gradients of queries, and of packed keys and values). Outputs:
/// the latter, then the former; in the last step the gradients that are needed of queries, keys and
/// values.
Tensors attention_gradient_step(const KernelCall& call) {
  const bool first = call.text("ring_step", "") == "first", last = call.text("ring_step", "") == "last";
  const Tensor &given = call.inputs.at(0), &query = call.inputs.at(1);
  const size_t behind = last ? 4 : 2;  // result and logarithms
  const Tensor& logarithms = call.inputs.at(behind + 1);
  const Scores scores(call, logarithms.size(1));
  const auto [keys, values] = last ? std::pair(call.inputs.at(2), call.inputs.at(3))
                                   : scores.unpacked(call.inputs.at(4), query);
  const Tensor own = scores.queries(query), gradient = scores.queries(given);
  const Tensor key = scores.keys(keys), value = scores.keys(values);
  const double scale = Scores::scale(call, own);
  const Tensor all = scores.all(own * scale, key);
  const Tensor shares = at::exp(scores.seen(all) - of_rows(logarithms, scores.groups()));
  const Tensor mean = (gradient * scores.queries(call.inputs.at(behind))).sum(-1, true);
  const Tensor of_products = scores.through_softcap(
      shares * (at::matmul(gradient, value.transpose(-2, -1)) - mean), all);
  Tensor of_queries = side_by_side(at::matmul(of_products, key) * scale);
  const auto over_queries = [](const Tensor& terms) { return side_by_side(terms.sum(2, true)); };
  Tensor of_keys = over_queries(at::matmul(of_products.transpose(-2, -1), own * scale));
  Tensor of_values = over_queries(at::matmul(shares.transpose(-2, -1), gradient));
  if (!first) of_queries = call.inputs.at(last ? 6 : 5) + of_queries;
  if (last) {
    const auto [keys_before, values_before] = scores.unpacked(call.inputs.at(7), query);
    return chosen(call, {of_queries, keys_before + of_keys, values_before + of_values});
  }
  Tensor of_both = at::cat({of_keys, of_values}, -1);
  if (!first) of_both = call.inputs.at(6) + of_both;
  return {of_both, of_queries};
}

/// Matmuls of queries with keys [batch, heads, length, size], as in ONNX 23, or of
/// concatenated heads; a part may have some of the heads. With fewer KV heads than query heads each
/// serves several.
Tensors attention(const KernelCall& call) {
  if (!call.text("ring_step", "").empty()) return attention_step(call);
  Tensor query = call.argument(0), key = call.argument(1), value = call.argument(2);
  const bool joined = query.dim() == 3;
  if (joined) {
    const int64_t all = call.integer("q_num_heads", 1), of_keys = call.integer("kv_num_heads", all);
    const auto whole = call.list("block_whole");
    const int64_t width = (whole.empty() ? call.output_shape().back() : whole.back()) / all;
    const int64_t heads = call.output_shape().back() / width;
    const auto parts = [](const Tensor& x, int64_t count) {
      return x.unflatten(-1, {count, x.size(-1) / count}).transpose(1, 2);
    };
    query = parts(query, heads);
    key = parts(key, std::max<int64_t>(1, heads * of_keys / all));
    value = parts(value, std::max<int64_t>(1, heads * of_keys / all));
  }
  const int64_t groups = query.dim() == 4 ? query.size(1) / std::max<int64_t>(1, key.size(1)) : 1;
  if (groups > 1) {
    key = key.repeat_interleave(groups, 1);
    value = value.repeat_interleave(groups, 1);
  }
  Tensor scores = at::matmul(query * Scores::scale(call, query), key.transpose(-2, -1));
  if (call.integer("softcap", 0) != 0) scores = at::tanh(scores);
  if (call.has_argument(3)) {
    const Tensor& mask = call.argument(3);
    scores = mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), -1e9)
                                             : scores + mask;
  } else if (call.integer("is_causal", 0) != 0) {
    const auto begin = call.list("block_begin");
    const int64_t first = begin.size() < 2 ? 0 : begin[begin.size() - 2];
    const auto positions =
        at::arange(first, first + scores.size(-2), scores.options().dtype(at::kLong));
    scores = scores.masked_fill(
        unseen_keys(positions, scores.size(-1), call.integer("window", 0)), -1e9);
  }
  const Tensor made = at::matmul(at::softmax(scores, -1), value);
  return {joined ? made.transpose(1, 2).flatten(2) : made};
}

}  // namespace

at::Tensor unseen_keys(const at::Tensor& positions, int64_t keys, int64_t window) {
  const auto ahead = at::arange(keys, positions.options()) - positions.unsqueeze(1);
  const auto unseen = ahead.gt(0);
  return window > 0 ? unseen.logical_or(ahead.le(-window)) : unseen;
}

void add_attention_kernels(KernelTable& table) {
  table["Attention"] = attention;
  table["AttentionGrad"] = attention_gradient_step;
}

}  // namespace trinity
