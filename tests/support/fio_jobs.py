"""Jobs of fio on one file, as a spec, and what comes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine import Spec, read_whole_answer, written_spec

SCENARIO = """\
simfs: 1
name: jobs
title: Jobs on one file
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: xfs}
device: {profile: nvme, read: {time: 50 us, cv: 0}, write: {time: 50 us, cv: 0}}
workload: {kind: fio, tasks: 4, direct: true, size: 64 MiB}
measure: {warmup: 5 ms, duration: 40 ms, replications: 1}
"""


def spec(tmp_path: Path, *options: str, text: str = SCENARIO) -> Spec:
    return written_spec(tmp_path / "jobs.yaml", text, *options)


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_whole_answer(spec(tmp_path, *options))
