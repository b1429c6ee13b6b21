#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/iterator/filter_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <boost/range/iterator_range_core.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/types.h"

namespace trinity {

/// Maximum number of operators of a graph: numbers must fit the simulator's packed keys.
inline constexpr size_t kMaxOperators = size_t{1} << 24;

/// Property of a CSR edge: the tensor that flows from source to target.
struct EdgeTensor {
  int32_t tensor = -1;
};

/// The dependency graph as a Boost.Graph graph. Vertex v is operator v.
using CsrGraph =
    boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, EdgeTensor,
                                       boost::no_property, int32_t, int32_t>;

/// An operator graph: operators, the tensors between them, dependencies. Built by GraphBuilder.
/// Immutable and thread-safe. Operators are numbered in a topological order: every edge goes from a
/// lower to a higher number. The simulator breaks ties in this order.
class Graph {
 public:
  const std::string& name() const { return name_; }
  const std::vector<Operator>& operators() const { return operators_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Operator& op(int32_t id) const { return operators_[id]; }
  const Tensor& tensor(int32_t id) const { return tensors_[id]; }
  int32_t operator_count() const { return static_cast<int32_t>(operators_.size()); }

  const std::vector<Collective>& collectives() const { return collectives_; }

  /// One edge per distinct (tensor, reading operator), sorted by source, then by target.
  const CsrGraph& csr() const { return csr_; }
  int32_t edge_count() const { return static_cast<int32_t>(boost::num_edges(csr_)); }
  /// The operators that read outputs of an operator, ascending, one per edge.
  auto readers(int32_t op) const {
    const auto [first, last] = boost::out_edges(op, csr_);
    return boost::make_iterator_range(boost::make_transform_iterator(first, Target{&csr_}),
                                      boost::make_transform_iterator(last, Target{&csr_}));
  }
  /// The operators that read a tensor, ascending.
  auto readers_of(int32_t tensor) const {
    const auto [first, last] = boost::out_edges(tensors_[tensor].producer, csr_);
    const Carries carries{&csr_, tensor};
    return boost::make_iterator_range(
        boost::make_transform_iterator(boost::make_filter_iterator(carries, first, last), Target{&csr_}),
        boost::make_transform_iterator(boost::make_filter_iterator(carries, last, last), Target{&csr_}));
  }

  /// Colocation units: the operators of a unit share a device, so a placement chooses one device
  /// per unit. Units are numbered by their first operator.
  int32_t unit_count() const { return static_cast<int32_t>(unit_offsets_.size()) - 1; }
  /// Operators of a unit, ascending.
  std::span<const int32_t> unit(int32_t unit) const;
  /// [operator]: its unit.
  std::span<const int32_t> units() const { return unit_of_; }

  /// [operator]: number of edges on the longest path from a source.
  std::span<const int32_t> depth() const { return depth_; }

  int64_t parameter_bytes() const;
  int64_t parameter_count() const;
  /// Parameters active per token: experts_per_token / experts of the parameters of an operator with
  /// these attributes, all parameters of every other operator.
  int64_t active_parameter_count() const;
  double flops() const;
  bool has_backward() const;

  /// The operator called `name`, or -1.
  int32_t find(std::string_view name) const;
  /// The same graph, with the same fingerprint, whose operators have these stated times (empty:
  /// none).
  Graph with_stated_times(std::vector<StatedTimes> times) const;
  /// Changes with everything that a result depends on: structure, sizes, costs, names.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  friend class GraphBuilder;
  struct Target {
    const CsrGraph* csr = nullptr;
    int32_t operator()(const CsrGraph::edge_descriptor& edge) const { return boost::target(edge, *csr); }
  };
  struct Carries {
    const CsrGraph* csr = nullptr;
    int32_t tensor = -1;
    bool operator()(const CsrGraph::edge_descriptor& edge) const { return (*csr)[edge].tensor == tensor; }
  };

  std::string name_;
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<Collective> collectives_;
  CsrGraph csr_;
  std::vector<int32_t> unit_of_, unit_offsets_, unit_members_, depth_;
  uint64_t fingerprint_ = 0;
};

/// A graph whose operators each come from one operator of another graph.
struct DerivedGraph {
  Graph graph;
  std::vector<int32_t> origin;  ///< [operator]: the operator that it is, repeats or is a part of
};

/// Collects operators and tensors in any order, then builds a Graph. The builder has operator
/// numbers of its own; build() renumbers operators topologically and keeps the order of addition
/// where dependencies allow. Not thread-safe.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) : name_(std::move(name)) {}
  /// Starts from a graph, to change it in place: operators, tensors and collectives keep their numbers.
  explicit GraphBuilder(Graph graph);
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) = default;
  GraphBuilder& operator=(GraphBuilder&&) = default;

