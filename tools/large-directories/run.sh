#!/bin/bash
# run.sh OUT RUNS: names.c in a directory of XFS that is filled with 60 to 20,000 names, and in the same one after it was mounted again, with
# directory blocks of 4, 16 and 64 KiB by turns, each time on a fresh filesystem of 4 GiB. Needs root. A line of OUT is names, bytes of a block,
# then what names.c prints.
set -u
out=$1
runs=$2
here=$(dirname "$0")
. "$here/../fresh.sh"
prepare "$here/names.c"

for _ in $(seq "$runs"); do
    for files in 60 2000 20000; do
        for size in 4096 16384 65536; do
            mountpoint -q "$at" && umount "$at"
            rm -f "$work/image"
            truncate -s 4G "$work/image"
            mkfs.xfs -q -f -n size=$size "$work/image"
            mount -o loop "$work/image" "$at"
            filled=$("$program" fill $files "$at")
            umount "$at"
            mount -o loop "$work/image" "$at"
            echo "$files,$size$filled$("$program" turn 8000 "$at")" >>"$out"
        done
    done
done
