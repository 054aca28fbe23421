# shellcheck shell=bash disable=SC2034
# For the scripts of the folders beside, which give OUT and FILESYSTEM... to it; as root.

# prepare [SOURCE.c...]: makes a folder in memory with the compiled "$program", if there are sources, and a place "$at" to mount at. Both go at the
# end.
prepare() {
    work=$(mktemp -d /dev/shm/simfs.XXXXXX)
    at=$work/mounted
    program=$work/program
    mkdir "$at"
    trap 'mountpoint -q "$at" && umount "$at"; rm -rf --one-file-system "$work"' EXIT
    [ $# = 0 ] || gcc -O2 -Wall -o "$program" "$@" || exit 1
}

# fresh FILESYSTEM: mounts a new one of 8 GiB at "$at", in a file or tmpfs.
fresh() {
    local image=$work/image
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

# in_state cold|hot: drops inodes and dentries from memory, or leaves them.
in_state() {
    sync -f "$at"
    [ "$1" = hot ] || echo 2 >/proc/sys/vm/drop_caches
}
