"""The laboratory's readers, on a recorded console and a short trace; its plans and archives; its data sets."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from laboratory import initramfs, plan, results, trace
from laboratory.dataset import FORMS, document
from places import DATA, ROOT

from simfs.scenario import Scenario, load, paths
from simfs.scenario.checks.fits import chosen_rows
from simfs.scenario.measured.dataset import load_dataset

TOOL = ROOT / "tools/emulated-kernel"
RECORDED = DATA / "laboratory"
EMULATED = [name for name in paths.names(paths.MEASURED) if name.startswith("emulated-")]


def test_a_console_gives_its_rows_with_what_was_run() -> None:
    console = results.read_console(RECORDED / "smoke.log")
    assert console.complete
    assert console.info["kernel"] == "6.12.117+deb12-cloud-amd64"
    assert [result["window"] for result in console.results] == [0, 1]
    first = console.results[0]
    assert first.words == {"filesystem": "xfs", "kind": "create_unlink"}
    assert first["rate"] == pytest.approx(first["operations"] / first["seconds"], rel=1e-3)


def test_a_console_that_breaks_off_or_fails_is_not_complete() -> None:
    lines = (RECORDED / "smoke.log").read_text().splitlines()
    assert not results.parse_console("cut", lines[:3]).complete
    assert not results.parse_console("failed", ["FAILED", *lines]).complete


def test_the_table_has_a_line_for_each_row_and_single_cost() -> None:
    console = results.read_console(RECORDED / "smoke.log")
    micro = results.parse_console("micro", ["MICRO syscall=310.5", "END uptime=1.0"])
    lines = results.table([console, micro]).splitlines()
    assert len(lines) == 1 + 2 + 1
    assert "xfs 4 create_unlink tasks 2" in lines[1]
    assert lines[3].split()[1:] == ["syscall", "310.5", "ns"]


def test_a_trace_tells_who_holds_the_agi_and_how_long_the_granted_wait() -> None:
    report = trace.Reader().read((RECORDED / "agi.trace").read_text().splitlines())
    assert report.grant_to_run == {"worker, bound": [pytest.approx(700)]}
    assert report.wake_to_run == {"worker, bound": [pytest.approx(700)]}
    assert {str(holder): us for holder, us in report.held.items()} == {
        "load, runs": pytest.approx(30),
        "worker, bound, granted, runnable behind load": pytest.approx(700),
        "worker, bound, granted, runs": pytest.approx(1),
        "worker, bound, runs": pytest.approx(10),
    }
    assert (report.acquired["worker, bound"], report.found_held["worker, bound"]) == (1, 1)
    assert report.span == pytest.approx(1000)
    assert "AGI held 74.1 %" in report.text()


def test_a_buffer_goes_to_whom_its_owner_wakes_whatever_the_order_of_events() -> None:
    lines = (RECORDED / "agi.trace").read_text().splitlines()
    earlier = next(line for line in lines if "kworker/1:1-200" in line and "xfs_buf_lock:" in line)
    other = earlier.replace("kworker/1:1-200   [001]", "kworker/2:1-300   [002]").replace(
        "1.000010", "1.000009"
    )
    at = lines.index(earlier)
    report = trace.Reader().read([*lines[:at], other, *lines[at:]])
    assert report.grant_to_run == {"worker, bound": [pytest.approx(700)]}
    assert report.acquired["worker, bound"] == 1


def test_who_asks_before_the_event_that_says_who_has_the_buffer_waits_for_it() -> None:
    """In a tick all workers ask at once, each before the first one's `xfs_buf_lock_done`."""
    lines = (RECORDED / "agi.trace").read_text().splitlines()
    asks = next(at for at, line in enumerate(lines) if "kworker/1:1-200" in line and "xfs_buf_lock:" in line)
    first = next(at for at, line in enumerate(lines) if "lock_done" in line)
    done = lines[first].replace("1.000000", "1.000011")
    report = trace.Reader().read([*lines[:first], *lines[first + 1 : asks + 1], done, *lines[asks + 1 :]])
    assert report.grant_to_run == {"worker, bound": [pytest.approx(700)]}
    assert (report.acquired["worker, bound"], report.found_held["worker, bound"]) == (1, 1)
    assert report.held[trace.Holder("worker, bound", "runnable behind load", granted=True)] == pytest.approx(
        700
    )


def test_a_grant_that_comes_before_the_sleep_is_over_at_once() -> None:
    lines = (RECORDED / "agi.trace").read_text().splitlines()
    awake = [
        line for line in lines if "prev_comm=kworker/1:1" not in line and "next_comm=kworker/1:1" not in line
    ]
    done = next(at for at, line in enumerate(awake) if "kworker/1:1-200" in line and "lock_done" in line)
    awake[done] = awake[done].replace("1.000731", "1.000032")
    later = next(line for line in lines if "next_comm=kworker/1:1" in line).replace("1.000730", "1.000900")
    report = trace.Reader().read([*awake, later])
    assert report.grant_to_run == {"worker, bound": [pytest.approx(2)]}


def test_a_woken_task_waits_on_the_cpu_that_was_chosen_for_it() -> None:
    lines = (RECORDED / "agi.trace").read_text().splitlines()
    woken = next(at for at, line in enumerate(lines) if "sched_waking" in line)
    moved = (
        lines[woken]
        .replace("sched_waking", "sched_migrate_task")
        .replace("target_cpu=001", "orig_cpu=1 dest_cpu=5")
    )
    report = trace.Reader().read([*lines[: woken + 1], moved, *lines[woken + 1 :]])
    assert report.held[trace.Holder("worker, bound", trace.IDLE, granted=True)] == pytest.approx(700)


