#pragma once

#include "execute/executor.h"

namespace trinity {

class Job;

/// Combines the measurements of all processes into the report of the whole step, equal in all of
/// them. Collective: all ranks call it.
void join_reports(Job& job, ExecutedStep& step);

}  // namespace trinity
