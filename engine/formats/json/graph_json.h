#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace trinity {

/// A graph as JSON, trinity's own format: everything that a Graph holds, and short enough to be
/// written by hand. UTF-8; every object refuses fields that are not listed here. In brackets: what
/// is taken where a field is left out.
///
/// The file:
///   format       "trinity.graph"
///   version      1
///   name         of the graph
///   operators    list of operators, in any order. Graphs number operators topologically and keep
///                this order where dependencies allow.
///   collectives  list of collectives [none]
///
/// An operator:
///   name         unique among operators, not empty
///   type         ONNX's, or one of operator_types.h; others get a generic cost
///   phase        "forward", "backward" or "update" ["forward"]
///   inputs       list of tensors read, in argument order: the tensor's name; or the name of an
///                operator with one output, where no tensor has that name; or the tensor's number,
///                counting the outputs of the whole file from 1 [none]
///   outputs      list of tensors written [none]
///   attributes   object of whole numbers, fractions (with a point or an exponent: 1.0), strings
///                and lists of whole numbers [none]. {"float": "inf"}, also "-inf" and "nan",
///                stands for numbers that JSON lacks, {"hex": "00ff"} for a string that is no
///                UTF-8.
///   parameters   list of weights [none]
///   flops        floating-point operations of one run [by type: forward_flops()]
///   traffic_bytes             memory traffic of one run [GraphBuilder's: all read and written
///   once] measured_time_s           time on the profiled device [not measured]
///   measured_backward_time_s  the same of its backward operator [not measured]
///   parameter_bytes           weights whose shapes are not known, beside `parameters` [0]
///   persistent_bytes          resident all step beside the weights [0]
///   workspace_bytes           needed only while it runs [0]
///   forward      name of the forward operator that a backward or update one serves [none]
///   unit         whole number or string: operators of equal unit share a device [a unit of its
///   own]
///
/// An output:
///   name         ["<operator>:<position from 0>"]. May repeat, but is then no name for `inputs`.
///   shape        list of extents from 0; [] is one element [not known]
///   dtype        of dtype.h ["float32"]
///   bytes        size where the shape is not known [0]; with a shape it must agree
///   gradient     false where no gradient flows back [true]
///
/// A parameter: name, shape, dtype ["float32"], trainable [true].
///
/// A collective: name, kind ("all_reduce", ...), algorithm ["automatic"], bytes (full size of the
/// tensor), members (operator names).

/// The graph as text ending in a newline, an operator a line. parse_graph_json() makes an equal
/// graph of it: same order, names, fingerprint, and the same text again. (A time that is not
/// measured is -1 after that, whatever negative number stood for it.) Throws ArgumentError for a
/// name that is no UTF-8 or a cost that is not finite.
std::string graph_to_json(const Graph& graph);

/// Reads a graph. `source` stands for the file name in errors. Throws FileError naming file, field,
/// what was expected and what came, for malformed JSON, another format or version, unknown fields,
/// names that nothing has, and whatever GraphBuilder refuses (repeated names, cycles, limits).
Graph parse_graph_json(std::string_view text, const std::string& source);

}  // namespace trinity
