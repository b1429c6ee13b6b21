#include "simulator/sweep/sweep_run.h"

namespace trinity {

template bool SweepEngine::wire<SweepEngine::kSmallShift, true>(const Plan&, int64_t, Record&);
template bool SweepEngine::wire<SweepEngine::kLargeShift, true>(const Plan&, int64_t, Record&);

}  // namespace trinity
