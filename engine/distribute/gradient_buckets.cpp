#include "distribute/gradient_buckets.h"

#include <torch/csrc/autograd/function_hook.h>

#include "distribute/communication_stream.h"

namespace trinity {

/// Called by LibTorch when the gradient of a parameter is complete, on the thread of backward().
class GradientBuckets::Hook : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientBuckets& owner, size_t parameter) : owner_(owner), parameter_(parameter) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    owner_.note(parameter_);
    return outputs;
  }

 private:
  GradientBuckets& owner_;
  size_t parameter_;
};

GradientBuckets::GradientBuckets(std::shared_ptr<Job> job, std::vector<at::Tensor> parameters,
                                 Options options)
    : job_(std::move(job)), parameters_(std::move(parameters)), options_(options) {
  make_buckets(options_.bucket_bytes);
  if (options_.overlap) watch();
}

GradientBuckets::~GradientBuckets() {
  for (size_t i = 0; i < hooks_.size(); ++i) accumulators_[i]->del_post_hook(hooks_[i]);
}

void GradientBuckets::make_buckets(int64_t bucket_bytes) {
  bucket_of_.resize(parameters_.size());
  int64_t bytes = 0;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const auto own = static_cast<int64_t>(parameters_[i].nbytes());
    if (buckets_.empty() || bytes + own > bucket_bytes) {
      buckets_.emplace_back();
      bytes = 0;
    }
    bytes += own;
    buckets_.back().parameters.push_back(i);
    bucket_of_[i] = buckets_.size() - 1;
  }
  for (auto& bucket : buckets_) {
    int64_t elements = 0;
    for (const auto i : bucket.parameters) elements += parameters_[i].numel();
    bucket.flat = at::zeros({elements}, at::kFloat);
  }
}

void GradientBuckets::watch() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameters_[i]));
    hooks_.push_back(accumulators_.back()->add_post_hook(std::make_unique<Hook>(*this, i)));
  }
}

void GradientBuckets::begin(Scope scope) {
  for (auto& bucket : buckets_) {
    if (bucket.work) job_->wait(*bucket.work);  // of a pass that was given up
    bucket.work.reset();
    bucket.missing = bucket.parameters.size();
  }
  noted_.assign(parameters_.size(), false);
  started_ = 0;
  scope_ = scope;
  active_ = true;
}

void GradientBuckets::note(size_t parameter) {
  if (!active_ || noted_[parameter]) return;
  noted_[parameter] = true;
  --buckets_[bucket_of_[parameter]].missing;
  start_full_ones();
}

void GradientBuckets::start_full_ones() {
  while (started_ < buckets_.size() && buckets_[started_].missing == 0) start(buckets_[started_++]);
}

void GradientBuckets::pack(const Bucket& bucket) const {
  const at::NoGradGuard no_grad;
  int64_t first = 0;
  for (const auto i : bucket.parameters) {
    const auto& x = parameters_[i];
    auto part = bucket.flat.narrow(0, first, x.numel());
    first += x.numel();
    if (x.grad().defined())
      part.copy_(x.grad().reshape(-1));
    else
      part.zero_();
  }
}

void GradientBuckets::start(Bucket& bucket) {
  pack(bucket);
  AllReduce options;
  options.scope = Scope::node;
  bucket.work = job_->begin_all_reduce(bucket.flat, options);
  if (scope_ != Scope::world || job_->nodes() == 1 || job_->local_rank() != 0) return;
  options.scope = Scope::across;
  bucket.work = job_->begin_all_reduce(bucket.flat, options, bucket.work);
}

/// In the node, from the rank that has what came from the others. Behind all sums, so that every
/// rank begins the collectives of its node in the same order.
void GradientBuckets::hand_out() {
  for (auto& bucket : buckets_)
    bucket.work = job_->begin_broadcast(bucket.flat, Scope::node, 0, bucket.work);
}

void GradientBuckets::unpack(const Bucket& bucket, int members) {
  const at::NoGradGuard no_grad;
  const auto mean = bucket.flat / members;
  int64_t first = 0;
  for (const auto i : bucket.parameters) {
    auto& x = parameters_[i];
    const auto part = mean.narrow(0, first, x.numel()).view(x.sizes());
    first += x.numel();
    if (x.grad().defined())
      x.grad().copy_(part);
    else
      x.mutable_grad() = part.clone();
  }
}

void GradientBuckets::finish() {
  active_ = false;
  begun_in_backward_ = static_cast<int>(started_);
  while (started_ < buckets_.size()) start(buckets_[started_++]);
  if (scope_ == Scope::world && job_->nodes() > 1 && job_->local_size() > 1) hand_out();
  const int members = scope_ == Scope::world ? job_->size() : job_->local_size();
  for (auto& bucket : buckets_) {
    job_->wait(*bucket.work);
    bucket.work.reset();
    unpack(bucket, members);
  }
}

}  // namespace trinity
