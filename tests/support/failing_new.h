#pragma once

#include <cstdint>

namespace trinity::test {

/// The `nth` next allocation by operator new in this process (from 1) throws std::bad_alloc; with
/// `lasting` also all later ones; 0: none. Returns the number of allocations since the last call.
int64_t fail_allocation(int64_t nth, bool lasting = false);

/// Number of blocks allocated by operator new and not freed.
int64_t live_blocks();

}  // namespace trinity::test
