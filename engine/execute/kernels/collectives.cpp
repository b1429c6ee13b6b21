#include "execute/kernels/collectives.h"

#include "execute/kernels/kernels.h"
#include "graph/meaning.h"

namespace trinity {
at::Tensor sum_in_order(const std::vector<at::Tensor>& given) {
  at::Tensor sum = given.size() > 1 ? given[0] + given[1] : given[0].clone();
  for (size_t i = 2; i < given.size(); ++i) sum.add_(given[i]);
  return sum;
}

namespace {

/// Statistics by row; column 0: maximum, 1: the label's logit, 2: sum of exponentials.
at::Tensor reduced_statistics(const at::Tensor& own, const std::vector<at::Tensor>& given,
                          const std::string& what) {
  const auto columns = own.unbind(1);
  if (what == "maximum") {
    at::Tensor largest = given[0].select(1, 0);
    for (const auto& other : given) largest = at::maximum(largest, other.select(1, 0));
    return at::stack({largest, columns[1], columns[2] * (columns[0] - largest).exp()}, 1);
  }
  const int64_t column = what == "target" ? 1 : 2;
  std::vector<at::Tensor> terms;
  for (const auto& other : given) terms.push_back(other.select(1, column));
  const at::Tensor sum = sum_in_order(terms);
  return column == 1 ? at::stack({columns[0], sum, columns[2]}, 1)
                     : at::stack({columns[0], columns[1], sum}, 1);
}

at::Tensor range_of(at::Tensor x, const Operator& op) {
  const auto axes = list_attribute(op, "axes"), starts = list_attribute(op, "starts"),
             ends = list_attribute(op, "ends");
  for (size_t i = 0; i < axes.size(); ++i) x = x.slice(axes[i], starts[i], ends[i]);
  return x;
}

/// A replica's shard, flattened.
at::Tensor share_of(const at::Tensor& x, int64_t shares, int64_t replica) {
  const auto flat = x.reshape({-1});
  const int64_t begin = share_begin(flat.numel(), shares, replica);
  return flat.narrow(0, begin, share_begin(flat.numel(), shares, replica + 1) - begin);
}

bool is_exchange_of_tokens(const Operator& op) { return op.type.starts_with("AllToAll"); }

/// Axis along which a member of a tensor exchange splits its input or concatenates its outputs;
/// none for an exchange of tokens.
int64_t axis_of(const Operator& member, const char* which) {
  return integer_attribute(member.attributes, which, -1);
}

/// GShard's exchange (Lepikhin et al. 2021, section 3.2). From [E, C, ...] to [E / n, C n, ...]:
/// rows of a rank's experts, concatenated by rank along C; and back.
at::Tensor exchanged(const std::vector<at::Tensor>& given, const std::vector<int64_t>& shape) {
  const bool inwards = given[0].size(0) == shape.at(0);
  return at::cat(given, inwards ? 1 : 0);
}

at::Tensor gathered(const std::vector<const Operator*>& members, const std::vector<at::Tensor>& given,
                const std::vector<int64_t>& shape) {
  if (integer_attribute(members[0]->attributes, "shares", 0) > 0) return at::cat(given);
  at::Tensor whole = at::empty(shape, given[0].options());
  for (size_t i = 0; i < given.size(); ++i) {
    at::Tensor to = whole;
    const auto begins = list_attribute(*members[i], "begins");
    at::Tensor piece = given[i];
    for (size_t d = 0; d < begins.size(); ++d) {  // padded pieces reach beyond the end
      const auto axis = static_cast<int64_t>(d);
      const int64_t length = std::min(piece.size(axis), to.size(axis) - begins[d]);
      to = to.narrow(axis, begins[d], length);
      piece = piece.narrow(axis, 0, length);
    }
    to.copy_(piece);
  }
  return whole;
}

/// Rows of logits with the class last, and labels relative to this part's classes. Padded logits
/// are the smallest number.
struct Rows {
  at::Tensor logits, numbers, inside;

