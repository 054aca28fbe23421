"""What-if: slopes are those of full runs, a lock nobody waits for does not matter, answers come in all forms."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.points import the_point
from simfs.experiments.whatif import WhatIf, what_if
from simfs.reports.coz import to_coz
from simfs.reports.whatif import figure, sentences
from simfs.results.run import native_engine
from simfs.scenario import load

RUNNER = CliRunner()

SHORT = ["measure.duration=40 ms", "measure.warmup=5 ms", "measure.replications=5", "workload.tasks=24"]


def asked(
    *settings: str, name: str = "lock-cycle", variant: str | None = "semaphore", **options: object
) -> WhatIf:
    scenario = load(name, [*SHORT, *settings])
    return what_if(the_point(scenario, variant), scenario.measure, scenario=scenario.name, **options)  # type: ignore[arg-type]


XFS = {
    "simfs": 1,
    "name": "xfs",
    "title": "Four tasks create and unlink in one directory",
    "machine": {"profile": "server-24", "cpus": 4},
    "kernel": "linux-6.12",
    "filesystem": {"kind": "xfs", "size": "8 GiB", "agcount": 4},
    "workload": {"kind": "create_unlink", "tasks": 4},
    "measure": {"warmup": "1 ms", "duration": "2 ms", "replications": 3},
}


@pytest.fixture(scope="module")
def profiled() -> WhatIf:
    return asked()


@pytest.mark.slow
def test_the_slope_is_the_finite_difference_of_full_runs(profiled: WhatIf) -> None:
    (slope,) = profiled.profile
    holds = (5.0, 4.5, 4.0, 3.5, 3.0, 2.5)
    full = [asked(f"workload.hold={{exponential: {h} us}}", profile=False).throughput.mean for h in holds]
    gains = [100 * rate / full[0] for rate in full]
    expected = np.polyfit([0, 10, 20, 30, 40, 50], gains, 1)[0]
    assert slope.slope.contains(expected)
    assert slope.slope.mean == pytest.approx(expected, rel=0.02)
    assert slope.slope.low is not None
    assert slope.slope.low > 0


def test_a_lock_that_nobody_waits_for_matters_no_more_than_its_work() -> None:
    answer = asked("workload.tasks=1", changes=[("lock", "remove")])
    (removed,) = answer.effects
    # One task never waits; what is left is the cost of taking a free lock, below 0.1 % of a cycle.
    assert answer.profile[0].contended == 0
    assert removed.gain_percent is not None
    assert abs(removed.gain_percent.mean) < 0.2


def test_a_lock_of_a_filesystem_that_is_never_waited_for_makes_no_difference() -> None:
    answer = asked(
        "measure.duration=200 ms", name="compile-24", variant="ext4",
        changes=[("ext4.group lock", "remove"), ("vfs.i_rwsem (file)", "remove")], profile=False,
    )  # fmt: skip
    assert [e.verdict for e in answer.effects] == ["equal within 2 %"] * 2


def test_a_lock_held_for_less_than_makes_a_difference_is_not_tried() -> None:
    alone = ("workload.hold={constant: 3 us}", "workload.tasks=1")
    short = asked(*alone)
    assert (short.profile, short.too_short) == ((), ("lock",))
    assert sentences(short)[-1] == "not tried, held too briefly to matter, whoever waits: lock"
    whole = asked(*alone, removed=[50, 100])
    assert whole.too_short == ()
    assert whole.profile[0].verdict == "matters"


def test_removing_the_lock_that_all_wait_for_is_better_and_a_slower_hold_is_worse() -> None:
    answer = asked(changes=[("lock", "remove"), ("lock", {"hold_scale": 1.5})], profile=False)
    assert [(e.lock, e.change, e.verdict) for e in answer.effects] == [
        ("lock", "remove", "better"),
        ("lock", "hold x 1.5", "worse"),
    ]


@pytest.mark.slow
def test_locks_that_the_same_work_holds_are_run_once() -> None:
    """XFS holds the roots of both inode trees for the same work: all their runs were made twice, and came out equal."""
    ran: list[str] = []

    def engine(text: str) -> str:
        change = json.loads(text).get("whatif")
        ran.append(change["lock"] if change else "")
        return native_engine()(text)

    scenario = load(XFS)
    answer = what_if(the_point(scenario), scenario.measure, scenario="xfs", engine=engine)
    slopes = {each.lock: each for each in answer.profile}
    assert slopes["xfs.finobt"].slope == slopes["xfs.inobt"].slope
    scaled = Counter(ran)
    probe, all_of_them = sorted((scaled["xfs.finobt"], scaled["xfs.inobt"]))
    assert (probe, all_of_them) == (1, 1 + 5 * scenario.measure.replications)


def test_its_own_kind_is_not_tried() -> None:
    changes = [("lock", {"kind": kind}) for kind in ("semaphore", "mutex")]
    assert [e.change for e in asked(changes=changes, profile=False).effects] == ["kind mutex"]


def test_a_deadlock_is_the_answer_and_says_who_waits_for_whom() -> None:
    answer = asked(
        "measure.duration=200 ms", "measure.replications=2", name="compile-24", variant="xfs",
        changes=[("xfs.AGI", "remove")], profile=False,
    )  # fmt: skip
    (removed,) = answer.effects
    assert removed.verdict.startswith("deadlock at")
    assert removed.gain_percent is None
    assert answer.exit_code == 3
    told, why = sentences(answer)
    assert "waits for xfs.finobt" in told
    assert why.startswith("xfs.AGI keeps tasks in order")


@pytest.mark.slow
def test_allocation_groups_are_a_counterfactual_too() -> None:
    answer = asked(
        "measure.replications=3", name="emulated-create-unlink", variant="xfs-per-task", agcounts=[49], profile=False
    )  # fmt: skip
    assert answer.effects[0].change == "agcount 49"
    assert answer.effects[0].verdict == "better"


def test_the_profile_in_the_format_of_coz(profiled: WhatIf) -> None:
    lines = [line.split("\t") for line in to_coz(profiled).splitlines()]
    assert lines[0] == ["startup", "time=0"]
    assert lines[-1][0] == "runtime"
    experiments = [
        dict(field.split("=", 1) for field in line[1:]) for line in lines if line[0] == "experiment"
    ]
    points = [
        dict(field.split("=", 1) for field in line[1:]) for line in lines if line[0] == "throughput-point"
    ]
    assert [e["speedup"] for e in experiments] == ["0.00", "0.10", "0.20", "0.30", "0.40", "0.50"]
    periods = [int(e["duration"]) / int(p["delta"]) for e, p in zip(experiments, points, strict=True)]
    assert periods == sorted(
        periods, reverse=True
    )  # what the viewer computes: a shorter hold, a shorter period
    assert all(set(e) == {"selected", "speedup", "duration", "selected-samples"} for e in experiments)


def test_the_figure_names_units(profiled: WhatIf) -> None:
    drawn = figure(profiled)
    assert drawn.subfigs[0].get_supxlabel() == "hold time removed (%)"
    assert drawn.axes[-1].get_xlabel() == "% gained per % removed"


def test_no_interval_of_the_figure_hides_that_of_another_lock(profiled: WhatIf) -> None:
    slopes = tuple(profiled.profile[0].model_copy(update={"lock": f"lock {n}"}) for n in range(3))
    *panels, _ = figure(profiled.model_copy(update={"profile": slopes})).axes
    shown = [axes for axes in panels if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == ["lock 0", "lock 1", "lock 2"]
    assert all(len(axes.collections) == 1 for axes in shown)


@pytest.mark.slow
def test_one_json_document_and_files(tmp_path: Path) -> None:
    options = [x for setting in SHORT for x in ("--set", setting)]
    out = tmp_path / "out"
    done = RUNNER.invoke(
        app,
        [
            "whatif",
            "lock-cycle",
            "--variant",
            "mutex",
            *options,
            "--quick",
            "--format",
            "json",
            "--out",
            str(out),
        ],
    )
    assert done.exit_code == 0, done.stderr
    assert WhatIf.model_validate_json(done.stdout).variant == "mutex"
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert names == [
        "figures/profile.pdf",
        "figures/profile.png",
        "figures/profile.svg",
        "manifest.json",
        "profile.coz",
        "whatif.json",
    ]
    assert json.loads((out / "manifest.json").read_text())["experiment"] == "whatif"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["compile-24"], "name one of tmpfs, ext4"),
        (["compile-24", "--variant", "zfs"], "no variant 'zfs'"),
        (["lock-cycle", "--variant", "mutex", "--lock", "AGI"], "no lock 'AGI' here; there are lock"),
        (
            ["lock-cycle", "--variant", "mutex", "--lock", "lock", "--kind", "mutx"],
            "there is no lock of this kind; did you mean 'mutex'? There are mutex, ",
        ),
        (
            ["lock-cycle", "--variant", "mutex", "--lock", "lock", "--kind", "foo"],
            "there are tas, ticket, mcs, ",
        ),
        (["lock-cycle", "--variant", "mutex", "--remove"], "say which lock"),
        (["lock-cycle", "--variant", "mutex", "--agcount", "4"], "only xfs has allocation groups"),
        (["no-such-scenario"], "no scenario of this name"),
    ],
    ids=str,
)
def test_bad_input_is_two_and_no_traceback(options: list[str], says: str) -> None:
    given = [*options, "--quick", "--set", "workload.tasks=2"]
    if options[0] == "compile-24":
        given += ["--set", "workload.user_cpu=12 ms"]
    done = RUNNER.invoke(app, ["whatif", *given])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
