"""Lessons: the same seed asks the same, guesses are scored as told, answers stay hidden until they are asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from simfs.cli import app
from simfs.lessons import LESSONS, fitted, lesson
from simfs.lessons.asked import Asked, written
from simfs.lessons.catalogue import PLACE, find
from simfs.lessons.marks import marked, parse, score
from simfs.reports.figures.lesson import spaced
from simfs.scenario import ScenarioError, expand, load

RIGHT = st.floats(1, 1e9)


def ran(*arguments: str) -> Result:
    answer = CliRunner().invoke(app, ["lesson", *arguments])
    assert "Traceback" not in answer.output
    return answer


def test_twelve_lessons_are_listed_in_their_order() -> None:
    answer = ran()
    assert answer.exit_code == 0
    assert re.findall(r"^ +\d+  (\S+)", answer.stdout, re.MULTILINE) == list(LESSONS)
    assert len(LESSONS) == 12
    assert [row["lesson"] for row in json.loads(ran("--format", "json").stdout)] == list(LESSONS)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_whole(name: str) -> None:
    """Its scenario loads with all that can be drawn, and its texts leave no place empty."""
    one = find(name)
    for seed in range(4):
        asked = lesson(name, seed)
        points = [point for point in expand(asked.scenario) if point.variant == one.predict]
        assert [written(*point.values.values()) for point in points] == asked.places
        assert not PLACE.search(asked.text + asked.because)
        assert all(value in asked.text for value in asked.drawn.values())
    assert set(PLACE.findall(one.scenario)) == set(one.draw)
    assert all(len(set(values)) > 1 for values in one.draw.values())


def test_a_seed_draws_the_same_on_every_computer() -> None:
    assert lesson("knee", 7).drawn == {"think": "45 us", "hold": "10 us"}
    assert len({json.dumps(lesson("convoy", seed).drawn) for seed in range(20)}) == 4


@given(RIGHT)
def test_the_rule_of_the_score(right: float) -> None:
    assert score(right, right) == 100
    assert score(right * 2, right) == pytest.approx(0, abs=1e-6)
    assert score(right / 2, right) == pytest.approx(0, abs=1e-6)
    assert score(right * 2**0.5, right) == pytest.approx(50)
    assert score(right * 100, right) == 0


def test_what_is_not_guessed_has_no_points() -> None:
    marks = marked({"1": 10.0}, {"1": 10.0, "2": 20.0})
    assert [mark.score for mark in marks.points] == [100, 0]
    assert marks.score == 50


def test_guesses_are_read() -> None:
    assert parse("1:10k, 8:1.5M,16:300,2us:.5G") == {"1": 10e3, "8": 1.5e6, "16": 300, "2us": 0.5e9}


@pytest.mark.parametrize(
    "text", ["", "8", "8:", ":8", "8:k", "8:-1", "8:1e3", "8:1q", "8:nan", "1:1,1:2", "1:1,"]
)
def test_what_is_no_guess_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="guess"):
        parse(text)


@pytest.mark.parametrize(
    ("guess", "said"), [({1: "10k"}, "guess 1: a guess is a number"), ({7: 1}, "guess 7: was not asked for")]
)
def test_a_wrong_guess_in_python_is_told_before_anything_is_computed(
    guess: dict[int, object], said: str
) -> None:
    asked = lesson("knee")
    for use in (asked.mark, asked.figure):
        with pytest.raises(ScenarioError, match=said):
            use(guess)  # type: ignore[arg-type]
    assert "answer" not in vars(asked)
    with pytest.raises(TypeError, match="a value for each place"):
        asked.mark([1, 2])  # type: ignore[arg-type]


def test_a_lesson_is_asked_for_by_its_name_or_its_number() -> None:
    assert [find(asked).name for asked in ("knee", "1", "12")] == ["knee", "knee", "design"]
    with pytest.raises(ScenarioError, match="no such lesson"):
        find("13")


@pytest.mark.slow
def test_the_answer_is_hidden_until_it_is_asked_for() -> None:
    hidden = ran("knee", "-s", "3")
    assert "?" in hidden.stdout
    assert "answer" not in json.loads(ran("knee", "-s", "3", "--format", "json").stdout)
    assert "because" not in json.loads(ran("knee", "--guess", "1:10k", "--format", "json").stdout)
    shown = json.loads(ran("knee", "-s", "3", "-c", "--format", "json").stdout)
    assert [point["at"] for point in shown["answer"]] == shown["places"]


@pytest.mark.slow
def test_graders_get_a_score() -> None:
    right = json.loads(ran("whatif", "-s", "2", "-c", "--format", "json").stdout)["answer"]
    guess = ",".join(f"{point['at']}:{point['per_s']:.0f}" for point in right)
    marks = json.loads(ran("whatif", "-s", "2", "--guess", guess, "--format", "json").stdout)
    assert marks["score"] == pytest.approx(100, abs=0.1)
    assert len(marks["marks"]) == len(right)
    assert "Score: 100 of 100" in ran("whatif", "-s", "2", "--guess", guess).stdout


@pytest.mark.parametrize(
    ("place", "said"), [("500ns", "500 ns"), ("0.5us", "0.5 us"), ("semaphore", "semaphore")]
)
def test_an_axis_has_a_space_before_the_unit(place: str, said: str) -> None:
    assert spaced(place) == said


@pytest.mark.slow
def test_figures_are_written_for_slides(tmp_path: Path) -> None:
    answer = ran("whatif", "-s", "2", "--guess", "1:10k", "--out", str(tmp_path / "slides"))
    assert answer.exit_code == 0, answer.stderr
    files = {path.name: path.read_bytes() for path in (tmp_path / "slides").iterdir()}
    assert set(files) == {"11_whatif.png", "11_whatif.svg", "11_whatif.pdf"}
    assert b"your guess" in files["11_whatif.svg"]


def test_where_figures_go_is_tried_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Asked, "figure", lambda *_: pytest.fail("was computed"))
    (tmp_path / "file").touch()
    for name, place in (("whatif", tmp_path / "file"), ("knee", tmp_path / "file" / "slides")):
        answer = ran(name, "--out", str(place))
        assert answer.exit_code == 2
        assert f"--out {place}: {tmp_path / 'file'} is a file" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kne"], "did you mean 'knee'?"),
        (["knee", "--guess", "7:1k"], "--guess 7: was not asked for"),
        (["spin-or-sleep", "--guess", "2u:1k"], "did you mean '2us'?"),
        (["knee", "--guess", "1:0"], "more than 0"),
        (["knee", "--guess", ""], "--guess ''"),
        (["--guess", "1:1k", "--out", "slides"], "--guess: name a lesson"),
        (["-c"], "name a lesson"),
    ],
)
def test_bad_input_is_told_plainly(arguments: list[str], said: str) -> None:
    answer = ran(*arguments)
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_a_scenario_runs_with_what_was_fitted_for_its_data() -> None:
    found = fitted("inode-hash")
    assert [setting.partition("=")[0] for setting in found] == [
        "machine.speed",
        "filesystem.costs.inode_hash",
    ]
    assert load("inode-hash", found)
    assert fitted("lock-cycle") == fitted("emulated-create-unlink") == ()
