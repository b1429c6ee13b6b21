#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace trinity {

/// A graph as JSON in trinity's own format: everything that a Graph holds, and short enough to
/// write by hand. UTF-8; every object refuses fields that are not listed here. Defaults of optional
/// fields are in brackets.
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
///   inputs       list of tensors read, in argument order, each one of: the tensor's name; the name
///                of an operator with one output, if no tensor has that name; the tensor's number,
///                counting the outputs of the whole file from 1 [none]
///   outputs      list of tensors written [none]
///   attributes   object of integers, floats (with a point or an exponent: 1.0), strings and lists
///                of integers [none]. {"float": "inf"}, also "-inf" and "nan", represents numbers
///                that JSON lacks; {"hex": "00ff"} a string that is not UTF-8.
///   parameters   list of weights [none]
///   flops        floating-point operations per run [by type: forward_flops()]
///   traffic_bytes             memory traffic per run [inputs, outputs and weights, once each]
///   measured_time_s           time on the profiled device [not measured]
///   measured_backward_time_s  the same of its backward operator [not measured]
///   parameter_bytes           weights of unknown shapes, in addition to `parameters` [0]
///   persistent_bytes          resident during the whole step, without the weights [0]
///   workspace_bytes           needed only while it runs [0]
///   forward      name of the forward operator of a backward or update operator [none]
///   unit         integer or string: operators with equal values share a device [own unit]
///
/// An output:
///   name         ["<operator>:<position from 0>"]. May be repeated, but then `inputs` cannot use
///                it.
///   shape        list of extents from 0; [] is one element [unknown]
///   dtype        a name of dtype.h ["float32"]
///   bytes        size if the shape is unknown [0]; with a shape it must agree
///   gradient     false if no gradient flows back [true]
///
/// A parameter: name, shape, dtype ["float32"], trainable [true].
///
/// A collective: name, kind ("all_reduce", ...), algorithm ["automatic"], bytes (full size of the
/// tensor), members (operator names).

/// The graph as text that ends in a newline, one operator per line. parse_graph_json() makes an
/// equal graph of it: same order, names and fingerprint, and the same text again. (A time that is
/// not measured becomes -1, whatever negative number it was.) Throws ArgumentError for a name that
/// is not UTF-8 or a cost that is not finite.
std::string graph_to_json(const Graph& graph);

/// Reads a graph. `source` is the file name in errors. Throws FileError with file, field, expected
/// and actual value for malformed JSON, another format or version, unknown fields, references to
/// unknown names, and whatever GraphBuilder refuses (repeated names, cycles, limits).
Graph parse_graph_json(std::string_view text, const std::string& source);

}  // namespace trinity
