#!/bin/bash
# run.sh OUT FILESYSTEM...: walks of 100,000 files in directories of 1,000 that are not in memory ("cold") and then are ("hot"), nine times,
# on a fresh filesystem each. Inodes and dentries are dropped, blocks of the device stay in its page cache where the filesystem keeps them there.
# Needs root. A line of OUT is filesystem, what, order, and what walk prints: ns of CPU a file, so that a busy machine counts less.
set -u
out=$1
shift
here=$(dirname "$0")
. "$here/../fresh.sh"
image=/dev/shm/cold-walk.img
at=$(mktemp -d)
program=$(mktemp)
gcc -O2 -Wall -o "$program" "$here/walk.c" || exit 1

for filesystem in "$@"; do
    fresh "$filesystem" "$image" "$at"
    "$program" make "$at" 100 1000
    for turn in 1 2 3 4 5 6 7 8 9; do
        for order in "" -i; do
            sync -f "$at"
            echo 2 >/proc/sys/vm/drop_caches
            # shellcheck disable=SC2086
            echo "$filesystem,cold,${order:-names},$("$program" $order "$at")" >>"$out"
            # shellcheck disable=SC2086
            echo "$filesystem,hot,${order:-names},$("$program" $order "$at")" >>"$out"
        done
    done
done
umount "$at"
rm -f "$image" "$program"
rmdir "$at"
