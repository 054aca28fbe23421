#!/bin/bash
# run.sh OUT FILESYSTEM...: every loop of operations.c by one process and by two, each time on a fresh filesystem. Needs root and an
# idle machine. A line of OUT is filesystem, loop, processes, directories, and operations a second in five windows.
set -u
out=$1
shift
here=$(dirname "$0")
. "$here/../fresh.sh"
prepare "$here/operations.c"

for filesystem in "$@"; do
    for loop in $("$program" --list); do
        for case in "1 per-task" "2 per-task" "2 shared"; do
            fresh "$filesystem"
            # shellcheck disable=SC2086
            line=$("$program" "$loop" $case "$at" 100 5) && echo "$filesystem,$line" >>"$out"
        done
    done
done
