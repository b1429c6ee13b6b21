#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "simulator/problem.h"

namespace trinity {

/// The operators that OrderEngine runs: those of a problem, or an expansion of them with many
/// copies of each (mesh/layer_fold.h). It has its own operator numbers, in topological order. Costs
/// and bytes of `op` are those of like(op) in the problem, which must outlive this object.
/// Immutable after construction.
class OrderGraph {
 public:
  /// An output of an operator.
  struct Source {
    int32_t op, output;
    bool operator==(const Source&) const = default;
  };

  /// Exceptions for operators and collectives that join more data than the one they copy: per such
  /// operator, for every output, the output of the problem with its size; for all collectives (or
  /// none), the bytes.
  struct Joined {
    std::map<int32_t, std::vector<int32_t>> outputs;
    std::vector<int64_t> collective_bytes;
  };

  /// All operators of a problem, once each.
  explicit OrderGraph(const Problem& problem);

  /// An expansion of a problem. like: [operator] of the expansion, the operator of the problem;
  /// inputs(op, add) calls add(Source) for each of its inputs, in the order of like(op)'s inputs;
  /// collectives: per collective of the expansion, that of the problem; collective: [operator], an
  /// index into `collectives`, or -1.
  template <class Inputs>
  OrderGraph(const Problem& problem, std::vector<int32_t> like, std::vector<int32_t> collectives,
             std::vector<int32_t> collective, Inputs inputs, Joined joined = {})
      : problem_(&problem),
        like_(std::move(like)),
        collective_like_(std::move(collectives)),
        collective_(std::move(collective)),
        joined_(std::move(joined)) {
    input_first_.reserve(like_.size() + 1);
    inputs_.reserve(2 * like_.size());
    input_first_.push_back(0);
    for (int32_t op = 0; op < operators(); ++op) {
      inputs(op, [this](const Source& source) { inputs_.push_back(source); });
      input_first_.push_back(static_cast<int32_t>(inputs_.size()));
    }
    finish();
  }

  const Problem& problem() const { return *problem_; }
  int32_t operators() const { return static_cast<int32_t>(like_.size()); }
  int32_t like(int32_t op) const { return like_[op]; }
  bool once(int32_t op) const { return (once_[op] & kOnce) != 0; }

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
  int32_t missing(int32_t op) const { return missing_[op]; }
  int32_t outputs(int32_t op) const { return output_first_[op + 1] - output_first_[op]; }
  int64_t output_bytes(int32_t op, int32_t output) const {
    return problem_->output_bytes(like_[op], output_like(op, output));
  }
  int64_t held_bytes(int32_t op, int32_t output) const {
    return problem_->held_bytes()[static_cast<size_t>(problem_->first_output(like_[op]) +
                                                      output_like(op, output))];
  }
  int64_t fixed_bytes(int32_t op) const { return problem_->fixed_bytes(like_[op]); }
  int64_t workspace_bytes(int32_t op) const { return problem_->workspace_bytes(like_[op]); }
  int64_t cost_ns(int32_t device, int32_t op) const { return problem_->cost_ns(device, like_[op]); }
  /// True if its first output shares the storage of its first input (Problem::alias()).
  bool views(int32_t op) const { return problem_->alias(like_[op]) >= 0; }
  /// True if that input is this output.
  bool views(int32_t op, int32_t from, int32_t output) const {
    return views(op) && inputs(op).front() == Source{from, output};
  }
  /// Upper bound on a step of one micro-batch.
  double longest_step_ns() const { return longest_step_ns_; }

  int32_t collective(int32_t op) const { return collective_[op]; }
  int32_t collectives() const { return static_cast<int32_t>(collective_like_.size()); }
  const Collective& collective_like(int32_t c) const {
    return problem_->graph().collectives()[static_cast<size_t>(collective_like_[c])];
  }
  int64_t collective_bytes(int32_t c) const {
    return joined_.collective_bytes.empty() ? collective_like(c).bytes
                                            : joined_.collective_bytes[static_cast<size_t>(c)];
  }
  /// Ascending.
  std::span<const int32_t> members(int32_t c) const {
    return std::span(members_).subspan(
        static_cast<size_t>(member_first_[c]),
        static_cast<size_t>(member_first_[c + 1] - member_first_[c]));
  }

 private:
  static constexpr char kOnce = 1, kJoins = 2;

  /// The output of the problem that gives an output its size.
  int32_t output_like(int32_t op, int32_t output) const {
    return (once_[op] & kJoins) == 0
               ? output
               : joined_.outputs.find(op)->second[static_cast<size_t>(output)];
  }
  void finish();
  void find_readers();

  const Problem* problem_;
  std::vector<int32_t> like_, collective_like_, collective_;
  Joined joined_;
  std::vector<char> once_;
  std::vector<int32_t> input_first_, output_first_, reader_first_, missing_;
  std::vector<Source> inputs_;
  std::vector<Problem::Reader> readers_;
  std::vector<int32_t> member_first_, members_;
  double longest_step_ns_ = 0;
};

}  // namespace trinity
