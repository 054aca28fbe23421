"""QEMU with parallel virtual time, from the distribution's source package."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

from laboratory.packages import Apt

PATCH = Path(__file__).parent.parent / "parallel-time.patch"
DEVICES = "CONFIG_I440FX=y\nCONFIG_ISA_DEBUG=y\nCONFIG_SERIAL_ISA=y\n"
CONFIGURE = (
    "--target-list=x86_64-softmmu", "--without-default-features", "--without-default-devices",
    "--with-devices-x86_64=laboratory", "--enable-tcg", "--disable-kvm", "--disable-docs", "--disable-tools",
    "--disable-guest-agent", "--disable-werror", "--disable-download", "--disable-install-blobs",
    "--extra-cflags=-O2 -march=native",
)  # fmt: skip
FIRMWARE = {
    "seabios=1.16.3-2~bpo12+1": ["usr/share/seabios/bios-256k.bin"],
    "qemu-system-data=1:10.0.2+ds-2+deb13u1~bpo12+1": [
        "usr/share/qemu/linuxboot_dma.bin",
        "usr/share/qemu/kvmvapic.bin",
    ],
}


def build_emulator(apt: Apt, folder: Path) -> Path:
    """Return the emulator, built if it is not there yet (1,300 files, some five minutes on two cores)."""
    program = folder / "build" / "qemu-system-x86_64"
    if program.exists():
        return program
    tree = apt.source("qemu")
    if not (tree / "include/system/parallel-time.h").exists():
        subprocess.run(["patch", "-p1", "-i", PATCH.resolve()], cwd=tree, check=True)
    (tree / "configs/devices/x86_64-softmmu/laboratory.mak").write_text(DEVICES)
    python = _python_with_meson(folder / "venv")
    program.parent.mkdir(exist_ok=True)
    subprocess.run(
        [tree.resolve() / "configure", f"--python={python}", *CONFIGURE], cwd=program.parent, check=True
    )
    subprocess.run(["ninja", program.name], cwd=program.parent, check=True)
    return program


def _python_with_meson(folder: Path) -> Path:
    if not folder.exists():
        venv.create(folder, with_pip=True)
        pip = folder / "bin/pip"
        subprocess.run([pip, "install", "-q", "meson==1.5.0", "pycotap", "distlib"], check=True)
    return (folder / "bin/python").absolute()


def firmware(apt: Apt, folder: Path) -> Path:
    """Return the folder with the images that a PC boots with."""
    roms = folder / "roms"
    roms.mkdir(exist_ok=True)
    for package, names in FIRMWARE.items():
        for name in names:
            target = roms / Path(name).name
            if not target.exists():
                target.write_bytes((apt.unpacked(package) / name).read_bytes())
    return roms
