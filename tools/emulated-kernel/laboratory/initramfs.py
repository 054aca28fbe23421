"""The guest's root: init, the load program, busybox, mkfs and kernel modules, as a cpio archive in memory."""

from __future__ import annotations

import lzma
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

GUEST = Path(__file__).parent.parent / "guest"
OPERATIONS = GUEST.parents[1] / "file-operations/operations.c"
"""What guest/operations.c includes."""
FILESYSTEMS = ("xfs", "btrfs", "ext4")
MODULES = ("loop", "crc32c-intel")
DEVICES = {"null_blk": ("null_blk",), "scsi_debug": ("sd_mod", "scsi_debug")}
"""Modules of devices that a plan names."""
DBENCH_CALLS = 100_000
"""Lines of its load file, more than a client gets through in a second."""


class Archive:
    """A cpio archive of format newc, with fixed times, so that the same content is the same bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.names: set[str] = set()

    def add(self, name: str, data: bytes, mode: int = 0o755) -> None:
        """Add a file and the folders above it."""
        for parent in reversed(Path(name).parents[:-1]):
            if str(parent) not in self.names:
                self._entry(str(parent), b"", stat.S_IFDIR | 0o755)
        self._entry(name, data, stat.S_IFREG | mode)

    def add_device(self, name: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._entry(name, b"", stat.S_IFCHR | 0o600, major, minor)

    def finish(self) -> bytes:
        """Return the whole archive."""
        self._entry("TRAILER!!!", b"", 0)
        whole = b"".join(self.parts)
        return whole + bytes(-len(whole) % 512)

    def _entry(self, name: str, data: bytes, mode: int, major: int = 0, minor: int = 0) -> None:
        self.names.add(name)
        encoded = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.parts.append(header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4))


def build_initramfs(kernel: Path, busybox: Path, load: Path, plan: str, dbench: Path | None = None) -> bytes:
    """Return the archive for an unpacked kernel package and a plan, with the filesystems that the plan names.

    With `dbench`, its unpacked package, that program is in it.
    """
    archive = Archive()
    filesystems = [
        name for name in FILESYSTEMS if re.search(rf"^(files|steps|dbench) {name} ", plan, re.MULTILINE)
    ]
    named = [name for name in DEVICES if re.search(f"^{name} ", plan, re.MULTILINE)]
    wanted = (*MODULES, *(module for name in named for module in DEVICES[name]), *filesystems)
    archive.add_device("dev/console", 5, 1)
    archive.add("init", (GUEST / "init").read_bytes())
    archive.add("load", load.read_bytes())
    archive.add("bin/busybox", busybox.read_bytes())
    for number, (name, data) in enumerate(modules(kernel, wanted).items()):
        archive.add(f"modules/{number:02}-{name}.ko", data)
    for name in filesystems:
        _add_program(archive, f"mkfs.{name}")
    archive.add("etc/mke2fs.conf", Path("/etc/mke2fs.conf").read_bytes(), 0o644)
    if dbench:
        _add_dbench(archive, dbench)
    archive.add("plan", plan.encode())
    return archive.finish()


def build_load(folder: Path) -> Path:
    """Return the static load program."""
    program = folder / "load"
    sources = sorted(GUEST.glob("*.c"))
    newest = max(path.stat().st_mtime for path in [*sources, GUEST / "load.h", OPERATIONS])
    if not program.exists() or program.stat().st_mtime < newest:
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-static"]
        subprocess.run(["gcc", *flags, "-o", program, *sources], check=True)
    return program


def modules(kernel: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Return these modules by name, each after those it depends on; what is built in has none."""
    files = {_module_name(path): path for path in sorted(kernel.rglob("*.ko*"))}
    found: dict[str, bytes] = {}

    def take(name: str) -> None:
        path = files.get(name.replace("-", "_"))
        if path is None or _module_name(path) in found:
            return
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        for needed in dependencies(data):
            take(needed)
        found[_module_name(path)] = data

    for name in names:
        take(name)
    return found


def dependencies(module: bytes) -> Iterator[str]:
    """Yield the modules that a module needs: `depends` and `softdep: pre` of its modinfo."""
    for found in re.finditer(rb"(?:^|\0)(?:depends=|softdep=pre: )([^\0]*)", module):
        yield from (name for name in re.split(r"[ ,]+", found[1].decode()) if name)


def _module_name(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _add_dbench(archive: Archive, package: Path) -> None:
    calls = (package / "usr/share/dbench/client.txt").read_bytes().splitlines(keepends=True)
    archive.add("client.txt", b"".join(calls[:DBENCH_CALLS]), 0o644)
    archive.add("dbench.sh", (GUEST / "dbench.sh").read_bytes())
    _add_file(archive, package / "usr/bin/dbench")


def _add_program(archive: Archive, name: str) -> None:
    path = shutil.which(name, path="/usr/sbin:/sbin:/usr/bin")
    if path is None:
        raise FileNotFoundError(f"{name} is not installed")
    _add_file(archive, Path(path))


def _add_file(archive: Archive, path: Path) -> None:
    """Add a program and its libraries, those of this machine."""
    archive.add(f"bin/{path.name}", path.read_bytes())
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+)", listed):
        if library.lstrip("/") not in archive.names:
            archive.add(library.lstrip("/"), Path(library).read_bytes())
