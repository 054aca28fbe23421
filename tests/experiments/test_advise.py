"""Advice: made from the numbers, and silent where there is nothing to gain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.advise import Advice, Choice, _flat, advise, flat_from, from_xfs_info
from simfs.experiments.points import the_point
from simfs.reports.advise import figure
from simfs.results.statistics import Estimate
from simfs.scenario import load

RUNNER = CliRunner()

XFS_INFO = """\
meta-data=/dev/vdb               isize=512    agcount=4, agsize=524288 blks
         =                       sectsz=512   attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=1
data     =                       bsize=4096   blocks=2097152, imaxpct=25
         =                       sunit=0      swidth=0 blks
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=4096   blocks=16384, version=2
realtime =none                   extsz=4096   blocks=0, rtextents=0
"""


def choice(agcount: int, rate: float, verdict: str = "better") -> Choice:
    estimate = Estimate(mean=rate, low=rate, high=rate, n=3)
    return Choice(
        agcount=agcount, directories="shared", locks={}, throughput=estimate, gain_percent=None, verdict=verdict,
        top_lock=None, waited_percent={},
    )  # fmt: skip


@pytest.fixture(scope="module")
def creators() -> Advice:
    settings = [
        "workload={kind: create_unlink, tasks: 24}",
        "measure.duration=8 ms",
        "measure.replications=3",
        "calibrate=[]",
    ]
    scenario = load("compile-24", settings)
    return advise(
        the_point(scenario, "xfs"), scenario.measure, scenario="compile-24", operation="create-unlink"
    )


def test_the_gain_is_flat_where_more_groups_bring_no_two_per_cent() -> None:
    found = flat_from([choice(4, 100), choice(8, 197), choice(16, 199), choice(32, 200)])
    assert found is not None
    assert found.agcount == 8


def test_a_gain_that_more_groups_lose_again_is_not_called_flat() -> None:
    """A lock of all groups that is overrun: what the groups held back comes to it at once."""
    own = [choice(4, 100), choice(8, 200), choice(16, 140)]
    assert _flat("shared", own, own[1]) == (
        "with one shared directory the gain ends at agcount=8: 200/s, against 100/s at 4 and at most 200/s at 8,"
        " and 140/s at 16"
    )
    assert "do not matter" not in _flat("shared", own[1:], own[1])
    assert "is flat from agcount=8 on" in _flat("shared", [*own[:2], choice(16, 199)], own[1])


def test_a_choice_that_stalls_is_never_advised() -> None:
    found = flat_from([choice(4, 300, "stall"), choice(8, 100)])
    assert found is not None
    assert found.agcount == 8


@pytest.mark.slow
def test_tasks_in_one_directory_are_told_to_part_and_why(creators: Advice) -> None:
    assert creators.best.directories == "per-task"
    assert creators.best.verdict == "better"
    assert (
        creators.as_it_is.waits_for("vfs.i_rwsem (directory)") > 50
    )  # %; waits that do not end in these 8 ms do not count
    assert creators.best.waits_for("vfs.i_rwsem (directory)") == 0
    assert creators.best.throughput.mean > 5 * creators.as_it_is.throughput.mean
    said = "\n".join(creators.sentences)
    assert said.startswith(f"take agcount={creators.best.agcount} and a directory per task")
    assert "with one shared directory allocation groups do not matter" in said


@pytest.mark.slow
def test_groups_in_one_directory_change_nothing_at_all(creators: Advice) -> None:
    # The inodes of a directory come from its own group, however many there are.
    shared = [c.throughput.mean for c in creators.layouts if c.directories == "shared"]
    assert len(shared) > 4
    assert len(set(shared)) == 1


@pytest.mark.slow
def test_the_figure_shows_both_layouts_and_the_advice(creators: Advice) -> None:
    (axes,) = figure(creators).axes
    assert axes.get_legend_handles_labels()[1] == [
        "one shared directory", "a directory per task", "as it is", "advised",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_figure_has_whole_numbers_and_not_a_factor(creators: Advice) -> None:
    drawn = figure(creators.model_copy(update={"layouts": (choice(4, 2e6), choice(8, 3e6))}))
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    assert axes.yaxis.get_offset_text().get_text() == ""
    assert "3,000,000" in [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.slow
def test_the_advised_choice_is_whole_where_all_are_nearly_alike(creators: Advice) -> None:
    """The axis ended 5 % of the little between the rates above the highest, which cut the mark in half."""
    (axes,) = figure(creators.model_copy(update={"layouts": (choice(4, 2e6), choice(8, 2.01e6))})).axes
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > 1.05 * axes.dataLim.ymax


def test_one_task_is_told_to_stay() -> None:
    settings = [
        "workload.tasks=1",
        "measure.duration=200 ms",
        "measure.warmup=20 ms",
        "measure.replications=3",
    ]
    scenario = load("compile-24", [*settings, "workload.user_cpu=11.9 ms"])
    advice = advise(the_point(scenario, "tmpfs"), scenario.measure, scenario="x", operation="compile")
    assert advice.best == advice.as_it_is
    assert advice.sentences[0].startswith("stay with one shared directory")
    assert "no lock is waited for as it is" in advice.sentences


def test_the_output_of_xfs_info_becomes_a_scenario() -> None:
    scenario = from_xfs_info(XFS_INFO, 8, "create_unlink")
    assert scenario.filesystem.kind == "xfs"
    assert (scenario.filesystem.size, scenario.filesystem.agcount) == (8 << 30, 4)
    assert (scenario.machine.cpus, scenario.workload.tasks) == (8, 8)


@pytest.mark.slow
def test_xfs_info_on_standard_input_and_one_json_document(tmp_path: Path) -> None:
    command = ["advise", "--xfs-info", "-", "--cpus", "2", "--workload", "create_unlink", "--quick"]
    command += ["--set", "measure.duration=4 ms", "--set", "measure.warmup=1 ms", "--format", "json"]
    done = RUNNER.invoke(app, [*command, "--out", str(tmp_path / "out")], input=XFS_INFO)
    assert done.exit_code == 0, done.stderr
    assert Advice.model_validate(json.loads(done.stdout)).as_it_is.agcount == 4
    assert (tmp_path / "out" / "figures" / "allocation-groups.png").is_file()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give a scenario or --xfs-info"),
        (["compile-24", "--xfs-info", "-"], "give a scenario or --xfs-info"),
        (["--xfs-info", "-"], "--cpus: is needed"),
        (["--xfs-info", "-", "--cpus", "4"], "not the output of xfs_info"),
        (["--xfs-info", "no-such-file", "--cpus", "4"], "cannot be read"),
        (["--xfs-info", "-", "--cpus", "4", "--workload", "sing"], "'sing' is not one of"),
    ],
    ids=str,
)
def test_bad_input_is_two_and_no_traceback(options: list[str], says: str) -> None:
    done = RUNNER.invoke(app, ["advise", *options], input="ext4\n")
    assert done.exit_code == 2
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
