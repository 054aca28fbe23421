"""Run one guest and keep what it printed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from laboratory import plan
from laboratory.emulator import build_emulator, firmware
from laboratory.initramfs import build_initramfs, build_load
from laboratory.packages import Apt

CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdtscp,+fsgsbase,+cx16,+rdrand,-svm,-hypervisor"
"""rdrand, which -seed makes repeatable, so that the kernel's generator is ready from the start: before, every random
number is made under one lock, 7,000 instructions each. No hypervisor bit: with it spinlocks are test-and-set.
"""
EPOCH = "2026-01-01T00:00:00"
"""The guest's clock of day at power on: the same in every run."""
KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=4 mitigations=off nokaslr norandmaps tsc=reliable clocksource=tsc no_timer_check "
    "init_on_alloc=0 audit=0 apparmor=0 selinux=0 nowatchdog random.trust_cpu=on panic=-1"
)
BARE = "lsm= cgroup_disable=memory"
CHARGED = "lsm=lockdown,landlock,bpf"
"""As the guests of the data sets boot: `capability` is always there."""
BUSYBOX = "busybox-static"
DBENCH = "dbench=4.0-2.1"
LOGS = {"LOG": ".blocks", "LINES": ".lines", "MEMORY": ".memory", "ACCESSES": ".accesses"}
"""What the emulator writes, by its environment variables (PTIME_...): endings of the names."""


@dataclass(frozen=True)
class Laboratory:
    """The folder with everything that was downloaded and built."""

    folder: Path

    @property
    def apt(self) -> Apt:
        """Return apt with lists of its own."""
        return Apt(self.folder / "apt")

    def prepare(self) -> None:
        """Build what is missing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        build_emulator(self.apt, self.folder)
        firmware(self.apt, self.folder)
        build_load(self.folder)

    def kernel(self, version: str) -> Path:
        """Return the unpacked package of a kernel of `plan.KERNELS`."""
        return self.apt.unpacked(plan.KERNELS[version])

    def run(self, guest: plan.Guest, into: Path, seed: int) -> Path:
        """Run a guest to its end; return its console, `NAME.log`. Traces are in `NAME.trace`."""
        into.mkdir(parents=True, exist_ok=True)
        (boot,) = self.kernel(guest.kernel).glob("boot/vmlinuz-*")
        initrd = into / f"{guest.name}.initrd"
        busybox = self.apt.unpacked(BUSYBOX) / "bin/busybox"
        dbench = self.apt.unpacked(DBENCH) if any(row.startswith("dbench ") for row in guest.rows) else None
        load = build_load(self.folder)
        root = build_initramfs(self.kernel(guest.kernel), busybox, load, guest.plan(), dbench)
        initrd.write_bytes(root)
        log = into / f"{guest.name}.log"
        command = self._command(guest, boot, initrd, log, seed)
        times = {"PTIME_QUANTUM": str(guest.quantum), "PTIME_SPEED": str(guest.speed)}
        times |= {"PTIME_SPREAD": str(guest.spread), "PTIME_SEED": str(seed)}
        times |= {f"PTIME_{name}": str(log.with_suffix(LOGS[name])) for name in guest.logs}
        subprocess.run(command, env={**os.environ, **times}, check=True)
        initrd.unlink()
        return log

    def _command(self, guest: plan.Guest, boot: Path, initrd: Path, log: Path, seed: int) -> list[str]:
        trace = log.with_suffix(".trace")
        arguments = f"{KERNEL_ARGUMENTS} {CHARGED if guest.charged else BARE} preempt={guest.preempt}"
        return [
            str(build_emulator(self.apt, self.folder)),
            *("-accel", "tcg,thread=single,tb-size=512"),
            *("-icount", "shift=0,sleep=off"),
            *("-M", "pc,hpet=off", "-cpu", CPU),
            *("-smp", f"{guest.cpus},sockets=1,cores={guest.cpus},threads=1", "-m", "4608"),
            *("-rtc", f"base={EPOCH},clock=vm", "-seed", str(seed)),
            *("-L", str(firmware(self.apt, self.folder))),
            *("-nodefaults", "-display", "none", "-no-reboot", "-monitor", "none"),
            *("-serial", f"file:{log}"),
            *("-chardev", f"file,id=trace,path={trace}", "-device", "isa-debugcon,chardev=trace,iobase=0xe9"),
            *("-kernel", str(boot), "-initrd", str(initrd), "-append", arguments),
        ]
