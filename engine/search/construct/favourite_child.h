#pragma once

#include "search/linear/sct_solver.h"

namespace trinity {

/// Solves the program (COIN-OR Clp's simplex) and rounds. Rounding alone could leave an
/// operator with two favourites (two x of 0.5): edges with x <= 0.5 are taken by rising x, then in
/// their order, unless one end is taken already. Among equal optima Clp's choice would be
/// arbitrary: a term of at most one thousandth of w prefers solutions that save more data.
/// Deterministic.
FavouriteChildren favourite_children(const SctProgram& program, const SctLimits& limits = {});

}  // namespace trinity
