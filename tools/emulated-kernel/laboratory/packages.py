"""Debian packages: what the host needs, and what the guest is made of; the host's apt lists stay as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

HOST_PACKAGES = (
    "gcc", "libc6-dev", "libglib2.0-dev", "libpixman-1-dev", "flex", "bison", "pkg-config", "ninja-build",
    "python3-venv", "patch", "xz-utils", "dpkg-dev", "xfsprogs", "e2fsprogs", "btrfs-progs",
)  # fmt: skip
"""Compiler and libraries for the emulator; mkfs programs, which are copied into the guest."""

SOURCES = """\
deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-backports main
deb http://deb.debian.org/debian-security bookworm-security main
deb-src http://deb.debian.org/debian trixie main
"""


class Apt:
    """apt with sources, lists and downloads of its own, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.options = [
            f"-oDir::Etc::SourceList={self.folder}/sources.list",
            "-oDir::Etc::SourceParts=/nonexistent",
            f"-oDir::State::Lists={self.folder}/lists",
            f"-oDir::Cache={self.folder}/cache",
            "-oAPT::Sandbox::User=root",
        ]

    def update(self) -> None:
        """Fetch the lists, once."""
        if (self.folder / "sources.list").exists():
            return
        for part in ("lists/partial", "cache/archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "sources.list").write_text(SOURCES)
        self._run("apt-get", "update", "-q")

    def unpacked(self, package: str) -> Path:
        """Return the folder with what a package (`name` or `name=version`) installs."""
        into = self.folder.parent / "packages" / package.partition("=")[0]
        if not into.exists():
            self.update()
            downloads = self.folder.parent / "downloads"
            downloads.mkdir(exist_ok=True)
            self._run("apt-get", "download", "-q", package, folder=downloads)
            (archive,) = downloads.glob(f"{package.partition('=')[0]}_*.deb")
            into.parent.mkdir(exist_ok=True)  # dpkg-deb makes only the last one
            subprocess.run(["dpkg-deb", "-x", archive, into], check=True)
        return into

    def version(self, package: str) -> str:
        """Return the version of the package that was unpacked."""
        name = package.partition("=")[0]
        (archive,) = (self.folder.parent / "downloads").glob(f"{name}_*.deb")
        return archive.name.split("_")[1].replace("%3a", ":")

    def source(self, package: str) -> Path:
        """Return the folder with the original source of a package, without the distribution's patches."""
        folder = self.folder.parent / "source"
        if not folder.exists():
            self.update()
            folder.mkdir()
            self._run("apt-get", "source", "-q", "--download-only", "--tar-only", package, folder=folder)
            (archive,) = folder.glob("*.orig.tar.xz")
            subprocess.run(["tar", "-xf", archive.name], cwd=folder, check=True)
        (tree,) = (path for path in folder.iterdir() if path.is_dir())
        return tree

    def _run(self, command: str, *arguments: str, folder: Path | None = None) -> None:
        subprocess.run([command, *self.options, *arguments], cwd=folder, check=True)


def install_host_packages() -> None:
    """Install what the host lacks; needs root."""
    missing = [
        name
        for name in HOST_PACKAGES
        if subprocess.run(["dpkg", "-s", name], capture_output=True, check=False).returncode
    ]
    if missing:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-qy", "--no-install-recommends", *missing], check=True)
