"""The section of a scenario that says what the filesystem is."""

import struct
from typing import Annotated, ClassVar, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StrictBool, StrictInt, model_validator

from simfs.scenario.sections.section import Section, Text, refusal, refusal_at
from simfs.scenario.sections.units import Duration, Room, Size, size_between
from simfs.scenario.sections.words import Named

INDEX_LOCKS = {"interval-tree": "qspinlock", "btree": "mutex"}
"""The lock around a range lock's index, by design; the optimistic design has none."""
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


LOG_BUFFERS = tuple(1 << bits for bits in range(14, 19))
"""Sizes that the mount option `logbsize` takes (`xfs_finish_flags` and `xfs_fs_validate_params`)."""


LOG_STRIPES = tuple(1 << bits for bits in range(12, 19))
"""Stripe units of the log, of those that mkfs.xfs takes: the powers of two."""


def _log_buffer(size: int) -> int:
    if size not in LOG_BUFFERS:
        raise refusal("logbsize: 16, 32, 64, 128 or 256 KiB")
    return size


DIRECTORY_BLOCKS = tuple(1 << bits for bits in range(12, 17))
"""Sizes that `mkfs.xfs -n size=` takes where blocks of the filesystem have 4 KiB (`XFS_MAX_BLOCKSIZE`)."""


def _directory_block(size: int) -> int:
    if size not in DIRECTORY_BLOCKS:
        raise refusal("dirblksize: 4, 8, 16, 32 or 64 KiB")
    return size


def _log_stripe(size: int) -> int:
    if size not in LOG_STRIPES:
        raise refusal("log_su: 4, 8, 16, 32, 64, 128 or 256 KiB")
    return size


CachedInodes = Annotated[
    Annotated[StrictInt, Field(ge=0, le=1_000_000_000)] | None,
    Field(
        description="Inodes that are in memory, unused, when the run begins. Memory of a given size is full of them, or"
        " will be, and they make the chains of the inode hash long.",
    ),
]


class OnDevice(Section):
    """A filesystem on a device, of which other files may have a part."""

    size: Size = Field(default=8 << 30, description="Size of the device.")
    free: Room | None = Field(
        default=None,
        description="Bytes that are free when the tasks start: other files have the rest. null: what the files of the"
        " load leave.",
    )

    @model_validator(mode="after")
    def _free_fits(self) -> Self:
        if self.free is not None and self.free >= self.size:
            raise refusal_at(
                ("free",),
                f"{self.free / 2**20:g} MiB: less than the filesystem has, which is {self.size / 2**20:g} MiB",
            )
        return self


class Xfs(OnDevice):
    """XFS. Geometry follows mkfs.xfs."""

    MIN_AG_BYTES: ClassVar[int] = 16 << 20
    MAX_AG_BYTES: ClassVar[int] = 1 << 40
    HEADERS: ClassVar[int] = 12 * 4096
    LARGE_DIRECTORY_LOG: ClassVar[int] = 2174 << 12

    kind: Literal["xfs"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'xfs' when absent."
    )
    agcount: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=4, description="Allocation groups."
    )
    log_size: Annotated[Size, size_between(855 << 12, 2038 << 20)] | None = Field(
        default=None,
        description="Size of the log; null: as mkfs.xfs makes it, of 300 MiB or more. Of less than 1 GiB"
        " it made a log of 855 blocks (3420 KiB) before xfsprogs 5.1, and 1368 (5472 KiB) before 5.19.",
    )
    logbsize: Annotated[Size, AfterValidator(_log_buffer)] = Field(
        default=32 << 10,
        description="Size of each of the eight log buffers (mount option logbsize); when absent no less than log_su.",
    )
    log_su: Annotated[Size, AfterValidator(_log_stripe)] | None = Field(
        default=None,
        description="Stripe unit of the log (mkfs.xfs -l su=), to which its writes are padded; null: none, 512 bytes."
        " mkfs.xfs takes 4 KiB where physical sectors have 4 KiB, else the device's stripe unit, or 32 KiB for more"
        " than 256 KiB.",
    )
    dirblksize: Annotated[Size, AfterValidator(_directory_block)] = Field(
        default=4 << 10,
        description="Size of a block of a directory (mkfs.xfs -n size=).",
    )
    parent: StrictBool = Field(
        default=False,
        description="Whether inodes have parent pointers (mkfs.xfs -n parent=1 of xfsprogs 6.10; since Linux 6.10).",
    )
    iolock: Literal["rwsem", "none", "interval-tree", "btree", "optimistic"] = Field(
        default="rwsem",
        description="What direct I/O takes: the IOLOCK shared, nothing, or a range lock of this design.",
    )
    buffered_io: Literal["locked", "reads-unlocked", "writes-shared", "prewarmed"] = Field(
        default="locked",
        description="What I/O through the page cache takes: reads the IOLOCK shared and writes exclusively, reads"
        " nothing, both the IOLOCK shared, or as 'locked' with a read's pages in memory before it takes the lock.",
    )
    cached_inodes: CachedInodes = None
    costs: Annotated[dict[str, Duration], Named(lambda words: words.costs["xfs"])] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        group = self.size / self.agcount
        if not self.MIN_AG_BYTES <= group <= self.MAX_AG_BYTES:
            raise refusal(
                f"agcount {self.agcount} makes allocation groups of {group / 2**20:g} MiB;"
                " mkfs.xfs takes 16 MiB to 1 TiB a group"
            )
        if self.log_size is not None and self.log_size > group - self.HEADERS:
            raise refusal(
                f"log_size {self.log_size / 2**20:g} MiB: the log lies in one allocation group, and these have"
                f" {group / 2**20:g} MiB"
            )
        return self

    @model_validator(mode="after")
    def _log_takes_directories(self) -> Self:
        if (
            self.dirblksize == DIRECTORY_BLOCKS[-1]
            and (self.log_size or self.LARGE_DIRECTORY_LOG) < self.LARGE_DIRECTORY_LOG
        ):
            raise refusal("log_size: with a dirblksize of 64 KiB mkfs.xfs makes a log of 8696 KiB at least")
        return self

    @model_validator(mode="after")
    def _stripe_fits_a_buffer(self) -> Self:
        if self.log_su is not None and "logbsize" in self.model_fields_set and self.logbsize < self.log_su:
            raise refusal(
                f"logbsize {self.logbsize >> 10} KiB: no less than log_su, which is {self.log_su >> 10} KiB"
            )
        return self

    @property
    def roles(self) -> dict[str, str]:
        """Role -> kind of the locks that no kernel has: the one around a range lock's index."""
        return {"range_lock": INDEX_LOCKS[self.iolock]} if self.iolock in INDEX_LOCKS else {}


