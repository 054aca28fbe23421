#!/bin/sh
# Makes the sample files in this folder with the real tools (see README.md). Root; needs loop devices and 5 GiB of RAM.
#   PERF=perf-6.12 WIS=/src/will-it-scale ./make.sh
# It leaves nothing behind but the files, and names no path of the machine.
set -u
here=$(cd "$(dirname "$0")" && pwd)
PERF=${PERF:-perf}
work=$(mktemp -d)
cd "$work" || exit 1
for fs in xfs ext4 btrfs; do
  mkdir -p $fs && truncate -s 2G /dev/shm/samples-$fs.img
  case $fs in xfs) mkfs.xfs -q -d agcount=2 /dev/shm/samples-xfs.img ;; ext4) mkfs.ext4 -q -F /dev/shm/samples-ext4.img ;; btrfs) mkfs.btrfs -q /dev/shm/samples-btrfs.img >/dev/null ;; esac
  mount -o loop /dev/shm/samples-$fs.img $fs
done
mkdir tmpfs && mount -t tmpfs -o size=1G tmpfs tmpfs

contention() { # perf prints its tables on standard error
  out=$1; data=$2; shift 2
  $PERF lock contention -i $data.data "$@" >"$here/$out" 2>&1
}
for fs in xfs ext4 btrfs tmpfs; do
  mkdir -p $fs/d $fs/io
  $PERF lock record -q -a -o $fs.data -- fs_mark -d $fs/d -t 8 -s 0 -S 0 -n 1500 -L 2 >"$here/fs_mark-$fs.txt" 2>/dev/null
  contention perf-lock-$fs.txt $fs
  contention perf-lock-skip2-$fs.txt $fs --stack-skip 2
  $PERF script -i $fs.data 2>/dev/null | awk 'BEGIN { RS = ""; ORS = "\n\n" } NR <= 60' >"$here/perf-script-$fs.txt"
done
contention perf-lock-x-xfs.csv xfs -x,
contention perf-lock-x-ext4.csv ext4 -x,
contention perf-lock-t-xfs.txt xfs -t
contention perf-lock-t-x-xfs.csv xfs -t -x,
contention perf-lock-l-xfs.txt xfs -l
contention perf-lock-F-xfs.txt xfs -F contended,wait_total,wait_max,wait_min,avg_wait
$PERF lock report -i xfs.data >"$here/perf-lock-report-xfs.txt" 2>&1
OLD=${OLD:-/usr/bin/perf}
$OLD lock record -q -a -o old.data -- fs_mark -d xfs/d -t 8 -s 0 -S 0 -n 1500 >/dev/null 2>&1
$OLD lock contention -i old.data >"$here/perf-lock-6.1-xfs.txt" 2>&1
fs_mark -d xfs/d -t 2 -s 4096 -S 1 -n 500 -L 2 >"$here/fs_mark-sync-xfs.txt" 2>/dev/null
fs_mark -v -d ext4/d -t 2 -s 4096 -S 0 -n 500 -L 2 >"$here/fs_mark-v-ext4.txt" 2>/dev/null

for fs in xfs ext4 btrfs; do
  fio --name=rw --directory=$fs/io --rw=randrw --bs=4k --size=32m --numjobs=2 --direct=1 --ioengine=psync --runtime=2 --time_based --group_reporting --output-format=json --output="$here/fio-$fs.json" >/dev/null 2>&1
done
fio --name=a --name=b --directory=tmpfs/io --rw=read --bs=4k --size=16m --runtime=1 --time_based --output-format=json >"$here/fio-two-jobs-tmpfs.json" 2>/dev/null
fio --name=n --directory=ext4/io --rw=randwrite --bs=4k --size=16m --runtime=1 --time_based --output-format=normal,json --output="$here/fio-json-in-normal-ext4.txt" >/dev/null 2>&1
for n in 1 2 4; do
  dbench -D ext4/io -t 3 -c /usr/share/dbench/client.txt $n >"$here/dbench-$n-ext4.txt" 2>&1
done
dbench -D tmpfs/io -t 2 -c /usr/share/dbench/client.txt 2 >"$here/dbench-2-tmpfs.txt" 2>&1
xfs_info xfs >"$here/xfs_info.txt" 2>&1
truncate -s 2G e.img && mkfs.ext4 -q -F e.img && dumpe2fs -h e.img 2>/dev/null >"$here/dumpe2fs.txt"
truncate -s 64M o.img && mkfs.ext4 -q -F -O ^has_journal -i 8192 o.img && tune2fs -l o.img >"$here/tune2fs-nojournal.txt"
btrfs filesystem usage btrfs >"$here/btrfs-usage.txt"
btrfs filesystem usage -b btrfs >"$here/btrfs-usage-b.txt"
truncate -s 1G b.img && mkfs.btrfs -q -f b.img && btrfs inspect-internal dump-super b.img >"$here/btrfs-dump-super.txt"
lscpu >"$here/lscpu.txt"
mkfs.xfs -N -d size=64g,file,name=big.img | sed "s,=.*big.img,=/dev/sdb1," >"$here/xfs_info-64g.txt" 2>/dev/null

(fs_mark -d xfs/d -t 8 -s 0 -S 0 -n 4000 -L 1 >/dev/null 2>&1) & one=$!
(fs_mark -d btrfs/d -t 8 -s 0 -S 0 -n 4000 -L 1 >/dev/null 2>&1) & two=$!
offcputime 2 2>/dev/null | awk 'BEGIN { RS = ""; ORS = "\n\n" } NR <= 40' >"$here/offcputime.txt"
wait $one $two
(fs_mark -d btrfs/d -t 8 -s 0 -S 0 -n 6000 -L 1 >/dev/null 2>&1) & one=$!
bpftrace -e 'tracepoint:lock:contention_begin { @s[tid] = nsecs } tracepoint:lock:contention_end /@s[tid]/ { @wait_ns = hist(nsecs - @s[tid]); delete(@s[tid]) } interval:s:3 { exit() }' 2>/dev/null >"$here/bpftrace-hist.txt"
wait $one
(fs_mark -d btrfs/d -t 8 -s 0 -S 0 -n 6000 -L 1 >/dev/null 2>&1) & one=$!
bpftrace -e 'tracepoint:lock:contention_begin { @s[tid] = nsecs; @k[tid] = kstack(6) } tracepoint:lock:contention_end /@s[tid]/ { @wait_us[@k[tid]] = hist((nsecs - @s[tid]) / 1000); delete(@s[tid]); delete(@k[tid]) } interval:s:3 { clear(@s); clear(@k); exit() }' 2>/dev/null | awk 'BEGIN { RS = ""; ORS = "\n\n" } NR <= 25' >"$here/bpftrace-hist-kstack.txt"
wait $one
if [ -n "${WIS:-}" ]; then for t in open1 unlink1; do (cd "$WIS" && sed 's/^duration=5/duration=2/' runtest.py >rt.py && TMPDIR="$work/tmpfs" python3 rt.py $t 2>/dev/null) >"$here/will-it-scale-$t.csv"; done; fi
for fs in xfs ext4 btrfs tmpfs; do umount $fs; done
rm -rf /dev/shm/samples-*.img "$work"
