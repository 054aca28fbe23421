#!/bin/bash
# run.sh OUT RUNS: the loops of calls.c on XFS without and with parent pointers by turns, each time on a fresh filesystem of 8 GiB. Needs root and
# Linux 6.10. A line of OUT is the loop, 0 or 1, then what calls.c prints.
set -u
out=$1
runs=$2
here=$(dirname "$0")
. "$here/../fresh.sh"
prepare "$here/calls.c"

for _ in $(seq "$runs"); do
    for loop in create link rename mkdir; do
        for parent in 0 1; do
            mountpoint -q "$at" && umount "$at"
            rm -f "$work/image"
            truncate -s 8G "$work/image"
            mkfs.xfs -q -f "$work/image"
            [ $parent = 0 ] || python3 "$here/parents.py" "$work/image"
            mount -o loop "$work/image" "$at"
            echo "$loop,$parent$("$program" $loop 8000 "$at")" >>"$out"
        done
    done
done
