#!/bin/busybox sh
# dbench.sh CLIENTS SECONDS: Debian's dbench with the beginning of its load file, on /mnt/work. A RESULT line of what it reports.
switches() { awk '/^ctxt/ { print $2 }' /proc/stat; }

before=$(switches)
/bin/dbench -c /client.txt -t "$2" -D /mnt/work "$1" >/tmp/report
after=$(switches)
awk -v clients="$1" -v seconds="$2" -v switched=$((after - before)) '
/^ *Operation/ { table = 1 }
table && NF == 4 && $2 + 0 > 0 { calls += $2; if ($1 == "Flush") flush = $3 }
END {
    printf "RESULT kind=dbench tasks=%d own=1 rate=%.1f switches=%.4f flush_us=%.0f\n",
        clients, calls / seconds, switched / calls, 1000 * flush
}' /tmp/report
