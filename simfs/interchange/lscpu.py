"""`lscpu`: CPUs, what they share and the sizes of caches, as the `machine:` section of a scenario.

Costs are not in it: they are those of the profile that the section names, or of `simfs measure` on that machine.
"""

from __future__ import annotations

import re

from simfs.interchange.reading import Lines, Reading, flow

_FIELD = re.compile(r"^(?P<name>[A-Z][^:]{1,40}):\s+(?P<value>\S.*)$")
_COUNT = re.compile(r"\d{1,6}")
_CACHE = re.compile(
    r"(?P<size>\d{1,9}(\.\d{1,4})?)\s*(?P<unit>[KMG])i?B?(\s+\((?P<instances>\d{1,6}) instances?\))?"
)
_BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}
USED = (
    "CPU(s)",
    "Thread(s) per core",
    "Core(s) per socket",
    "Socket(s)",
    "L2 cache",
    "L3 cache",
    "Hypervisor vendor",
)
_OF_A_TERMINAL = {"L2": "L2 cache", "L3": "L3 cache"}
"""Names under the heading `Caches (sum of all):`, which newer lscpu prints to a terminal."""


def is_mine(text: str) -> bool:
    """Whether there are its counts of CPUs, threads and sockets, indented as in a terminal or not."""
    return all(re.search(rf"^[ \t]{{0,8}}{re.escape(name)}:", text, re.MULTILINE) for name in USED[:4])


def read(text: str) -> Reading:
    """Read the topology and sizes of caches as keys of `machine:`, on the generic profile of its kind."""
    lines = Lines(text)
    fields: dict[str, str] = {}
    for line in lines:
        found = _FIELD.match(line.strip())
        name = _OF_A_TERMINAL.get(found["name"], found["name"]) if found else ""
        if found and name in USED:
            lines.take()
            fields[name] = found["value"]
    cpus, threads, cores, _ = (_count(fields, name) for name in USED[:4])
    if not cpus or not threads or not cores:
        return Reading("lscpu", 0, lines.skipped + lines.matched)
    profile = "server-24-guest" if "Hypervisor vendor" in fields else "server-24"
    socket = min(threads * cores, cpus)
    facts = {
        "profile": profile,
        "cpus": str(cpus),
        "cpus_per_core": str(threads),
        "cpus_per_socket": str(socket),
    }
    facts |= _caches(fields, cpus, socket)
    return Reading("lscpu", lines.matched, lines.skipped, facts=facts, section=f"machine: {flow(facts)}\n")


def _caches(fields: dict[str, str], cpus: int, socket: int) -> dict[str, str]:
    """Sizes of one cache each: newer versions tell the sum and the number of caches, older ones the size of one."""
    core, last = (_CACHE.fullmatch(fields.get(name, "")) for name in ("L2 cache", "L3 cache"))
    sizes = {"core": _one(core), "llc": _one(last)}
    shared = min(-(-cpus // int(last["instances"])), socket) if last and _instances(last) else socket
    told = ", ".join(f"{name}: {size} B" for name, size in sizes.items() if size)
    return {"cpus_per_llc": str(shared)} | ({"caches": "{" + told + "}"} if told else {})


def _instances(cache: re.Match[str]) -> int:
    return int(cache["instances"] or 0)


def _one(cache: re.Match[str] | None) -> int:
    if cache is None:
        return 0
    return round(float(cache["size"]) * _BYTES[cache["unit"]] / (_instances(cache) or 1))


def _count(fields: dict[str, str], name: str) -> int | None:
    value = fields.get(name, "")
    return int(value) if _COUNT.fullmatch(value) else None
