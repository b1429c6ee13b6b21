#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/types.h"

namespace trinity {

/// The most operators a graph may have: numbers must fit the simulator's packed keys.
inline constexpr size_t kMaxOperators = size_t{1} << 24;

/// What an edge of the CSR graph carries: the tensor that flows from source to target.
struct EdgeTensor {
  int32_t tensor = -1;
};

/// The dependency graph that every Boost.Graph algorithm accepts. Vertex v is operator v.
using CsrGraph =
    boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, EdgeTensor,
                                       boost::no_property, int32_t, int32_t>;

/// An operator graph: operators, the tensors between them, dependencies. Immutable; made by
/// GraphBuilder. Operators are numbered in a topological order (an edge goes from a lower to a
/// higher number), which is also the order that breaks ties in the simulator.
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

  /// Colocation units: the operators of a unit share a device, so a placement has one free choice
  /// per unit. Units are numbered by their first operator.
  int32_t unit_count() const { return static_cast<int32_t>(unit_offsets_.size()) - 1; }
  /// Operators of a unit, ascending.
  std::span<const int32_t> unit(int32_t unit) const;
  /// Unit of every operator.
  std::span<const int32_t> units() const { return unit_of_; }

  /// Longest path from a source, counted in edges, of every operator.
  std::span<const int32_t> depth() const { return depth_; }

  int64_t parameter_bytes() const;
  int64_t parameter_count() const;
  /// Of these the ones that a token meets: of an operator with attributes `experts` and
  /// `experts_per_token` that share, of all others all.
  int64_t active_parameter_count() const;
  double flops() const;
  bool has_backward() const;

  /// The operator called `name`, or -1.
  int32_t find(std::string_view name) const;
  /// The same graph, with the same fingerprint, whose operators have these times (empty: none).
  Graph with_stated_times(std::vector<StatedTimes> times) const;
  /// Changes whenever anything that a result depends on changes: structure, sizes, costs, names.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  friend class GraphBuilder;
  std::string name_;
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<Collective> collectives_;
  CsrGraph csr_;
  std::vector<int32_t> unit_of_, unit_offsets_, unit_members_, depth_;
  uint64_t fingerprint_ = 0;
};

/// Collects operators and tensors in any order, then builds a Graph. Numbers given out by the
/// builder are its own; build() renumbers operators topologically, keeping the order of addition
/// where dependencies allow.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) : name_(std::move(name)) {}
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) = default;
  GraphBuilder& operator=(GraphBuilder&&) = default;

  /// Adds an operator. Its `inputs` may name tensors added so far (more with read()); `outputs` is
  /// ignored (see add_output); `forward` names an operator of this builder. Throws ArgumentError
  /// for a name that is empty, repeated or no UTF-8, or a cost that is negative or no number,
  /// LimitError for more than 2^50 bytes of weights or state.
  int32_t add_operator(Operator op);

  /// Makes room for so many in all.
  void reserve(size_t operators, size_t tensors);

  /// Adds an output tensor to an operator and returns its number. `bytes` is computed from shape
  /// and dtype when the shape is given; more than 2^50 are a LimitError.
  int32_t add_output(int32_t op, Tensor tensor);

  /// Makes an operator read a tensor, after its present inputs.
  void read(int32_t op, int32_t tensor);

  /// Puts two operators into one colocation unit.
  void colocate(int32_t a, int32_t b);

  /// Makes operators share units as those of another graph do: ids[o] is the builder's number of
  /// its operator o; empty: they have the same numbers.
  void colocate_as(const Graph& graph, std::span<const int32_t> ids);

  /// Adds the collectives of that graph, with these operators as members.
  void add_collectives_of(const Graph& graph, std::span<const int32_t> ids);

  /// Joins operators into a collective. Throws ArgumentError for an empty or repeated name, fewer
  /// than one member, a member of another collective, members of different phases, negative bytes.
  void add_collective(Collective collective);

  /// The operator called `name`, or -1.
  int32_t find(std::string_view name) const;

  const Operator& op(int32_t id) const { return operators_.at(static_cast<size_t>(id)); }
  Operator& op(int32_t id) { return operators_.at(static_cast<size_t>(id)); }
  const Tensor& tensor(int32_t id) const { return tensors_.at(static_cast<size_t>(id)); }
  int32_t operator_count() const { return static_cast<int32_t>(operators_.size()); }
  int32_t tensor_count() const { return static_cast<int32_t>(tensors_.size()); }

  /// Throws LimitError for too many operators or for sizes that add up to more than 2^60 bytes,
  /// ArgumentError when there is no operator or when dependencies form a cycle (it names
  /// the operators of one) or run through a collective (see check_deadlock()). The builder is empty
  /// afterwards. `numbers`, where it is given, gets the builder's number of every operator of the
  /// graph.
  Graph build(std::vector<int32_t>* numbers = nullptr);

 private:
  void check_read(const Operator& op, int32_t tensor) const;
  std::vector<int32_t> topological_order() const;
  void check_forward() const;
  int32_t renumber(const std::vector<int32_t>& order, Graph& graph);
  void renumber_collectives(const std::vector<int32_t>& new_op, Graph& graph);
  static void index_edges(Graph& graph);
  static void index_units(int32_t units, Graph& graph);
  static void default_traffic(Graph& graph);
  int32_t unit_root(int32_t op) const;

  /// Numbers of operators by their names, which lie with the operators: a table of open addressing.
  class Names {
   public:
    /// The operator called `name`, or -1.
    int32_t find(std::string_view name, const std::vector<Operator>& operators) const;
    /// Adds the next operator; false where there is one of that name.
    bool add(std::string_view name, const std::vector<Operator>& operators);
    void clear() {
      slots_.clear();
      used_ = 0;
    }

   private:
    struct Slot {
      uint32_t hash = 0;
      int32_t op = -1;  // none
    };
    const Slot& slot(std::string_view name, uint32_t hash,
                     const std::vector<Operator>& operators) const;
    void grow();

    std::vector<Slot> slots_;  // 2^k, at most half of them in use
    size_t used_ = 0;
  };

  std::string name_;
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<Collective> collectives_;
  std::vector<int32_t> unit_parent_;
  Names names_;
  std::set<std::string> collective_names_;
};

}  // namespace trinity
