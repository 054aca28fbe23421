#!/bin/sh
# run.sh FOLDER: as root, times calls on ext4 with and without a journal, six mounts each in turn, on a loop device over tmpfs.
# Prints a line a mount and call: has_journal or ^has_journal, the call, nanoseconds. FOLDER is made, and empty afterwards.
# The `journal.*` of models/filesystems/ext4.yaml are from differences between a mount and the next.
set -eu
mkdir -p "$1/memory" "$1/root"
cc -O2 -o "$1/calls" "$(dirname "$0")/calls.c"
mount -t tmpfs -o size=1500m none "$1/memory"
trap 'umount "$1/root" 2>/dev/null || true; umount "$1/memory"; rm -r "$1/memory" "$1/root" "$1/calls"' EXIT
for turn in 1 2 3 4 5 6; do
    for journal in has_journal ^has_journal; do
        rm -f "$1/memory/image"
        truncate -s 8G "$1/memory/image"
        mkfs.ext4 -q -F -O $journal -E lazy_itable_init=1,lazy_journal_init=1 "$1/memory/image"
        mount -o loop,noinit_itable "$1/memory/image" "$1/root"
        "$1/calls" "$1/root" | sed "s/^/$journal\t/"
        umount "$1/root"
    done
done
