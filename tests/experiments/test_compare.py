"""Comparisons: paired where that is right, honest verdicts, and text that fits into a commit message."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scipy import stats
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.compare import Comparison, compare_sides, difference_of_rates, open_side, welch
from simfs.reports.compare import to_text
from simfs.reports.letter import WIDTH, to_letter
from simfs.reports.numbers import folded, together
from simfs.results.statistics import interval, stddev
from simfs.results.store import engine_version

RUNNER = CliRunner()
SHORT = ["workload.tasks=16", "measure.duration=20 ms", "measure.warmup=2 ms", "measure.replications=4"]
OPTIONS = [x for setting in SHORT for x in ("--set", setting)]


def compared(a: str, b: str, *settings: str) -> Comparison:
    return compare_sides(open_side(a, [*SHORT, *settings]), open_side(b, [*SHORT, *settings]))


def test_a_standard_deviation_is_had_back_from_an_interval() -> None:
    assert stddev(interval([1.0, 2.0, 4.0], 0.9), 0.9) == pytest.approx(1.5275, abs=1e-4)
    assert stddev(interval([1.0])) is None


def test_welch_is_scipys() -> None:
    a, b = [10.0, 11.0, 12.5, 9.0], [14.0, 13.0, 18.0]
    expected = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    found = welch(interval(a), interval(b))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    of_four = stats.ttest_ind(b, a, equal_var=False).confidence_interval(1 - 0.05 / 4)
    found = welch(interval(a), interval(b), level=1 - 0.05 / 4)
    assert (found.low, found.high) == pytest.approx((of_four.low, of_four.high))


def test_differences_that_are_told_together_hold_together() -> None:
    """Of ten points that are equal, four letters in ten named one that was faster or slower."""
    a, b = (open_side(f"lock-cycle:{kind}", SHORT) for kind in ("semaphore", "mutex"))
    p, q = a.points[0], b.points[0]
    rates = [y - x for x, y in zip(p.replication_throughputs, q.replication_throughputs, strict=True)]
    expected = stats.ttest_1samp(rates, 0).confidence_interval(1 - 0.05 / 10)
    found = difference_of_rates(p, q, a, b, together=10)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_same_twice_is_no_evidence_and_has_no_width() -> None:
    for line in compared("lock-cycle:mutex", "lock-cycle:mutex").pairs[0].lines:
        assert line.verdict == "no evidence"
        assert line.difference.mean == 0


def test_a_better_lock_is_better_and_seen_from_the_other_side_worse() -> None:
    forth = compared("lock-cycle:semaphore", "lock-cycle:mutex").pairs[0].lines[0]
    back = compared("lock-cycle:mutex", "lock-cycle:semaphore").pairs[0].lines[0]
    assert (forth.metric, forth.verdict, forth.paired) == ("lock_cycles_per_s", "better", True)
    assert back.verdict == "worse"
    assert back.difference.mean == pytest.approx(-forth.difference.mean)


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_folders_compare_like_the_runs_they_hold(tmp_path: Path) -> None:
    out = tmp_path / "r"
    assert RUNNER.invoke(app, ["run", "lock-cycle", *OPTIONS, "--out", str(out)]).exit_code == 0
    from_folder = compare_sides(open_side(f"{out}:semaphore"), open_side(f"{out}:ticket"))
    assert from_folder.pairs == compared("lock-cycle:semaphore", "lock-cycle:ticket").pairs


def test_other_seeds_are_not_paired() -> None:
    a = open_side("lock-cycle:mutex", SHORT)
    b = open_side("lock-cycle:mutex", [*SHORT, "measure.seed=2"])
    assert not compare_sides(a, b).pairs[0].lines[0].paired


@pytest.mark.slow
def test_measured_rows_stand_beside_the_points_they_belong_to() -> None:
    settings = [
        "workload.tasks=24", "workload.user_cpu=11.9 ms", "measure.duration=200 ms", "measure.warmup=50 ms",
        "measure.replications=3",
    ]  # fmt: skip
    run = open_side("compile-24", settings)
    table = open_side("seed-xfs-compile-2024")
    there, back = compare_sides(table, run), compare_sides(run, table)
    assert {pair.a for pair in there.pairs} >= {"ext4 one directory", "xfs one directory"}
    for x, y in zip(there.pairs, back.pairs, strict=True):
        assert x.lines[0].difference.mean == pytest.approx(-y.lines[0].difference.mean)
        assert x.lines[0].difference.low == pytest.approx(-(y.lines[0].difference.high or 0))


def test_the_text_has_the_columns_of_the_kernel_test_robot() -> None:
    text = to_text(compared("lock-cycle:semaphore", "lock-cycle:mutex"))
    assert "         %stddev     %change         %stddev" in text
    row = next(line for line in text.splitlines() if "lock_cycles_per_s" in line)
    assert "%" in row
    assert "better [+" in row
    assert row.endswith("95%, paired")
    assert all(len(line) <= 118 for line in text.splitlines())


def test_json_is_one_document() -> None:
    done = RUNNER.invoke(
        app, ["compare", "lock-cycle:mutex", "lock-cycle:ticket", *OPTIONS, "--format", "json"]
    )
    assert done.exit_code == 0
    assert Comparison.model_validate(json.loads(done.stdout)).pairs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        ("lock-cycle:mutx", "lock-cycle:mutex", "no variant 'mutx'"),
        ("no-such", "lock-cycle", "no scenario of this name"),
        ("seed-xfs-compile-2024", "guest-2cpu", "no point in common"),
        ("tests", "lock-cycle", "is no result of `simfs run --out`"),
    ],
)
def test_bad_input_is_two_and_no_traceback(a: str, b: str, says: str) -> None:
    given = OPTIONS if "guest" not in b else ["--set", "measure.duration=5 ms", "--set", "measure.warmup=0"]
    done = RUNNER.invoke(app, ["compare", a, b, *given])
    assert done.exit_code == 2
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_the_example_of_the_help_runs() -> None:
    words = RUNNER.invoke(app, ["compare", "--help"]).stdout.split("Example: simfs ")[1].split()
    assert RUNNER.invoke(app, words).exit_code == 0


LETTER = ["compare", "lock-cycle:semaphore", "lock-cycle:mutex", "--format", "letter", "--quick"]


def letter(*settings: str, a: str = "lock-cycle:semaphore", b: str = "lock-cycle:mutex") -> str:
    return to_letter(open_side(a, settings), open_side(b, settings), LETTER[:3])


BRIEF = ("measure.duration=10 ms", "measure.warmup=2 ms", "measure.replications=3")


def test_a_letter_says_first_where_the_change_helps_and_fits_a_mail() -> None:
    text = letter(*BRIEF, "sweep={workload.tasks: [1, 16, 24]}")
    lines = text.splitlines()
    assert lines[0].startswith("Predicted by simulation, not measured: b is faster at tasks 16, 24")
    assert "equal within 2 % at tasks 1" in " ".join(lines[:3])
    assert max(map(len, lines)) <= WIDTH
    assert not [line for line in lines if line.startswith(("#", "---", "diff "))]  # git would cut it there


def test_a_letter_names_what_differs_what_tasks_wait_for_and_how_to_have_it_again() -> None:
    text = " ".join(letter(*BRIEF, "workload.tasks=24", "sweep={}").split())
    for said in (
        "a: lock-cycle:semaphore",
        "With 24 tasks on 24 CPUs: a: ",
        "tasks wait for",
        "b differs: workload.lock is mutex (a: semaphore)",
        "machine: 24-CPU server",
        "Nothing was fitted here.",
        "throughputs that others measured without a filesystem, predicted without a fit, half lie within a factor of",
        "Of changes that others measured these went the way predicted",
        f"{engine_version()}; to repeat: simfs compare lock-cycle:semaphore lock-cycle:mutex",
    ):
        assert said in text


def test_a_letter_tells_of_two_kernels_what_was_asked_and_not_a_hundred_rules() -> None:
    said = letter(
        *BRIEF, "workload.tasks=4", "kernel=linux-6.12", "variants.mutex.kernel=linux-5.10", "sweep={}"
    )
    text = " ".join(said.split())
    assert "b differs: kernel.profile is linux-5.10 (a: linux-6.12)" in text
    assert re.search(r"and in \d+ rules and locks of these kernels ", text)
    near = letter(
        *BRIEF, "workload.tasks=4", "kernel=linux-6.12", "variants.mutex.kernel=linux-6.11", "sweep={}"
    )
    assert re.search(r"and in \d+ rules and locks of these kernels: [\w.]+, [\w.]+", " ".join(near.split()))
    assert "b differs: kernel.rules" not in text
    assert "b differs: workload.lock is mutex" in text


def test_a_number_and_its_sign_stand_in_one_line() -> None:
    assert folded(f"b is slower, by {together('18.7 %')} here", 20) == "b is slower, by\n18.7\u00a0% here"


def test_a_letter_says_so_where_the_change_has_no_effect() -> None:
    said = letter(*BRIEF, "workload.tasks=4", "sweep={}", b="lock-cycle:semaphore")
    assert "a and b do exactly the same" in " ".join(said.split())


def test_a_letter_of_runs_in_which_nothing_ended_is_not_fit_to_be_quoted() -> None:
    said = letter("measure.duration=1 us", "measure.warmup=1 us", "workload.tasks=4", "sweep={}")
    assert said.startswith("Not fit to be quoted: ")
    assert "faster" not in said


def test_a_letter_needs_two_simulations() -> None:
    asked = RUNNER.invoke(app, ["compare", "seed-xfs-compile-2024", "lock-cycle", "--format", "letter"])
    assert (asked.exit_code, asked.stdout) == (2, "")


def test_a_letter_compares_no_operations_of_two_kinds() -> None:
    sides = [
        open_side(name, ["sweep={}", *BRIEF, "workload.tasks=1"])
        for name in ("lock-cycle:mutex", "lockref:open")
    ]
    with pytest.raises(ValueError, match="cannot be compared"):
        to_letter(sides[0], sides[1], [])


def test_a_variant_is_named_with_its_side() -> None:
    asked = RUNNER.invoke(app, ["compare", "lock-cycle", "lock-cycle:mutex", "--variant", "rwsem"])
    assert asked.exit_code == 2
    assert asked.stderr == "--variant rwsem: a side names its variant itself: lock-cycle:rwsem\n"
