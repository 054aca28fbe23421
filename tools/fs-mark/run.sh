#!/bin/bash
# run.sh OUT RUNS FILESYSTEM...: fs_mark (Debian's fsmark 3.3) creates 400,000 empty files in 8 loops by one thread and in 4 by two, each in a directory
# of its own, so often on a fresh filesystem each. Needs root. A line of OUT is filesystem, threads, files in the middle of the loop, files a second, and
# microseconds of the program's own a file.
set -u
out=$1
runs=$2
shift 2
here=$(dirname "$0")
. "$here/../fresh.sh"
prepare
cd "$work" || exit 1

# marked FILESYSTEM THREADS: a line for each loop.
marked() {
    local directories
    directories=$(for thread in $(seq "$2"); do echo "-d $at/d$thread"; done)
    # shellcheck disable=SC2086
    fs_mark -S 0 -L $((8 / $2)) -n 50000 -s 0 -t "$2" -k $directories |
        awk -v loop=$((50000 * $2)) -v head="$1,$2" '/^ *[0-9]+ /{ print head "," $2 - loop / 2 "," $4 "," $5 / loop }'
}

for _ in $(seq "$runs"); do
    for filesystem in "$@"; do
        for threads in 1 2; do
            fresh "$filesystem"
            marked "$filesystem" "$threads" >>"$out"
        done
    done
done
