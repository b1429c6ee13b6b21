#pragma once

#include <vector>

#include "execute/kernels/kernels.h"
#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// Results of members of collectives, computed from the inputs of all members (graph/meaning.h has
/// the attributes). Every member sums in the members' order, so all get the same bits.
at::Tensor sum_in_order(const std::vector<at::Tensor>& given);

at::Tensor combine(const Operator& member, const std::vector<const Operator*>& members,
                   const std::vector<at::Tensor>& given, const std::vector<int64_t>& shape);

/// The part of each member's input that the member at `place` needs for an output: its shard of a
/// reduce-scatter, its tokens of an exchange, otherwise all.
at::Tensor needed_of(const Operator& member, size_t place, size_t members, const at::Tensor& given,
                     const std::vector<int64_t>& shape);

/// Classes of a part of split logits: from `first` on, up to `all`; columns beyond are padding.
struct Classes {
  int64_t first = 0, all = 0;
};

/// Statistics by row [rows, 3] of logits of some classes: the maximum, the label's logit (0 if
/// another part has it), the sum of exponentials relative to the maximum. Reduced by "maximum",
/// "target" and "total" they cover all classes.
at::Tensor loss_statistics(const at::Tensor& logits, const at::Tensor& labels, const Classes& classes);
/// Mean loss over rows from the statistics of all classes.
double mean_loss(const at::Tensor& statistics);
/// Its gradient with respect to logits of some classes, times `scale`.
at::Tensor loss_gradient(const at::Tensor& logits, const at::Tensor& labels,
                         const at::Tensor& statistics, const Classes& classes, double scale);

}  // namespace trinity
