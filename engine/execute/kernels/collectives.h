#pragma once

#include <vector>

#include "execute/kernels/kernels.h"
#include "graph/types.h"
#include "libtorch/torch.h"

namespace trinity {

/// What a member of a collective makes of what it needs of all members, in their order, of one of
/// its outputs (graph/meaning.h says which attributes tell what it is). Every member sums in the
/// same order, so that all get the same bits.
/// The sum in their order: the same bits for all members.
at::Tensor sum_in_order(const std::vector<at::Tensor>& given);

at::Tensor combine(const Operator& member, const std::vector<const Operator*>& members,
                   const std::vector<at::Tensor>& given, const std::vector<int64_t>& shape);

/// What a member at `place` among `members` needs of what each hands in, of one of its outputs: of a
/// sum that is shared out its own share or piece, of an exchange of tokens what goes to it; else all.
at::Tensor needed_of(const Operator& member, size_t place, size_t members, const at::Tensor& given,
                     const std::vector<int64_t>& shape);

/// Which classes a part of logits has: those from `first` on, as far as there are `all`; columns
/// behind them are padding.
struct Classes {
  int64_t first = 0, all = 0;
};

/// Statistics by row [rows, 3] of logits of some of the classes: the largest, the one of the label
/// (0 where another part has it), the sum of exponentials less the largest. Reduced by "maximum", "target" and "total" they are those of all classes.
at::Tensor loss_statistics(const at::Tensor& logits, const at::Tensor& labels, const Classes& classes);
/// The mean over rows of the loss that the statistics of all classes give.
double mean_loss(const at::Tensor& statistics);
/// Its gradient with respect to logits of some of the classes, times `scale`.
at::Tensor loss_gradient(const at::Tensor& logits, const at::Tensor& labels,
                         const at::Tensor& statistics, const Classes& classes, double scale);

}  // namespace trinity
