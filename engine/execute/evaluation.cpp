#include "execute/evaluation.h"

#include <algorithm>

#include "base/error.h"
#include "base/index.h"
#include "base/stop.h"

namespace trinity {
namespace {

/// Over the first `samples` rows: number of labels with the largest logit, and number of labels.
std::pair<int64_t, int64_t> count_right(const at::Tensor& logits, const at::Tensor& labels,
                                        int64_t samples) {
  const auto found = logits.argmax(has_classes_second(logits, labels) ? 1 : -1).reshape(labels.sizes());
  const auto right = found.eq(labels).narrow(0, 0, samples);
  return {right.sum().item<int64_t>(), right.numel()};
}

class Forward {
 public:
  Forward(const Program& program, const std::vector<NamedTensor>& weights, const Feed& feed,
          at::ScalarType real)
      : program_(program),
        graph_(program.graph()),
        feed_(feed),
        real_(real),
        weights_(program, {1, real, 0, 0, 0, 0, 1}),
        values_(graph_.tensors().size()) {
    for (int32_t op = 0; op < graph_.operator_count(); ++op) weights_.make(op, at::kCPU);
    weights_.set_named(weights, false);
    for (int32_t op = 0; op < graph_.operator_count(); ++op) {
      if (!program.is_loss(op)) continue;
      if (loss_ >= 0 || graph_.op(op).type != "SoftmaxCrossEntropyLoss")
        throw ArgumentError("graph {}: accuracy needs exactly one cross-entropy loss, operator {} is another loss",
                            graph_.name(), graph_.op(op).name);
      loss_ = op;
    }
  }

  HeldOut run() {
    HeldOut result;
    int64_t labels = 0, right = 0;
    const int64_t batch = feed_.batch(), all = feed_.held_out_samples();
    for (int64_t done = 0; done < all; done += batch) {
      poll_stop();
      const int64_t samples = std::min(batch, all - done);
      for (int32_t op = 0; op <= loss_; ++op) run(op, done / batch);
      const auto& inputs = graph_.op(loss_).inputs;
      const auto [good, count] = count_right(values_[inputs[0]], values_[inputs[1]], samples);
      right += good;
      labels += count;
      result.loss += loss_of(values_[inputs[0]], values_[inputs[1]], samples) *
                     static_cast<double>(samples);
      result.samples += samples;
    }
    if (result.samples == 0) return result;
    result.loss /= static_cast<double>(result.samples);
    result.accuracy = static_cast<double>(right) / static_cast<double>(labels);
    return result;
  }

 private:
  /// Mean over samples; the last batch may have fewer than it holds.
  double loss_of(const at::Tensor& logits, const at::Tensor& labels, int64_t samples) const {
    KernelCall call{graph_.op(loss_), {logits.narrow(0, 0, samples), labels.narrow(0, 0, samples)},
                    {}, {{1}}, 0, 0, real_};
    return program_.kernel(loss_)(call).at(0).sum().item<double>();
  }

  void run(int32_t op, int64_t batch) {
    const auto& of = graph_.op(op);
    if (of.phase != Phase::forward) return;
    if (program_.is_input(op)) {
      const auto& tensor = graph_.tensor(of.outputs[0]);
      auto data = feed_.held_out(of, tensor, batch);
      values_[of.outputs[0]] = data.is_floating_point() ? data.to(real_) : data;
      return;
    }
    std::vector<at::Tensor> inputs;
    for (const int32_t input : of.inputs) inputs.push_back(values_[input]);
    if (of.type == "Dropout") {
      values_[of.outputs[0]] = inputs[0];
      return;
    }
    KernelCall call{of, std::move(inputs), weights_.of(op), {}, 0, 0, real_};
    for (const int32_t output : of.outputs) call.outputs.push_back(graph_.tensor(output).shape);
    auto outputs = program_.kernel(op)(call);
    for (size_t i = 0; i < of.outputs.size() && i < outputs.size(); ++i)
      values_[of.outputs[i]] = std::move(outputs[i]);
  }

  const Program& program_;
  const Graph& graph_;
  const Feed& feed_;
  at::ScalarType real_;
  Weights weights_;
  std::vector<at::Tensor> values_;
  int32_t loss_ = -1;
};

}  // namespace

HeldOut evaluate(const Program& program, const std::vector<NamedTensor>& weights, const Feed& feed,
                 at::ScalarType real) {
  const at::NoGradGuard guard;
  return Forward(program, weights, feed, real).run();
}

}  // namespace trinity
