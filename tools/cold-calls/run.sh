#!/bin/bash
# run.sh OUT FILESYSTEM...: calls.c after walks of several sizes, and after gcc and true, on fresh filesystems and on CPU 0.
# Needs root and an idle machine. A line of OUT is filesystem, what was done before, call, and its quartiles in microseconds.
set -u
out=$1
shift
here=$(dirname "$0")
. "$here/../fresh.sh"
prepare "$here/calls.c" "$here/before.c"
printf '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n' >"$work/hello.c"

kib() { for size; do echo $((size * 1024)); done; }

for filesystem in "$@"; do
    fresh "$filesystem"
    # shellcheck disable=SC2046
    nice -n -20 taskset -c 0 "$program" "$at" 12 $(kib 0 256 512 1024 2048 4096 8192 16384 32768 65536) true \
        "gcc -c $work/hello.c -o $work/hello.o" | sed "s/^/$filesystem,/; s,gcc[^\,]*,gcc," >>"$out"
done
