#!/bin/sh
# Fuzzes with address and undefined-behaviour sanitizers, guided by the code that inputs reach, and says how much of
# each room's code was reached. Use:
#   tests/robustness/fuzz.sh [SECONDS [BUILD [TARGET ...]]]
# SECONDS of each target (default 1800), in the build folder BUILD (default build-fuzz: its first build takes about an
# hour on two cores). Inputs that fail are in BUILD/failures, those that reached new code in BUILD/corpus/TARGET.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-1800}
build=${2:-$root/build-fuzz}
[ $# -gt 1 ] && shift 2 || set --
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Fuzz -DTRINITY_SANITIZE=ON -DTRINITY_FUZZ=ON \
  -DCMAKE_CXX_FLAGS='-O1 -g1 -DNDEBUG -D_GLIBCXX_ASSERTIONS' >"$build.log"
ninja -C "$build" fuzz
status=0
TRINITY_HOME=$root "$build/fuzz" --seconds "$seconds" --failures "$build/failures" --keep "$build/corpus" \
  --places "$build/places" "$@" || status=$?
sh "$root/tests/robustness/coverage.sh" "$build/fuzz" "$build/places"
exit $status
