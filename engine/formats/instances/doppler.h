#pragma once

#include <string>

#include "graph/graph.h"

namespace trinity {

/// Reads a graph of Doppler (compute_graph/*.txt) as a whole step. Lines: the number of nodes, those
/// for inputs included; a list whose length is the number of inputs, which are no operators; the
/// sources of all edges; their targets; then a line `compute,communication` for each operator, in
/// the unit of time of Doppler's simulator, which is a nanosecond here. Lists are runs of digits
/// between commas and spaces.
///
/// Operator "0" is the first, and so on. Its measured time is its compute. It writes
/// `communication` bytes, so that a wire of a byte a nanosecond takes as long; where a file repeats
/// an edge, it writes them again for each repetition. Attribute `file_position` counts operators
/// from 1, `input_positions` are the numbers of the edges, from 1, of an operator's inputs: the
/// order that the rules of the simulator follow (simulator/doppler_engine.h).
///
/// Throws FileError naming file, line and what was expected for anything malformed, and for cycles.
Graph read_doppler(const std::string& path);

/// The same from text; `source` stands for the file name in errors.
Graph parse_doppler(const std::string& text, const std::string& source,
                    const std::string& graph_name);

/// Whether a text is one, not a profile of PipeDream: its first line that is not blank is a number.
bool is_doppler(std::string_view text);

}  // namespace trinity
