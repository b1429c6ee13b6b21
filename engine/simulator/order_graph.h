#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// The operators of a problem as OrderEngine runs them: in addition to what a Problem has, what each
/// operator reads as (writer, output) pairs, and the members of collectives. The problem must outlive
/// it. Immutable, so that threads may share it.
class OrderGraph {
 public:
  /// An output of an operator.
  struct Source {
    int32_t op, output;
    bool operator==(const Source&) const = default;
  };

  explicit OrderGraph(const Problem& problem);

  const Problem& problem() const { return *problem_; }
  int32_t operators() const { return problem_->operators(); }
  bool once(int32_t op) const { return problem_->once(op); }

  /// In the order of the operator's inputs.
  std::span<const Source> inputs(int32_t op) const {
    return std::span(inputs_).subspan(static_cast<size_t>(input_first_[op]),
                                      static_cast<size_t>(input_first_[op + 1] - input_first_[op]));
  }
  /// As Problem::readers().
  std::span<const Problem::Reader> readers(int32_t op) const {
    return std::span(readers_).subspan(
        static_cast<size_t>(reader_first_[op]),
        static_cast<size_t>(reader_first_[op + 1] - reader_first_[op]));
  }
  /// How many tensors the operator waits for.
  int32_t missing(int32_t op) const { return missing_[op]; }
  int32_t outputs(int32_t op) const {
    return problem_->first_output(op + 1) - problem_->first_output(op);
  }
  int64_t output_bytes(int32_t op, int32_t output) const {
    return problem_->output_bytes(op, output);
  }
  int64_t held_bytes(int32_t op, int32_t output) const {
    return problem_->held_bytes()[static_cast<size_t>(problem_->first_output(op) + output)];
  }
  int64_t fixed_bytes(int32_t op) const { return problem_->fixed_bytes(op); }
  int64_t workspace_bytes(int32_t op) const { return problem_->workspace_bytes(op); }
  int64_t cost_ns(int32_t device, int32_t op) const { return problem_->cost_ns(device, op); }
  /// Whether its first output shares the storage of what it reads first (Problem::alias()).
  bool views(int32_t op) const { return problem_->alias(op) >= 0; }
  /// Whether it does so of this output.
  bool views(int32_t op, int32_t from, int32_t output) const {
    return views(op) && inputs(op).front() == Source{from, output};
  }
  /// No step of one micro-batch takes longer.
  double longest_step_ns() const { return problem_->longest_step_ns(); }

  int32_t collective(int32_t op) const { return problem_->graph().op(op).collective; }
  int32_t collectives() const {
    return static_cast<int32_t>(problem_->graph().collectives().size());
  }
  const Collective& collective_at(int32_t c) const {
    return problem_->graph().collectives()[static_cast<size_t>(c)];
  }
  /// Ascending.
  std::span<const int32_t> members(int32_t c) const {
    return std::span(members_).subspan(
        static_cast<size_t>(member_first_[c]),
        static_cast<size_t>(member_first_[c + 1] - member_first_[c]));
  }

 private:
  void find_readers();

  const Problem* problem_;
  std::vector<int32_t> input_first_, reader_first_, missing_;
  std::vector<Source> inputs_;
  std::vector<Problem::Reader> readers_;
  std::vector<int32_t> member_first_, members_;
};

}  // namespace trinity