  Rows(const at::Tensor& x, const at::Tensor& labels, const Classes& classes) {
    const at::Tensor rows = has_classes_second(x, labels) ? x.movedim(1, -1) : x;
    logits = rows.reshape({-1, rows.size(-1)});
    const int64_t known = std::max<int64_t>(0, classes.all - classes.first);
    if (known < logits.size(1)) {
      const auto column = at::arange(logits.size(1), labels.options());
      logits = logits.masked_fill(column.ge(known), -1e30);
    }
    const auto local = labels.reshape({-1}) - classes.first;
    inside = local.ge(0).logical_and(local.lt(logits.size(1)));
    numbers = local.clamp(0, logits.size(1) - 1).unsqueeze(1);
  }
};

}  // namespace

at::Tensor combine(const Operator& member, const std::vector<const Operator*>& members,
               const std::vector<at::Tensor>& given, const std::vector<int64_t>& shape) {
  const at::NoGradGuard guard;
  if (member.type == "AllGather") return gathered(members, given, shape);
  if (member.type == "ReduceScatter") return sum_in_order(given).contiguous();
  if (const int64_t joined = axis_of(member, "joined"); joined >= 0) return at::cat(given, joined);
  if (is_exchange_of_tokens(member)) return exchanged(given, shape);
  if (member.type == "Broadcast") return given.at(0);
  const auto reduction = text_attribute(member, "reduction");
  if (reduction.empty()) return sum_in_order(given);
  if (reduction == "weights")
    return sum_in_order(given).div_(static_cast<double>(given.size()));
  size_t own = 0;
  while (members[own] != &member) ++own;
  return reduced_statistics(given[own], given, reduction);
}

at::Tensor needed_of(const Operator& member, size_t place, size_t members, const at::Tensor& given,
                     const std::vector<int64_t>& shape) {
  if (member.type == "ReduceScatter") {
    const int64_t shares = integer_attribute(member.attributes, "shares", 1);
    const int64_t share = integer_attribute(member.attributes, "share",
                                            integer_attribute(member.attributes, "replica", 0));
    return shares > 1 ? share_of(given, shares, share) : range_of(given, member);
  }
  if (!is_exchange_of_tokens(member)) return given;
  const auto count = static_cast<int64_t>(members), own = static_cast<int64_t>(place);
  const int64_t cut = axis_of(member, "cut");
  const int64_t axis = cut >= 0 ? cut : given.size(0) > shape.at(0) ? 0 : 1;
  const int64_t length = given.size(axis) / count;
  return given.narrow(axis, own * length, length);
}

at::Tensor loss_statistics(const at::Tensor& logits, const at::Tensor& labels, const Classes& classes) {
  const Rows rows(logits, labels, classes);
  const auto largest = rows.logits.amax(1);
  const auto total = (rows.logits - largest.unsqueeze(1)).exp_().sum(1);
  const auto target = rows.logits.gather(1, rows.numbers).squeeze(1);
  return at::stack({largest, target * rows.inside.to(target.scalar_type()), total}, 1);
}

double mean_loss(const at::Tensor& statistics) {
  const auto columns = statistics.unbind(1);
  return (columns[2].log() + columns[0] - columns[1]).mean().item<double>();
}

at::Tensor loss_gradient(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& statistics,
                         const Classes& classes, double scale) {
  const at::NoGradGuard guard;
  const Rows rows(logits, labels, classes);
  auto gradient = (rows.logits - statistics.select(1, 0).unsqueeze(1)).exp_();
  gradient.div_(statistics.select(1, 2).unsqueeze(1));
  gradient.scatter_add_(1, rows.numbers,
                        rows.inside.to(gradient.scalar_type()).neg_().unsqueeze(1));
  gradient.mul_(scale / static_cast<double>(gradient.size(0)));
  if (!has_classes_second(logits, labels)) return gradient.reshape(logits.sizes());
  auto shape = logits.movedim(1, -1).sizes().vec();
  return gradient.reshape(shape).movedim(-1, 1).contiguous();
}

}  // namespace trinity
