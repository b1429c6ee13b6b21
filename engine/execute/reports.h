#pragma once

#include "execute/executor.h"

namespace trinity {

class Job;

/// Makes of what every process measured on its own device the report of the whole step, the same in
/// all of them. All ranks call it.
void join_reports(Job& job, ExecutedStep& step);

}  // namespace trinity
