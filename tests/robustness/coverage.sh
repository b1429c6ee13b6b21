#!/bin/sh
# How many lines of engine/{simulator,strategy,search} tests run, by gcov. Use:
#   scripts/bootstrap test coverage [WHAT]       WHAT as in `test`: nothing (a commit's), all, NAME ...
# Other folders: cmake -DTRINITY_COUNTED='graph|learn' build-coverage. build-coverage/coverage.txt lists every file.
# This script itself: tests/robustness/coverage.sh BUILD [WHAT]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
shift
cd "$root"
find "$build" -name '*.gcda' -delete
export GCOV_ERROR_FILE=/dev/null # a confined process cannot write its counts
status=0
tests/run "$build" "$@" || status=1
# gcov prints per source file Source:..., then COUNT: LINE: TEXT; a header comes once for each folder that includes it
# (rooms/FOLDER/...): a line is run where it ran in any.
counted=$(sed -n 's/^TRINITY_COUNTED:.*=//p' "$build/CMakeCache.txt")
(cd "$build" && find . -name '*.gcno' -exec gcov --stdout {} + 2>/dev/null) | awk -F: -v counted="^engine/($counted)/" '
  $3 == "Source" { file = $4; sub("^(.*/)?(rooms/[^/]*|engine)/", "engine/", file) }
  file ~ counted && $1 !~ /^ *-$/ && $2 + 0 > 0 {
    key = file SUBSEP ($2 + 0)
    if (!(key in line)) { line[key]; all[file]++ }
    if ($1 !~ /[#=]/ && !(key in hit)) { hit[key]; run[file]++ }
  }
  END { for (f in all) printf "%-50s %6d of %6d lines %5.1f %%\n", f, run[f], all[f], 100 * run[f] / all[f] }' |
  sort >"$build/coverage.txt"
awk '{ folder = $1; while (sub("/[^/]*$", "", folder) && folder != "engine") { run[folder] += $2; all[folder] += $4 } }
  END { for (f in all) printf "%-24s %6d of %6d lines %5.1f %%\n", f, run[f], all[f], 100 * run[f] / all[f] }
  ' "$build/coverage.txt" | sort
exit $status
