"""The laboratory's counter of calls on files: listings by names, XFS's blocks of names."""

from __future__ import annotations

import test_laboratory_loops as made
from laboratory import file_calls
from laboratory.counted import Row
from laboratory.loops import Loop, loops

Block = tuple[str, int, int]


def call(name: str, instructions: int) -> list[Block]:
    return [("entry_SYSCALL_64", 0, 5), (f"__x64_sys_{name}", 1, instructions), ("", -1, 10)]


def loop(*calls: list[Block]) -> Loop:
    return Loop(made.rows("list", *(block for each in calls for block in each))[0].log)


def listing(instructions: int) -> list[list[Block]]:
    return [call("openat", 300), call("getdents64", instructions), call("close", 100)]


def test_a_listing_is_parted_by_the_names_of_two_directories() -> None:
    other = [call("openat", 50), call("close", 50)]
    few, many = loop(*listing(1000), *other), loop(*listing(1000 + 62 * 40))
    found = file_calls.listing(few, many)
    assert found == {"call.readdir": [1415 - 80], "call.readdir_name": [40]}


def test_the_block_of_a_directory_is_what_a_function_takes_more() -> None:
    def rows(kind: str, more: int) -> list[Row]:
        parts = [
            block for name in file_calls.BLOCK_PARTS.values() for block in ((name, 2, 100 + more), ("", 1, 1))
        ]
        return made.rows(kind, ("entry_SYSCALL_64", 0, 5), ("__x64_sys_rename", 1, 10), *parts)

    found = file_calls.block_directory(rows("own:link_unlink", 70), rows("link_unlink", 0))
    assert found == {f"dir_block.{name}": [70] for name in file_calls.BLOCK_PARTS}


def test_new_times_are_what_a_write_takes_more_that_dirties_the_inode() -> None:
    def write(*inside: Block) -> list[Block]:
        return [("entry_SYSCALL_64", 0, 5), ("__x64_sys_pwrite64", 1, 100), *inside, ("", -1, 10)]

    times: Block = ("ext4_dirty_inode", 2, 70)
    found = file_calls.new_times(made.rows("own:overwrite", *write(), *write(times), *write(), *write(times)))
    assert found == {"wfsync.dirty_inode": [70, 70]}


def test_pages_of_a_truncation_are_parted_by_two_sizes_and_by_folios_on_xfs() -> None:
    def rows(kind: str, instructions: int) -> list[Row]:
        return made.rows(
            kind, ("entry_SYSCALL_64", 0, 5), ("__x64_sys_ftruncate", 1, 10),
            ("truncate_inode_pages_range", 2, instructions), ("", 1, 1), ("", -1, 10),
        )  # fmt: skip

    few, many, folio = (
        rows(kind, instructions)
        for kind, instructions in (
            ("own:append_truncate", 100 + 4 * 30),
            ("truncate_large", 100 + 16 * 30),
            ("truncate_large", 100 + 30),
        )
    )
    assert file_calls.truncations([*few, *many], "btrfs") == {"truncate.pages": [100]}
    assert file_calls.truncations([*few, *folio], "xfs") == {"truncate.pages": [100]}
    for filesystem, large in (("btrfs", many), ("ext4", many), ("tmpfs", many), ("xfs", folio)):
        logs = {kind.removeprefix("own:"): loop for kind, loop in loops([*few, *large]).items()}
        assert file_calls.drop_folio(logs, filesystem)[0] == 30


def test_a_page_more_is_a_folio_of_its_own_where_none_is_large() -> None:
    def took(kind: str, name: str, instructions: int) -> Row:
        return made.rows(kind, *call(name, instructions))[0]

    found = file_calls.small_folios([
        took("own:read", "pread64", 1000), took("read_large", "pread64", 1000 + 15 * 800),
        took("own:overwrite", "pwrite64", 2000), took("overwrite_large", "pwrite64", 2000 + 15 * 1300),
        took("own:append_fsync", "pwrite64", 4000), took("append_large", "write", 4000 + 15 * 3600),
    ])  # fmt: skip
    assert found == {
        "xfs.call.read_folio": [800],
        "xfs.call.overwrite_folio": [1300],
        "xfs.call.append_folio": [3600],
    }


def test_an_open_is_parted_where_the_file_is_opened_and_the_loops_end_is_left_out() -> None:
    one = [("entry_SYSCALL_64", 0, 5), ("__x64_sys_openat", 1, 30), ("vfs_open", 2, 7), ("", -1, 10)]
    (row,) = made.rows("own:open", *one, *one, *one)
    found = file_calls.opens(Loop(row.log))
    assert found == {"call.open_walk": [35, 35], "call.open_rest": [7, 7]}
