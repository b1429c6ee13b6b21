#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "selection/selection.h"

namespace trinity {

/// Told from time to time which share of a file is read, from 0 to 1.
using ReadProgress = std::function<void(double share)>;

/// Reads a strategy-selection problem in the format of the IOPDDL contest (ASPLOS 2025), plain JSON
/// or compressed by gzip:
///
///     { "problem": { "name": "...", "usage_limit": 50,
///         "nodes": { "intervals": [[start, end], ...], "costs": [[...], ...], "usages": [[...],
///         ...] }, "edges": { "nodes": [[u, v], ...], "costs": [[...], ...] } } }
///
/// Lists of nodes run in parallel, and so do those of edges; an edge's costs are row-major, index
/// s_u * strategies(v) + s_v. `usage_limit` may be absent or null: no limit. `intervals` and
/// `usages` may be absent together: no usages. Fields that it does not know are skipped, but a
/// misspelt one in place of one that is missing is an error.
///
/// The text is read as a stream: 8 bytes a number are kept, and a quarter of a megabyte of text.
/// Limits: 1 GiB of text after decompression, 2^27 numbers, nesting of 64.
///
/// Throws FileError, as "x.json:3:15: not valid JSON (...)" or
/// "x.json: problem.edges.costs[7]: expected 12 entries ..., got 11"; Interrupted after Ctrl-C;
/// what `progress` throws.
SelectionProblem read_selection(const std::string& path, const ReadProgress& progress = {});

/// Whether the first field of the JSON object in a regular file, plain or compressed, is the
/// `problem` of this format: a guess for those who try several, which reads no more than a piece.
/// True where the file cannot be read, so that read_selection says why.
bool begins_selection(const std::string& path);

/// What read_selection reads, from a text; `source` stands for the file name in errors.
SelectionProblem parse_selection(std::string_view text, const std::string& source);

}  // namespace trinity
