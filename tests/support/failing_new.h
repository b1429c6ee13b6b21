#pragma once

#include <cstdint>

namespace trinity::test {

/// From now on the `nth` allocation by operator new in this process (from 1) throws
/// std::bad_alloc, and none after it, or, `lasting`, all after it, too; 0: none. Returns how many
/// were made since it was last called.
int64_t fail_allocation(int64_t nth, bool lasting = false);

/// Blocks that operator new gave and nobody has freed.
int64_t live_blocks();

}  // namespace trinity::test
