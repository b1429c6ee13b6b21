#pragma once

#include <string>

#include "graph/graph.h"

namespace trinity {

/// Reads the text of a graph of Doppler (compute_graph/*.txt) as a whole step. Lines: the number of nodes,
/// inputs included; a list whose length is the number of inputs (which are not operators); the
/// sources of all edges; their targets; then one line `compute,communication` per operator, in the
/// time unit of Doppler's simulator, which is a nanosecond here. Lists are runs of digits separated
/// by commas and spaces.
///
/// Operators are named "0", "1", .... The measured time is the compute value. An operator writes
/// `communication` bytes, so that a link of one byte per nanosecond takes that time; if a file
/// repeats an edge, the bytes are written again for each repetition. Attribute `file_position`
/// counts operators from 1; `input_positions` are the edge numbers, from 1, of an operator's
/// inputs: the order that the simulation rules follow (simulator/published_engines.cpp).
///
/// Throws FileError with file, line and expectation for malformed input, and for cycles. `source` is the file name in
/// errors.
Graph parse_doppler(const std::string& text, const std::string& source,
                    const std::string& graph_name);

/// True if a text is in this format and not a PipeDream profile: its first non-blank line is a
/// number.
bool is_doppler(std::string_view text);

}  // namespace trinity
