#!/bin/sh
# Campaigns of libFuzzer, guided by the code that inputs reach, with address and undefined-behaviour sanitizers. Use:
#   scripts/bootstrap test fuzz [SECONDS [TARGET ...]]
# SECONDS of each target of libFuzzer (60), all by default. A target ends at its first failure: the input is then in
# build-fuzz/failures, what the program said in build-fuzz/TARGET.log. Inputs that reached new code stay in
# build-fuzz/corpus/TARGET, where the next campaign begins. `build/fuzz TARGET FILE` runs an input again.
# This script itself: tests/robustness/fuzz.sh BUILD [SECONDS [TARGET ...]]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1 seconds=${2:-60}
shift; [ $# -eq 0 ] || shift
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $("$build/fuzz_campaign" --list)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
mkdir -p "$build/failures"
for target; do
  corpus=$build/corpus/$target
  mkdir -p "$corpus" "$scratch/$target"
  if [ -d "$root/tests/fuzz/corpus/$target" ]; then cp "$root/tests/fuzz/corpus/$target"/* "$corpus"; fi
  # The words of the corpus are libFuzzer's dictionary.
  find "$corpus" "$root/tests/fuzz/lua" -type f -exec cat {} + | grep -aoE '[A-Za-z_][A-Za-z0-9_]{2,30}' | sort -u | sed 's/.*/"&"/' \
    >"$scratch/words"
  status=0
  (cd "$scratch/$target" && "$build/fuzz_campaign" "$target" "$corpus" -dict="$scratch/words" -seed=1 \
    -max_total_time="$seconds" -max_len=262144 -timeout=0 -rss_limit_mb=4096 -malloc_limit_mb=1000000 -detect_leaks=0 \
    -print_final_stats=1 -close_fd_mask=1 -artifact_prefix="$build/failures/$target-") >"$build/$target.log" 2>&1 ||
    status=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log")
  kept=$(find "$corpus" -type f | wc -l)
  if [ $status -eq 0 ]; then
    passed=$((passed + 1))
    printf 'ok    %-16s %s inputs, %s kept\n' "$target" "$inputs" "$kept"
  else
    failed=$((failed + 1))
    printf 'FAIL  %-16s status %s; %s/%s.log ends:\n' "$target" $status "$build" "$target"
    grep -aE -A 12 'ERROR|finding:|runtime error|Test unit written|fuzz_campaign:' "$build/$target.log" | head -40 | sed 's/^/      /'
  fi
done
printf '%d passed, %d failed, 0 skipped\n' $passed $failed
[ $failed -eq 0 ]
