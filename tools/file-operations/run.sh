#!/bin/bash
# run.sh OUT FILESYSTEM...: every loop of operations.c by one process and by two, each time on a fresh filesystem. Needs root and an
# idle machine. A line of OUT is filesystem, loop, processes, directories, and operations a second in five windows.
set -u
out=$1
shift
here=$(dirname "$0")
. "$here/../fresh.sh"
image=/dev/shm/file-operations.img
at=$(mktemp -d)
program=$(mktemp)
gcc -O2 -Wall -o "$program" "$here/operations.c" || exit 1

for filesystem in "$@"; do
    for loop in $("$program" --list); do
        for case in "1 per-task" "2 per-task" "2 shared"; do
            fresh "$filesystem" "$image" "$at"
            # shellcheck disable=SC2086
            line=$("$program" "$loop" $case "$at" 100 5) && echo "$filesystem,$line" >>"$out"
        done
    done
done
umount "$at"
rm -f "$image" "$program"
rmdir "$at"
