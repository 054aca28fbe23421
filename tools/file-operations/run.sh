#!/bin/bash
# run.sh OUT FILESYSTEM...: every loop of operations.c by one process and by two, each time on a fresh filesystem. Needs root and an
# idle machine. A line of OUT is filesystem, loop, processes, directories, and operations a second in five windows.
set -u
out=$1
shift
here=$(dirname "$0")
image=/dev/shm/file-operations.img
at=$(mktemp -d)
program=$(mktemp)
gcc -O2 -Wall -o "$program" "$here/operations.c" || exit 1

fresh() {
    mountpoint -q "$at" && umount "$at"
    rm -f "$image"
    if [ "$1" = tmpfs ]; then mount -t tmpfs -o size=8g none "$at"; return; fi
    truncate -s 8G "$image"
    case $1 in
        xfs) mkfs.xfs -q -f "$image" ;;
        ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$image" ;;
        btrfs) mkfs.btrfs -q -f "$image" >/dev/null 2>&1 ;;
    esac
    mount -o loop "$image" "$at"
}

for filesystem in "$@"; do
    for loop in $("$program" --list); do
        for case in "1 per-task" "2 per-task" "2 shared"; do
            fresh "$filesystem"
            # shellcheck disable=SC2086
            line=$("$program" "$loop" $case "$at" 100 5) && echo "$filesystem,$line" >>"$out"
        done
    done
done
umount "$at"
rm -f "$image" "$program"
rmdir "$at"
