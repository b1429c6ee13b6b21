#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "selection/selection.h"

namespace trinity {

/// Called from time to time with the fraction of the file that has been read, 0 to 1.
using ReadProgress = std::function<void(double share)>;

/// Reads a strategy-selection problem in the format of the IOPDDL contest (ASPLOS 2025), plain JSON
/// or gzip:
///
///     { "problem": { "name": "...", "usage_limit": 50,
///         "nodes": { "intervals": [[start, end], ...], "costs": [[...], ...], "usages": [[...],
///         ...] }, "edges": { "nodes": [[u, v], ...], "costs": [[...], ...] } } }
///
/// Lists of nodes have equal lengths, and so do lists of edges. An edge's costs are row-major,
/// index s_u * strategies(v) + s_v. `usage_limit` may be absent or null: no limit. `intervals` and
/// `usages` may be absent together: no usages. Unknown fields are skipped, but a misspelt field in
/// place of a missing one is an error.
///
/// The text is read as a stream; memory is 8 bytes per number plus a quarter of a megabyte. Limits:
/// 1 GiB of text after decompression, 2^27 numbers, nesting depth 64.
///
/// Throws FileError, such as "x.json:3:15: not valid JSON (...)" or "x.json:
/// problem.edges.costs[7]: expected 12 entries ..., got 11"; Interrupted after Ctrl-C; and
/// exceptions of `progress`.
SelectionProblem read_selection(const std::string& path, const ReadProgress& progress = {});

/// The same as read_selection, from text; `source` is the file name in errors.
SelectionProblem parse_selection(std::string_view text, const std::string& source);

}  // namespace trinity
