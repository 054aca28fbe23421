"""`workload:` of scenarios: every kind but programs in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from generated.kernels import LOCKS
from generated.machines import times
from simfs.scenario.checks.operations import REFUSED
from simfs.vocabulary import vocabulary

Section = dict[str, Any]

bytes_ = st.sampled_from(["1 B", "4 KiB", "5000 B", "64 KiB"])
sizes = st.one_of(st.none(), bytes_)
flags = st.booleans()
tasks = st.one_of(st.integers(1, 8), st.sampled_from([12, 24]))


def draws(least: float = 0.0) -> st.SearchStrategy[Section]:
    """A duration that is drawn, of at least so many ns in the mean."""
    mean = times.map(lambda ns: f"{ns + least:.12g} ns")
    return st.one_of(
        mean.map(lambda given: {"constant": given}),
        mean.map(lambda given: {"exponential": given}),
        mean.map(lambda given: {"lognormal": given, "cv": 1.0}),
        mean.map(lambda given: {"gamma": given, "cv": 0.5}),
        mean.map(lambda given: {"empirical": [given, "7 us"], "weights": [2.0, 1.0]}),
    )


arrivals = st.one_of(
    st.none(),
    st.none(),
    st.sampled_from(
        [
            {"poisson": "20000 /s"},
            {"every": {"gamma": "9 us", "cv": 0.7}},
            {"trace": ["0 ns", "3 us", "70 us"]},
        ]
    ),
)
"""Tasks that begin again at once, and now and then requests that arrive by themselves."""

SERVING = ("lock_cycle", "compile", "create", "create_unlink", "tmpfile", "mix")


def _lock_cycle() -> st.SearchStrategy[Section]:
    own = st.fixed_dictionaries(
        {
            "lock": st.sampled_from(LOCKS),
            "think": draws(50),  # so that time goes on
            "hold": draws(50),
            "thinks": st.sampled_from(["cpu", "sleep"]),
            "readers": st.sampled_from([0.0, 0.3, 0.9]),
            "blocking": st.sampled_from([0.0, 0.5, 1.0]),
            "data_lines": st.sampled_from([0, 1, 20]),
            "locks": st.integers(1, 2),
            "order": st.sampled_from(["same", "same", "opposite"]),
        }
    )
    written = st.tuples(own, draws(50)).map(lambda both: {**both[0], "lock": "semaphore", "device": both[1]})
    return st.one_of(own, own, own, written)


def _range_lock() -> st.SearchStrategy[Section]:
    own: st.SearchStrategy[Section] = st.fixed_dictionaries(
        {
            "design": st.sampled_from(["interval-tree", "btree", "optimistic", "rwsem"]),
            "index_lock": st.sampled_from(["kernel", "pthread"]),
            "ranges": st.sampled_from(["per-task", "interleaved", "shared"]),
            "units": st.sampled_from([4, 1024]),
            "length": st.sampled_from([1, 8]),
            "outstanding": st.sampled_from([1, 1, 4]),
            "order": st.sampled_from(["rotating", "batches"]),
            "readers": st.sampled_from([0.0, 0.5, 1.0]),
            "hold": draws(),
            "think": draws(50),  # where lines cost nothing, optimistic searches begin again for ever without
        }
    )
    return own.map(_allowed_ranges)


def _allowed_ranges(own: Section) -> Section:
    """Who may have to wait holds one range, and none in batches."""
    if own["ranges"] == "shared":
        return own | {"outstanding": 1, "order": "rotating"}
    return own | ({"outstanding": 1} if own["design"] == "rwsem" else {})


def _fio(filesystem: str) -> st.SearchStrategy[Section]:
    own: st.SearchStrategy[Section] = st.fixed_dictionaries(
        {
            "rw": st.sampled_from(["randread", "randwrite", "randrw", "read", "write"]),
            "size": st.sampled_from(["64 KiB", "1 MiB", "16 MiB"]),
            "block_size": st.sampled_from(["512 B", "4 KiB", "64 KiB"]),
            "files": st.sampled_from(["shared", "per-task"]),
            "places": st.sampled_from(["random", "own-block"]),
            "extents": st.sampled_from([1, 100]),
            "cached": flags,
            "written": st.sampled_from([None, None, "50 %"]),
            "direct": flags,
            "iodepth": st.sampled_from([1, 1, 4]),
            "fsync": st.sampled_from([0, 0, 1, 3]),
            "readers": st.one_of(st.none(), st.integers(0, 4)),
        }
    )

    def allowed(job: Section) -> Section:
        job |= {} if job["rw"] == "randrw" else {"readers": None}
        job |= {"places": "random"} if job["rw"] in ("read", "write") else {}
        job |= {} if job["rw"] == "write" and filesystem == "btrfs" else {"written": None}
        job |= {} if job["written"] is None else {"cached": False, "direct": False, "extents": 1}
        return job | ({} if job["direct"] and filesystem in ("xfs", "ext4") else {"iodepth": 1})

    return own.map(allowed)


def _mix(filesystem: str) -> st.SearchStrategy[Section]:
    known = [op for op in vocabulary().operations if (op, filesystem) not in REFUSED]
    operations = st.fixed_dictionaries(
        {
            "op": st.sampled_from(known),
            "weight": st.sampled_from([1.0, 5.0]),
            "size": sizes,
            "think": draws(),
        }
    )
    own: st.SearchStrategy[Section] = st.fixed_dictionaries(
        {
            "operations": st.lists(operations, min_size=1, max_size=5),
            "order": st.sampled_from(["drawn", "in-turn"]),
            "random_distribution": st.sampled_from(["random", "random", "zipf:1.1"]),
            "file_set": st.sampled_from(["own", "shared"]),
            "threads": st.booleans(),
            "files": st.integers(1, 4),
            "file_size": sizes,
            **_directories(),
        }
    )

    def allowed(mix: Section) -> Section:
        taken = any(operation["op"] in ("unlink", "rename", "move") for operation in mix["operations"])
        return mix | ({"file_set": "own"} if taken else {})

    return own.map(allowed)


def _directories() -> dict[str, st.SearchStrategy[Any]]:
    return {"subdirectories": st.integers(1, 3), "initial_files": st.sampled_from([0, 0, 300])}


def _compile() -> st.SearchStrategy[Section]:
    """Small sources, so that files are met soon."""
    ns = st.sampled_from([2e4, 1e5, 1e6])
    params = st.fixed_dictionaries({"kernel_cpu_ns": ns, "user_cpu_ns": ns})
    return st.fixed_dictionaries({"shell": flags, "params": params})


def _fs_mark() -> st.SearchStrategy[Section]:
    return st.fixed_dictionaries(
        {
            "files": st.integers(1, 5),
            "size": sizes,
            "write": bytes_,
            "sync": st.sampled_from([0, 1, 3, 5]),
            "keep": flags,
            "files_per_directory": st.integers(1, 3),
            **_directories(),
        }
    )


def _dbench() -> st.SearchStrategy[Section]:
    return st.fixed_dictionaries({"params": st.fixed_dictionaries({"files": st.sampled_from([4.0, 12.0])})})


ON_LOCKS: dict[str, Callable[[], st.SearchStrategy[Section]]] = {
    "lock_cycle": _lock_cycle,
    "range_lock": _range_lock,
}

_walks = st.sampled_from(
    [
        {},
        {"footprint_bytes": 100_000.0},
        {"footprint_bytes": 5e6, "time_calls": 1.0},
        {"footprint_bytes": 2e8},
        {"footprint_bytes": 1e6, "code_bytes": 3e5},
    ]
)
"""`params:` of a loop that uses memory of its own."""

ON_FILES: dict[str, Callable[[str], st.SearchStrategy[Section]]] = {
    "compile": lambda _: _compile(),
    "create": lambda _: st.just({}),
    "create_unlink": lambda _: st.just({}),
    "tmpfile": lambda _: st.fixed_dictionaries({"write": bytes_, "fsync": flags, "params": _walks}),
    "fs_mark": lambda _: _fs_mark(),
    "mix": _mix,
    "dbench": lambda _: _dbench(),
    "fio": _fio,
}


def on_locks(kind: str) -> st.SearchStrategy[Section]:
    """What is its own of a workload that takes locks alone."""
    return ON_LOCKS[kind]()


def on_files(kind: str, filesystem: str) -> st.SearchStrategy[Section]:
    """What is its own of a workload on files of such a filesystem."""
    own = ON_FILES[kind](filesystem)
    if kind in ("fio", "dbench"):
        return own
    return st.tuples(own, st.sampled_from(["shared", "per-task"])).map(
        lambda both: {**both[0], "directories": both[1]}
    )


@st.composite
def groups(draw: st.DrawFn, kind: str, filesystem: str = "") -> list[Section]:
    """Often none; else two groups of such a workload, the second one perhaps with another load."""
    if kind in ("range_lock", "fio") or not draw(st.sampled_from([False, False, True])):
        return []
    others = [name for name in sorted(ON_FILES) if name != "fio"]
    own = st.fixed_dictionaries(
        {"tasks": st.integers(1, 4), "nice": st.sampled_from([0, 5, -20])},
        optional={"think": draws(50), "hold": draws(50), "readers": st.sampled_from([0.0, 1.0])}
        if kind == "lock_cycle"
        else {},
    )
    second = draw(own)
    if filesystem and draw(flags):
        other = draw(st.sampled_from(others))
        second = {"kind": other, **draw(on_files(other, filesystem)), **second}
        if other in SERVING:
            second["arrivals"] = draw(arrivals)
    return [{"name": "one", "workload": draw(own)}, {"name": "two", "workload": second}]


@st.composite
def placed(draw: st.DrawFn, cpus: int, kind: str) -> Section:
    """How many tasks, how nice, and bound to which CPUs."""
    ways: list[Section] = [{}, {}, {"binding": "compact"}, {"binding": "spread"}, {"pin_to_cpu": cpus - 1}]
    bound = draw(st.sampled_from(ways))
    if kind in SERVING:
        bound = bound | {"arrivals": draw(arrivals)}
    return {"tasks": draw(tasks), "nice": draw(st.sampled_from([0, 0, -20, 5, 19])), **bound}
