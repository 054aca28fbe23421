"""parents.py IMAGE: gives a fresh, empty XFS parent pointers (`mkfs.xfs -n parent=1`).

For xfsprogs before 6.10, which cannot make them. An empty filesystem with them differs only by a bit of each
superblock: the root directory has no parent, and the inodes of the realtime device have none.
"""

import struct
import sys

INCOMPAT, CRC, PARENT = 216, 224, 1 << 7
"""Offsets of sb_features_incompat and sb_crc, and XFS_SB_FEAT_INCOMPAT_PARENT."""


def crc32c(data: bytes) -> int:
    """Return the checksum of XFS's metadata."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def main(image: str) -> None:
    """Change all superblocks."""
    with open(image, "r+b") as file:
        first = file.read(512)
        (block,) = struct.unpack(">I", first[4:8])
        blocks, groups = struct.unpack(">II", first[84:92])
        (sector,) = struct.unpack(">H", first[102:104])
        for group in range(groups):
            file.seek(group * blocks * block)
            head = bytearray(file.read(sector))
            (features,) = struct.unpack(">I", head[INCOMPAT : INCOMPAT + 4])
            head[INCOMPAT : INCOMPAT + 4] = struct.pack(">I", features | PARENT)
            head[CRC : CRC + 4] = bytes(4)
            head[CRC : CRC + 4] = struct.pack("<I", crc32c(bytes(head)))
            file.seek(group * blocks * block)
            file.write(head)


if __name__ == "__main__":
    main(sys.argv[1])
