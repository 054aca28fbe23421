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
prepare "$here/walk.c"

tell() { echo "$filesystem,$1,$2,$("$program" "${@:3}" "$at")" >>"$out"; }

files() {
    fresh "$filesystem"
    "$program" make "$at" 100 1000
}

for filesystem in "$@"; do
    files
    for turn in 1 2 3 4 5 6 7 8 9; do
        for order in names -i; do
            in_state cold
            for state in cold hot; do
                if [ $order = names ]; then tell $state names; else tell $state -i -i; fi
            done
        done
    done
    for turn in 1 2 3; do
        for call in stat open chmod chown; do
            for state in cold hot; do in_state $state && tell $state $call $call; done
        done
        [ "$filesystem" = xfs ] || continue
        in_state cold
        tell cold bulkstat bulkstat
        "$program" "$at" >/dev/null
        tell hot bulkstat bulkstat
    done
    for turn in 1 2 3; do
        for state in cold hot; do
            files
            in_state $state
            tell $state unlink unlink
        done
    done
done