def test_a_traced_guest_gives_the_states_of_the_agi_of_several_seeds(tmp_path: Path) -> None:
    console = results.parse_console(
        "compile-6.12-traced",
        [
            "INFO kernel=6.12.117+deb12-cloud-amd64",
            "ROW filesystem=xfs agcount=4",
            "RESULT kind=compile tasks=24 own=0 rate=1",
            "END",
        ],
    )
    lines = (RECORDED / "agi.trace").read_text()
    traces = [tmp_path / "1.trace", tmp_path / "2.trace"]
    traces[0].write_text(lines)
    traces[1].write_text(lines.replace("1.000730", "1.000630"))
    form = next(form for form in FORMS if form.name == "emulated-compile")
    path = tmp_path / "made.yaml"
    path.write_text(document(form, [replace(console, trace=at) for at in traces], "2026-11-27", "1 and 2"))
    made = {row.metric: row for row in load_dataset(str(path)).rows}
    assert {row.series for row in made.values()} == {"xfs-6.12"}
    assert {row.role for row in made.values()} == {"predict"}
    assert made["xfs_agi_held_percent"].value == pytest.approx(74.1)
    granted = made["xfs_agi_by_bound_held_granted_behind_percent"]
    assert (granted.low, granted.value, granted.high) == (60, 65, 70)
    assert made["xfs_agi_by_bound_held_running_percent"].high == pytest.approx(11.1)
    assert made["xfs_agi_by_bound_p50_grant_to_run_us"].low == 600
    assert made["bound_p99_wake_to_run_us"].high == 700
    assert made["xfs_agi_by_bound_found_held_percent"].value == 100


def test_a_trace_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no event"):
        trace.Reader().read(["# tracer: nop", "nothing"])


@pytest.mark.parametrize("name", sorted(plan.LOADS))
def test_plans_name_functions_of_init_and_kernels_that_there_are(name: str) -> None:
    functions = set(re.findall(r"^(\w+)\(\)", (TOOL / "guest/init").read_text(), re.MULTILINE))
    kinds = set(re.findall(r'^    \{"(\w+)"', (TOOL / "guest/files.c").read_text(), re.MULTILINE))
    loops = re.findall(r"LOOP\((\w+)\)", (TOOL.parent / "file-operations/operations.c").read_text())
    kinds |= {f"{directories}:{loop}" for directories in ("own", "one") for loop in loops}
    kinds |= {"randrw"} | {f"readers:{n}" for n in range(25)}  # readers.c
    names = [guest.name for guest in plan.LOADS[name]]
    assert len(set(names)) == len(names)
    for guest in plan.LOADS[name]:
        assert guest.kernel in plan.KERNELS
        for row in guest.rows:
            words = row.split()
            assert words[0] in functions
            assert words[0] != "files" or (len(words) == 10 and words[3] in kinds)


def test_an_archive_has_folders_before_files_and_is_the_same_each_time() -> None:
    def make() -> bytes:
        archive = initramfs.Archive()
        archive.add("bin/deep/tool", b"12345")
        archive.add_device("bin/null", 1, 3)
        return archive.finish()

    assert make() == make()
    assert len(make()) % 512 == 0
    names = re.findall(rb"070701[0-9A-F]{104}([^\0]+)\0", make())
    assert names == [b"bin", b"bin/deep", b"bin/deep/tool", b"bin/null", b"TRAILER!!!"]


def test_modules_say_what_they_need() -> None:
    assert list(initramfs.dependencies(b"junk\0depends=libcrc32c,xor\0softdep=pre: raid6_pq\0")) == [
        "libcrc32c",
        "xor",
        "raid6_pq",
    ]
    assert list(initramfs.dependencies(b"\0depends=\0")) == []


def test_a_data_set_is_made_of_consoles(tmp_path: Path) -> None:
    one = "RESULT kind=create tasks=1 pin=0 own=1 window=0 rate=9216.84 idle=95.845 switches=0.0029"
    many = "RESULT kind=create tasks=24 pin=0 own=1 window=0 rate=50000.4 idle=1.5 switches=2"
    lines = [
        "INFO kernel=6.12.117+deb12-cloud-amd64",
        "ROW filesystem=ext4 agcount=4",
        one,
        many,
        "END uptime=1",
    ]
    path = tmp_path / "made.yaml"
    form = next(form for form in FORMS if form.name == "emulated-create")
    path.write_text(document(form, [results.parse_console("files-1", lines)], "2026-11-22", "1"))
    made = load_dataset(str(path))
    assert made.evidence == "emulated"
    assert list(made.series) == ["ext4-per-task"]
    roles = {(row.x, row.metric): row.role for row in made.rows}
    assert roles[1, "operations_per_s"] == "calibrate"
    assert roles[1, "idle_percent"] == "info"
    assert {role for (x, _), role in roles.items() if x == 24} == {"predict"}


@pytest.fixture(scope="module")
def predicting() -> dict[str, list[Scenario]]:
    """The shipped scenarios of each data set."""
    found: dict[str, list[Scenario]] = {}
    for scenario in map(load, paths.names(paths.SCENARIOS)):
        if scenario.measured:
            found.setdefault(scenario.measured.dataset, []).append(scenario)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", EMULATED)
def test_emulated_data_say_how_they_were_made_and_fit_one_task_only(
    name: str, predicting: dict[str, list[Scenario]]
) -> None:
    data = load_dataset(name)
    assert data.evidence == "emulated"
    assert "QEMU" in data.source.where
    assert "emulate.py" in (data.source.read_from or "")
    assert all(row.role != "calibrate" for row in data.rows if row.x != 1)
    for scenario in predicting[name]:
        used = [data.rows[i] for wanted in scenario.calibrate for i in chosen_rows(data, wanted)]
        assert all(row.x == 1 for row in used)
