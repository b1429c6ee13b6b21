#pragma once

#include "search/placement_space.h"

namespace trinity {

/// Units in order of decreasing work, each to the device on which it would end first if units ran
/// one after another and nothing had to be sent (longest processing time first; Graham, SIAM J.
/// Appl. Math. 17, 1969). Ties go to the lower number.
Assignment largest_first(const PlacementSpace& space);

/// The units in order of their first operators, cut into one run of units a device such that the
/// device of the longest time has the least (wires free); devices in ascending order.
Assignment contiguous_split(const PlacementSpace& space);

}  // namespace trinity
