#!/bin/bash
# run.sh OUT SECONDS: every load of latencies.c by one process and by four, on XFS, ext4 and btrfs, on a loop device and on zram, each time
# on a fresh filesystem of 4 GiB, all of it once, and then again in quiet moments until each was there five times while others used at most
# 5 % of the CPUs, or so many seconds have gone; a second time it goes on. Needs root, zram0 unused, 12 GiB of memory, fio, and better an idle machine.
# A line of OUT is device, filesystem, and what latencies.c prints. OUT.device has what fio finds the devices themselves to do.
# The file below the loop device has all its pages from the beginning. While "round" runs, 256 MiB may be dirty and 128 MiB begin to be written.
set -u
# A mount namespace that others copy (unshare) would keep the devices busy.
[ -n "${apart-}" ] || apart=1 exec unshare -m "$0" "$@"
out=$1
until=$((SECONDS + $2))
here=$(dirname "$0")
. "$here/../fresh.sh"
prepare "$here/latencies.c"
image=$work/image
head -c 4G /dev/zero >"$image"

# at_end: as it was.
at_end() {
    limit 0 0
    mountpoint -q "$at" && umount "$at"
    [ -z "${loop-}" ] || losetup -d "$loop"
    echo 1 >/sys/block/zram0/reset
    rm -rf --one-file-system "$work"
}
trap at_end EXIT

# limit MOST BACKGROUND: bytes that may be dirty; 0 0 are the ratios that a kernel begins with.
limit() {
    if [ "$1" = 0 ]; then
        echo 20 >/proc/sys/vm/dirty_ratio
        echo 10 >/proc/sys/vm/dirty_background_ratio
    else
        echo "$2" >/proc/sys/vm/dirty_background_bytes
        echo "$1" >/proc/sys/vm/dirty_bytes
    fi
}

loop=$(losetup --show -f "$image")
echo 4G >/sys/block/zram0/disksize

# on DEVICE FILESYSTEM: mounts a new filesystem at "$at". Nothing is discarded, so that the image keeps its pages.
on() {
    local device=$loop
    if [ "$1" = zram ]; then
        device=/dev/zram0
        echo 1 >/sys/block/zram0/reset
        echo 4G >/sys/block/zram0/disksize
    fi
    case $2 in
        xfs) mkfs.xfs -q -f -K "$device" ;;
        ext4) mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$device" ;;
        btrfs) mkfs.btrfs -q -f -K "$device" >/dev/null 2>&1 ;;
    esac
    mount "$device" "$at"
}

# of_device DEVICE: latencies of direct I/O of 4 KiB and 256 KiB in ns, at the 10th percentile and in the middle.
of_device() {
    local path=$loop
    [ "$1" = zram ] && path=/dev/zram0
    for size in 4k 256k; do
        for way in write read; do
            fio --name=raw --filename="$path" --rw=$way --bs=$size --size=1g --direct=1 --ioengine=psync --runtime=1 --time_based --ramp_time=200ms --output-format=json |
                python3 -c 'import json, sys
took = json.load(sys.stdin)["jobs"][0][sys.argv[3]]["clat_ns"]["percentile"]
print(*sys.argv[1:], took["10.000000"], took["50.000000"])' "$1" $size $way >>"$out.device"
        done
    done
}

# clean DEVICE,FILESYSTEM,LOAD,PROCESSES: how often it was measured beside next to nothing.
clean() { awk -F, -v wanted="$1" 'wanted == $1 "," $2 "," $3 "," $4 && $NF <= 5 { n++ } END { print n + 0 }' "$out"; }

# measure DEVICE FILESYSTEM PROCESSES LOAD WARMUP_MS WINDOW_MS
measure() {
    on "$1" "$2"
    [ "$4" = round ] && limit $((256 << 20)) $((128 << 20))
    line=$("$program" "$4" "$3" "$at" "$5" "$6") && echo "$1,$2,$line" >>"$out"
    limit 0 0
    umount "$at"
}

# pass WANTED [yes]: measures what was clean less often than that, or only in quiet moments, and sets missing to how many there are.
pass() {
    local device filesystem processes case
    missing=0
    for device in loop zram; do
        for filesystem in xfs ext4 btrfs; do
            for processes in 1 4; do
                for case in "write 50 300" "round 2000 1000" "sync 100 500" "create 100 500"; do
                    [ "$(clean "$device,$filesystem,${case%% *},$processes")" -lt "$1" ] || continue
                    missing=$((missing + 1))
                    [ $SECONDS -lt $until ] || return
                    "$program" quiet 2 1 || [ -z "${2-}" ] || continue
                    # shellcheck disable=SC2086
                    measure $device $filesystem $processes $case
                done
            done
        done
    done
}

touch "$out"
for device in loop zram; do of_device $device; done
[ -s "$out" ] || pass 1
for wanted in 1 2 3 4 5; do
    missing=1
    while [ $missing -gt 0 ] && [ $SECONDS -lt $until ]; do pass $wanted yes; done
done
