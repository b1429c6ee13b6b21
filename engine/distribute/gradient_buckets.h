#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "distribute/job.h"
#include "libtorch/torch.h"

namespace trinity {

/// Averages the gradients of parameters over the ranks of a job, in buckets. With `overlap` a
/// bucket travels as soon as the backward pass has made all its gradients, while that goes on;
/// without, all begin when it has ended. The same buckets begin in the same order either way, so
/// that sums are the same to the bit.
///
/// The last parameters, whose gradients come first, are in the first bucket. On several nodes a
/// bucket is added up in the node, by one rank a node between the nodes, and at the end handed out
/// in the node.
///
///   buckets.begin(Scope::world);
///   loss.backward();
///   buckets.finish();
class GradientBuckets {
 public:
  struct Options {
    int64_t bucket_bytes = 25'000'000;  ///< a larger parameter has a bucket of its own
    bool overlap = true;
  };

  /// `parameters`: float32 leaves on the processor that want gradients.
  GradientBuckets(std::shared_ptr<Job> job, std::vector<at::Tensor> parameters, Options options);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  int count() const { return static_cast<int>(buckets_.size()); }
  /// Buckets that had begun to travel when the last backward pass ended.
  int begun_in_backward() const { return begun_in_backward_; }

  /// Before a backward pass whose gradients are averaged over `world` or `node`. On the thread that
  /// calls backward(), as finish().
  void begin(Scope scope);
  /// After it: waits, and writes the averages into the gradients. A parameter without one counts
  /// as zero, and gets the average.
  void finish();

 private:
  struct Bucket {
    std::vector<size_t> parameters;
    at::Tensor flat;
    size_t missing = 0;  // gradients, in this backward pass
    std::shared_ptr<Work> work;
  };
  class Hook;
  void make_buckets(int64_t bucket_bytes);
  void watch();
  void note(size_t parameter);
  void start_full_ones();
  void pack(const Bucket& bucket) const;
  void unpack(const Bucket& bucket, int members);
  void start(Bucket& bucket);
  void hand_out();

  std::shared_ptr<Job> job_;
  std::vector<at::Tensor> parameters_;
  Options options_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::vector<uintptr_t> hooks_;
  std::vector<bool> noted_;
  size_t started_ = 0;
  int begun_in_backward_ = 0;
  bool active_ = false;
  Scope scope_ = Scope::world;
};

}  // namespace trinity
