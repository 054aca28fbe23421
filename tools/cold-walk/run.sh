#!/bin/bash
# run.sh OUT FILESYSTEM...: walks of 100,000 files in directories of 1,000 that are not in memory ("cold") and then are ("hot"), nine times,
# on a fresh filesystem each. Inodes and dentries are dropped, blocks of the device stay in its page cache where the filesystem keeps them there.
# The same with other calls than stat, three times each, the last of which removes the files; on XFS with bulkstat.
# Needs root. A line of OUT is filesystem, what, order or call, and what walk prints: ns of CPU a file, so that a busy machine counts less.
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
    for turn in 1 2 3; do
        for call in stat open chmod chown; do
            for state in cold hot; do
                sync -f "$at"
                [ "$state" = cold ] && echo 2 >/proc/sys/vm/drop_caches
                echo "$filesystem,$state,$call,$("$program" "$call" "$at")" >>"$out"
            done
        done
        [ "$filesystem" = xfs ] || continue
        for state in cold hot; do
            [ "$state" = cold ] && echo 2 >/proc/sys/vm/drop_caches || "$program" "$at" >/dev/null
            echo "$filesystem,$state,bulkstat,$("$program" bulkstat "$at")" >>"$out"
        done
    done
    for turn in 1 2 3; do
        for state in cold hot; do
            fresh "$filesystem" "$image" "$at"
            "$program" make "$at" 100 1000
            sync -f "$at"
            [ "$state" = cold ] && echo 2 >/proc/sys/vm/drop_caches
            echo "$filesystem,$state,unlink,$("$program" unlink "$at")" >>"$out"
        done
    done
done
umount "$at"
rm -f "$image" "$program"
rmdir "$at"