class Btrfs(OnDevice):
    """btrfs on one device."""

    MOVED: ClassVar[dict[str, str]] = {
        "early_unlock": "kernel.rules: {btrfs.early_unlock: ...}",
        "delays_new_inodes": "kernel.rules: {btrfs.delays_new_inodes: ...}",
    }

    kind: Literal["btrfs"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'btrfs' when absent."
    )
    nodatacow: StrictBool = Field(
        default=False, description="Mounted with nodatacow: what has an extent is written in place."
    )
    new_directories: StrictBool = Field(
        default=False,
        description="Whether the workload's directories count as made in the running transaction, as in a test that"
        " is over before the first commit: fsync of a new file then logs its directory too.",
    )
    subvolumes: StrictBool = Field(
        default=False,
        description="Whether each of the workload's directories is a subvolume, with a tree and a log of its own.",
    )
    cached_inodes: CachedInodes = None
    costs: Annotated[dict[str, Duration], Named(lambda words: words.costs["btrfs"])] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )


class Ext4(OnDevice):
    """ext4."""

    MOVED: ClassVar[dict[str, str]] = {
        "dio_writes": "kernel.rules: {ext4.dio_writes: ...}",
        "write_handles": "kernel.rules: {ext4.write_handles: ...}",
    }

    kind: Literal["ext4"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'ext4' when absent."
    )
    journal: StrictBool = Field(default=True, description="Whether it has a journal.")
    inode_ratio: Annotated[Size, size_between(1 << 10, 64 << 20)] = Field(
        default=16 << 10, description="Bytes for each inode, as mkfs.ext4 -i has it."
    )
    orphan_file: StrictBool = Field(
        default=False,
        description="Made with an orphan file, as by mkfs.ext4 of e2fsprogs 1.47 (2023; not Debian 12's): unlinked"
        " inodes are noted there without s_orphan_lock.",
    )
    hash_seed: Annotated[Text, Field(pattern=_UUID)] | None = Field(
        default=None,
        description="The seed of the directories' hashes, as mkfs.ext4 -E hash_seed takes it; none when absent.",
    )
    below: Annotated[Text, Field(min_length=1, max_length=255, pattern="^[!-.0-~]+$")] | None = Field(
        default=None,
        description="Name of the directory of the root in which the directories of the load are made: they then lie in"
        " its flex group. In the root itself when absent: spread over flex groups.",
    )
    cached_inodes: CachedInodes = None
    costs: Annotated[dict[str, Duration], Named(lambda words: words.costs["ext4"])] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )

    @property
    def hash_seed_words(self) -> list[int]:
        """`s_hash_seed`: the UUID's bytes as four little-endian words."""
        return list(struct.unpack("<4I", UUID(self.hash_seed or "0" * 32).bytes))


class Tmpfs(Section):
    """tmpfs: the VFS alone, the floor under every filesystem."""

    kind: Literal["tmpfs"]
    profile: Text | None = Field(
        default=None, description="Cost profile in models/filesystems; 'tmpfs' when absent."
    )
    size: Size = Field(default=8 << 30, description="Size limit of the mount.")
    costs: Annotated[dict[str, Duration], Named(lambda words: words.costs["tmpfs"])] = Field(
        default={}, description="Step costs that replace the profile's, by name."
    )


class NoFilesystem(Section):
    """No filesystem: the workload takes locks only."""

    kind: Literal["none"]


Filesystem = Annotated[Xfs | Btrfs | Ext4 | Tmpfs | NoFilesystem, Field(discriminator="kind")]
