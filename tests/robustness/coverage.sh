#!/bin/sh
# The share of each folder's code that fuzzing reached. Use: tests/robustness/coverage.sh PROGRAM PLACES
# PROGRAM: fuzz, compiled with TRINITY_FUZZ; PLACES: the folder that its option --places filled. A place is the begin of
# a basic block, known by the address behind the call that counts it.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
objdump -d --no-show-raw-insn "$1" | awk '
  counted { sub(":", "", $1); print "0x" $1 }
  { counted = /call.*<__sanitizer_cov_trace_pc>/ }' | sort -u >"$scratch/all"
cat "$2"/* | sort -u >"$scratch/reached"
addr2line -e "$1" <"$scratch/all" | sed 's/ (discriminator.*//; s/:[0-9?]*$//' | paste "$scratch/all" - >"$scratch/files"
awk 'NR == FNR { reached[$1] = 1; next }
  match($2, "engine/[a-z]+/[a-z_0-9]+[.](cpp|h)") {
    file = substr($2, RSTART, RLENGTH)
    room = file
    sub("/[^/]*$", "", room)
    all[room]++
    if ($1 in reached) some[room]++
    if (room == "engine/formats") { all[file]++; if ($1 in reached) some[file]++ }
  }
  END { for (name in all) printf "%-40s %6d of %6d places  %3.0f %%\n", name, some[name], all[name],
    100 * some[name] / all[name] }' "$scratch/reached" "$scratch/files" | sort
