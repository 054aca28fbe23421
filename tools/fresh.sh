# shellcheck shell=bash
# For the scripts of the folders beside. fresh FILESYSTEM IMAGE AT: mounts a new filesystem of 8 GiB, in a file or tmpfs.
fresh() {
    mountpoint -q "$3" && umount "$3"
    rm -f "$2"
    if [ "$1" = tmpfs ]; then mount -t tmpfs -o size=8g none "$3"; return; fi
    truncate -s 8G "$2"
    case $1 in
        xfs) mkfs.xfs -q -f "$2" ;;
        ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$2" ;;
        btrfs) mkfs.btrfs -q -f "$2" >/dev/null 2>&1 ;;
    esac
    mount -o loop "$2" "$3"
}
