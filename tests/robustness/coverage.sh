#!/bin/sh
# How many lines of the engine tests run, by gcov. Use:
#   scripts/bootstrap test coverage [WHAT]       WHAT as in `test`: nothing (a commit's), all, NAME ...
# Lines of headers count where a source file that includes them is compiled. build-coverage/coverage.txt lists every file.
# This script itself: tests/robustness/coverage.sh BUILD [WHAT]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
shift
cd "$root"
find "$build" -name '*.gcda' -delete
status=0
tests/run "$build" "$@" || status=1
# gcov prints per source file: File '...', then Lines executed:P% of N; the same file may come from several objects,
# so its lines are counted from the .gcov texts of all: a line is run where any object ran it.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
find "$build" -name '*.gcda' | while read -r data; do
  gcov --stdout "$data" 2>/dev/null
done | awk -F: -v root="$root/" '
  $1 ~ /^ *-$/ && $2 ~ /^ *0$/ && $3 == "Source" { file = $4; if (index(file, root) == 1) file = substr(file, length(root) + 1) }
  file ~ /^engine\// && $1 !~ /^ *-$/ { key = file SUBSEP ($2 + 0); if (!(key in line)) { line[key]; all[file]++ }
    if ($1 !~ /[#=]/ && !(key in hit)) { hit[key]; run[file]++ } }
  END { for (f in all) printf "%s %d %d\n", f, run[f], all[f] }' | sort >"$scratch/files"
awk '{ printf "%-50s %6d of %6d lines %4.0f %%\n", $1, $2, $3, 100 * $2 / $3 }' "$scratch/files" >"$build/coverage.txt"
awk '
  function add(name) { run[name] += $2; all[name] += $3 }
  { room = $1; sub("/[^/]*$", "", room); add(room) }
  match($1, "/(pase|pipeline)[a-z_]*[.]") { add("engine/*/" substr($1, RSTART + 1, 4) (substr($1, RSTART + 1, 4) == "pipe" ? "line*" : "*")) }
  END { for (name in all) printf "%-24s %6d of %6d lines %4.0f %%\n", name, run[name], all[name], 100 * run[name] / all[name] }
  ' "$scratch/files" | sort
exit $status
