"""A job file of fio: what it does, as the `workload:` of a scenario; of several jobs each is a variant."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Mapping

from simfs.interchange.reading import Lines, Reading, flow

Job = Mapping[str, str]

_RW = {"read": "read", "write": "write", "randread": "randread", "randwrite": "randwrite", "randrw": "randrw"}
_SIZE = re.compile(r"(\d{1,15})\s*([kmgt])?(i?b)?", re.IGNORECASE)
_SUFFIX = {None: "B", "k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB"}
_ASYNC = ("libaio", "io_uring", "io_uring_cmd", "posixaio")
OF_NO_WEIGHT = frozenset((
    "name", "description", "directory", "filename", "filename_format", "ioengine", "runtime", "time_based",
    "group_reporting", "new_group", "thread", "ramp_time", "randrepeat", "norandommap", "random_generator",
    "startdelay", "invalidate", "fallocate", "refill_buffers", "scramble_buffers", "buffer_pattern",
    "buffer_compress_percentage", "zero_buffers", "end_fsync", "unlink", "create_on_open", "loops", "stonewall",
    "wait_for_previous", "exitall", "write_bw_log", "write_iops_log", "write_lat_log", "log_avg_msec",
    "percentile_list", "lat_percentiles", "clat_percentiles", "disable_lat", "disable_clat", "disable_slat",
    "randseed", "allrandrepeat", "minimal", "output", "output-format", "eta",
))  # fmt: skip
"""Options that say where, how long and what is printed, or that the keys of a scenario say otherwise."""


def is_mine(text: str) -> bool:
    """Whether there is a section, and in it what only fio's jobs say."""
    return bool(
        re.search(r"^\[[^\]\n]{1,80}\]\s*$", text, re.MULTILINE)
        and re.search(r"^\s*(rw|readwrite|bs|blocksize|ioengine|numjobs)\s*=", text, re.MULTILINE)
    )


def read(text: str) -> Reading:
    """Read the jobs; options without a key in simfs are listed and their lines count as skipped."""
    lines = Lines(text)
    jobs = _jobs(text)
    loads = {name: load for name, job in jobs.items() if (load := _load(job))}
    strange = sorted({key for job in jobs.values() for key in _strange(job)})
    if not loads:
        return Reading("fio-job", 0, lines.skipped + lines.matched)
    for line in lines:
        key = re.split(r"[=\s]", line.strip(), maxsplit=1)[0].lower()
        lines.take(0 if key in strange else 1)
    facts = {"jobs": ", ".join(loads)} | ({"not in simfs": ", ".join(strange)} if strange else {})
    if left_out := [name for name in jobs if name not in loads]:
        facts["no such load in simfs"] = ", ".join(left_out)
    if len(jobs) > 1 and not any({"stonewall", "wait_for_previous"} & set(job) for job in jobs.values()):
        facts["side by side"] = "fio runs these jobs together; here each is a variant, alone"
    return Reading("fio-job", lines.matched, lines.skipped, facts=facts, section=_section(loads))


def _jobs(text: str) -> dict[str, dict[str, str]]:
    """The options of each job, those of [global] among them; nothing where it is no such file."""
    parser = configparser.RawConfigParser(
        allow_no_value=True,
        delimiters=("=",),
        default_section="global",
        strict=False,
        comment_prefixes=("#", ";"),
    )
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return {name: {k: (v or "1").strip() for k, v in parser[name].items()} for name in parser.sections()}


def _strange(job: Job) -> Iterator[str]:
    """Options that simfs does not have, or not with this value: one size for reads and another for writes, 30 %."""
    sizes = ("bs", "blocksize", "size", "filesize")
    counts = ("numjobs", "iodepth", "fsync", "fdatasync")
    yield from (
        key
        for key, value in job.items()
        if key not in _KNOWN
        or (key in sizes and not _size(value))
        or (key in counts and not value.isdecimal())
    )
    if "random_distribution" in job and job["random_distribution"] != "random" and not _distribution(job):
        yield "random_distribution"


def _load(job: Job) -> dict[str, str]:
    """Keys of `workload:`; none where simfs has no such load."""
    rw = _RW.get(_of(job, "rw", "readwrite", otherwise="read"))
    if rw is None:
        return {}
    load = {"kind": "fio", "rw": rw}
    if block := _size(_of(job, "bs", "blocksize", otherwise="4k")):
        load["block_size"] = block
    if size := _size(_of(job, "size", "filesize")):
        load["size"] = size
    load["files"] = "shared" if "filename" in job else "per-task"
    load |= _numbers(job, rw)
    if distribution := _distribution(job):
        load["random_distribution"] = distribution
    return load


def _distribution(job: Job) -> str:
    """Zipf's law where the places are random; empty for any other."""
    said = _of(job, "random_distribution")
    known = re.fullmatch(r"zipf:\d{1,3}(\.\d{1,6})?", said) and _of(job, "rw", "readwrite").startswith("rand")
    return said if known else ""


def _numbers(job: Job, rw: str) -> dict[str, str]:
    direct = _of(job, "direct") in ("1", "true") or _of(job, "buffered") == "0"
    depth = _count(job, "iodepth") if _of(job, "ioengine") in _ASYNC else 1
    load = {"tasks": str(_count(job, "numjobs"))}
    if direct:
        load["direct"] = "true"
        load |= {"iodepth": str(depth)} if depth > 1 else {}
    if rw == "randrw" and (share := _of(job, "rwmixread")).isdecimal() and len(share) < 4:
        load["rwmixread"] = f"{share} %"
    for call in ("fsync", "fdatasync"):
        if (every := _count(job, call, otherwise=0)) > 0:
            load[call] = str(every)
    if _of(job, "sync") in ("1", "sync", "dsync"):
        load["sync"] = "true"
    return load


_KNOWN = OF_NO_WEIGHT | frozenset((
    "rw", "readwrite", "bs", "blocksize", "size", "filesize", "numjobs", "direct", "buffered", "iodepth",
    "rwmixread", "fsync", "fdatasync", "sync", "random_distribution",
))  # fmt: skip


def _of(job: Job, *names: str, otherwise: str = "") -> str:
    return next((job[name] for name in names if name in job), otherwise)


def _count(job: Job, *names: str, otherwise: int = 1) -> int:
    value = _of(job, *names)
    return int(value) if value.isdecimal() and value.isascii() and len(value) < 8 else otherwise


def _size(text: str) -> str:
    """A size as scenarios have it: fio's k is 1024 bytes."""
    found = _SIZE.fullmatch(text.strip())
    return f"{found[1]} {_SUFFIX[found[2] and found[2].lower()]}" if found else ""


def _section(loads: Mapping[str, dict[str, str]]) -> str:
    """One load, or what the loads share and a variant of each."""
    first, *others = loads.values()
    if not others:
        return f"workload: {flow(first)}\n"
    common = {key: value for key, value in first.items() if all(o.get(key) == value for o in others)}
    names = _names(loads)
    parts = (
        f"  - {{name: {name}, workload: {flow({k: v for k, v in load.items() if k not in common})}}}\n"
        for name, load in zip(names, loads.values(), strict=True)
    )
    return f"workload: {flow(common)}\nvariants:\n" + "".join(parts)


def _names(loads: Mapping[str, object]) -> list[str]:
    """Names that variants may have, each once."""
    names: list[str] = []
    for name in loads:
        plain = re.sub(r"[^a-z0-9_]", "_", name.lower()).lstrip("_0123456789")[:30] or "job"
        names.append(plain if plain not in names else f"{plain}_{len(names) + 1}")
    return names