  /// Adds an operator and returns its number. `inputs` may name tensors added so far (add more with
  /// read()); `outputs` is ignored (see add_output); `forward` is an operator of this builder.
  /// Throws ArgumentError for a name that is empty, repeated or not UTF-8, or a cost that is
  /// negative or not a number; LimitError for more than 2^50 bytes of weights or state.
  int32_t add_operator(Operator op);

  /// Reserves space for these total numbers.
  void reserve(size_t operators, size_t tensors);

  /// Adds an output tensor to an operator and returns its number. If the shape is given, `bytes` is
  /// computed from shape and dtype. Throws LimitError for more than 2^50 bytes.
  int32_t add_output(int32_t op, Tensor tensor);
  /// Puts another tensor of the same operator in the place of one, which its readers then read.
  void replace(int32_t id, Tensor tensor);

  /// Makes an operator read a tensor, after its present inputs.
  void read(int32_t op, int32_t tensor);

  /// Makes a tensor the last output of another operator than before.
  void move_output(int32_t tensor, int32_t op);

  /// Moves an operator in the order of addition: before the operator `position`, after what was put there
  /// earlier; after all operators of the graph that the builder started from, where `position` is their number.
  void put_before(int32_t position, int32_t op) { put_before_.emplace_back(position, op); }

  /// Leaves an operator out. Nothing may read its outputs then.
  void remove(int32_t op) { put_before(kNowhere, op); }

  /// Gives an operator another name, which no operator has once all are renamed.
  void rename(int32_t op, std::string name);

  /// Puts two operators into one colocation unit.
  void colocate(int32_t a, int32_t b);

  /// Joins operators into a collective. Throws ArgumentError for an empty or repeated name, no
  /// member, a member of another collective, members of different phases, or negative bytes.
  void add_collective(Collective collective);
  /// Removes all collectives, to be added again.
  std::vector<Collective> take_collectives();

  /// The operator called `name`, or -1.
  int32_t find(std::string_view name) const;

  const std::string& name() const { return name_; }
  const Operator& op(int32_t id) const { return operators_.at(static_cast<size_t>(id)); }
  Operator& op(int32_t id) { return operators_.at(static_cast<size_t>(id)); }
  const Tensor& tensor(int32_t id) const { return tensors_.at(static_cast<size_t>(id)); }
  Tensor& tensor(int32_t id) { return tensors_.at(static_cast<size_t>(id)); }
  const std::vector<Collective>& collectives() const { return collectives_; }
  Collective& collective(int32_t id) { return collectives_.at(static_cast<size_t>(id)); }
  int32_t operator_count() const { return static_cast<int32_t>(operators_.size()); }
  int32_t tensor_count() const { return static_cast<int32_t>(tensors_.size()); }

  /// Builds the graph and empties the builder. Throws LimitError for too many operators or more
  /// than 2^60 bytes in total; ArgumentError if there is no operator, or if dependencies form a
  /// cycle (it names the operators of one) or run through a collective (see check_deadlock()).
  /// `numbers`, if given, receives the builder's number of every operator of the graph.
  Graph build(std::vector<int32_t>* numbers = nullptr);
  /// The same for a builder that started from a graph. added: [operator added since] the operator of that graph
  /// that it comes from.
  DerivedGraph derive(std::span<const int32_t> added);

 private:
  static constexpr int32_t kNowhere = -1;

  void check_read(const Operator& op, int32_t tensor) const;
  static void find_bytes(Tensor& tensor);
  std::vector<int32_t> order_of_addition() const;
  std::vector<int32_t> topological_order() const;
  void check_forward() const;
  int32_t renumber(const std::vector<int32_t>& order, Graph& graph);
  void renumber_collectives(const std::vector<int32_t>& new_op, Graph& graph);
  static void index_edges(Graph& graph);
  static void index_units(int32_t units, Graph& graph);
  static void default_traffic(Graph& graph);
  int32_t unit_root(int32_t op) const;

  /// Index of operators by name: a hash table with open addressing. Names are stored in the
  /// operators.
  class Names {
   public:
    /// The operator called `name`, or -1.
    int32_t find(std::string_view name, const std::vector<Operator>& operators) const;
    /// Adds the operator `op`; returns false if the name exists.
    bool add(std::string_view name, int32_t op, const std::vector<Operator>& operators);
    void clear() {
      slots_.clear();
      used_ = 0;
    }

   private:
    struct Slot {
      uint32_t hash = 0;
      int32_t op = -1;  // -1: empty
    };
    const Slot& slot(std::string_view name, uint32_t hash,
                     const std::vector<Operator>& operators) const;
    void grow();

    std::vector<Slot> slots_;  // 2^k slots, at most half of them in use
    size_t used_ = 0;
  };

  std::string name_;
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<Collective> collectives_;
  std::vector<int32_t> unit_parent_;
  std::vector<std::pair<int32_t, int32_t>> put_before_;  // position, operator
  Names names_;
  std::set<std::string> collective_names_;
};

}  // namespace trinity
