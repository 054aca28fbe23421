"""The command line: help, exit codes, clean streams."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import ROOT, SAMPLES
from shorter import shorter
from typer.main import get_command
from typer.testing import CliRunner

import simfs.experiments.answer
import simfs.reports.export
from simfs.cli import COMMANDS, GROUPS, app
from simfs.reports import catalogue
from simfs.results.defect import EngineError
from simfs.results.model import Finding
from simfs.scenario import ScenarioError, paths
from simfs.scenario.reading.document import Document

RUNNER = CliRunner()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str) -> None:
    answer = RUNNER.invoke(app, [command, "--help"])
    assert answer.exit_code == 0
    assert f"Example: simfs {command}" in answer.stdout


def test_the_help_groups_every_command_once() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    assert "Begin with: simfs run" in RUNNER.invoke(app, ["--help"]).stdout


SAYS = {
    "whatif": "Causal profile",
    "advise": "as it is",
    "calibrate": "workload.user_cpu",
    "doctor": "ok       scenario compile-24: ",
    "sensitivity": "machine.costs.line_llc",
}
"""What the answer to an example has in it."""


def _is_examined(name: str, folder: Path) -> bool:
    return folder not in (paths.SCENARIOS, paths.MEASURED) or "xfs-compile" in name or name == "compile-24"


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"measure"}))  # which test_measure.py has
def test_the_example_of_the_help_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(COMMANDS[command].example.partition(">")[0])[1:]
    if command == "merge":
        for shard in (1, 2):
            options = ["lock-cycle", "--quick", "--shard", f"{shard}/2", "--out", f"shard-{shard}"]
            assert RUNNER.invoke(app, ["sweep", *options]).exit_code == 0
    if command == "report":
        monkeypatch.undo()  # of what makes every result.json of this file the same
        monkeypatch.chdir(tmp_path)
        assert RUNNER.invoke(app, ["run", "lock-cycle", "--quick", "--out", "results"]).exit_code == 0
    if command == "lab":
        monkeypatch.setattr("simfs.reports.web.gallery.Gallery.serve_forever", lambda self: None)
    if command == "doctor":  # that every scenario and data set is well is asked one by one elsewhere
        every = paths.names
        monkeypatch.setattr(
            paths, "names", lambda folder: [n for n in every(folder) if _is_examined(n, folder)]
        )
    if command == "import":
        shutil.copy(SAMPLES / "perf-lock-xfs.txt", "perf.txt")
    answer = RUNNER.invoke(app, shorter(words))
    assert answer.exit_code == 0, answer.stderr
    assert SAYS.get(command, "") in answer.stdout
    assert all(Path(words[at + 1]).exists() for at, word in enumerate(words) if word == "--out")
    assert answer.stdout or command in ("import", "new")  # they write a file


LIGHT = """
import sys
from simfs.cli import COMMANDS
for name, command in COMMANDS.items():
    command.load(name)
heavy = {"numpy", "pydantic", "scipy", "matplotlib", "pyarrow", "rich.console", "ruamel.yaml"} & sys.modules.keys()
sys.exit(", ".join(heavy))
"""


def test_help_and_completion_import_nothing_heavy() -> None:
    assert subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True).stderr.strip() == ""


ANSWER = """
import sys
import simfs.cli
sys.argv = ["simfs", "run", "lock-cycle", "--quick", "--set", "measure.duration=5 ms", *sys.argv[1:]]
try:
    simfs.cli.main()
finally:
    data = {"simfs.scenario.measured.dataset", "simfs.interchange"}  # the scenario names none
    heavy = ({"numpy", "scipy", "matplotlib", "pyarrow", "simpy"} | data) & sys.modules.keys()
    print("heavy:", *sorted(heavy), file=sys.stderr)
"""


@pytest.mark.parametrize("printed", [(), ("--format", "json")])
def test_an_answer_loads_no_libraries_for_numbers_figures_or_tables(printed: tuple[str, ...]) -> None:
    """To import them took as long as the runs of a first look."""
    ended = subprocess.run([sys.executable, "-c", ANSWER, *printed], capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == "heavy:"


def test_simfs_runs_as_a_module() -> None:
    def printed(*words: str) -> str:
        return subprocess.run([sys.executable, *words, "--version"], capture_output=True, text=True).stdout

    assert printed("-m", "simfs") == printed(str(ROOT / "cli.py")) != ""


def test_completion_knows_commands_and_scenarios() -> None:
    def completed(words: str) -> str:
        asked = {"_SIMFS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return RUNNER.invoke(app, [], env=asked, prog_name="simfs").stdout

    assert completed("simfs va").split() == ["validate"]
    assert "compile-24" in completed("simfs run comp").split()


def test_an_unknown_command_is_refused_with_the_nearest() -> None:
    answer = RUNNER.invoke(app, ["valdate"])
    assert answer.exit_code == 2
    assert "Did you mean 'validate'?" in answer.stderr


def test_help_without_a_command() -> None:
    assert "compile" not in RUNNER.invoke(app, ["--help"]).stderr
    assert RUNNER.invoke(app, ["--version"]).stdout.startswith("simfs ")


@pytest.mark.parametrize(
    "options",
    [
        ["run"],
        ["run", "no-such-scenario"],
        ["run", "lock-cycle", "--threads", "0"],
        ["run", "lock-cycle", "--threads", "many"],
        ["run", "lock-cycle", "--seed", "-1"],
        ["run", "lock-cycle", "--seed", "99999999999999999999999"],
        ["run", "lock-cycle", "--format", "xml"],
        ["run", "lock-cycle", "--engine", "steam"],
        ["run", "lock-cycle", "--set", "workload.tasks"],
        ["run", "lock-cycle", "--out", "/dev/null"],
        ["run", "lock-cycle", "--unknown"],
        ["fly"],
    ],
)
def test_bad_input_is_two_and_no_traceback(options: list[str]) -> None:
    answer = RUNNER.invoke(app, options)
    assert answer.exit_code == 2
    assert answer.stdout.strip() == ""
    assert answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("options", "near"),
    [
        (["whatif", "compile-24", "--variant", "xsf", "--set", "workload.user_cpu=9 ms"], "xfs"),
        (["compare", "lock-cycle:mutx", "lock-cycle"], "mutex"),
        (["sensitivity", "lock-cycle", "--variant", "mutex", "--metric", "idle_percnt"], "idle_percent"),
        (["validate", "guest-2cpus"], "guest-2cpu"),
        (["trace", "lock-cycle", "--variant", "mutx"], "mutex"),
    ],
)
def test_what_is_mistyped_is_told_with_the_nearest_valid_word(options: list[str], near: str) -> None:
    answer = RUNNER.invoke(app, options)
    assert answer.exit_code == 2
    assert f"did you mean '{near}'?" in answer.stderr.replace("\n", " ")


def test_a_file_that_is_missing_is_told_with_the_one_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("simfs: 1\n")
    answer = RUNNER.invoke(app, ["run", "mine.yml"])
    assert (answer.exit_code, answer.stderr) == (2, "mine.yml: no such file (did you mean 'mine.yaml'?)\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["run", "mine"], "mine: this is a folder, not a scenario; name a file in it that ends in .yaml\n"),
        (["run", "results"], "results: this is the folder of a result, not a scenario; `simfs compare`"),
        (
            ["compare", "nothere.txt", "lock-cycle"],
            "nothere.txt: no such file, and there is no scenario of this",
        ),
        (["compare", "lock-cycle", "nothere"], "nothere: there is no scenario of this name"),
        (["compare", "mine", "lock-cycle"], "mine: is a folder, but is no result of `simfs run --out`"),
    ],
)
def test_a_folder_and_a_missing_file_are_called_that(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("results").mkdir()
    Path("results/result.json").write_text("{}")
    answer = RUNNER.invoke(app, options)
    assert answer.exit_code == 2
    assert answer.stderr.startswith(said)


def test_messages_print_what_is_written_and_no_pictures(tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text("root:x:0 [bold]")
    assert "root:x:0 [bold]" in RUNNER.invoke(app, ["run", str(path)]).stderr


def test_a_table_of_measurements_is_told_what_a_data_set_is(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("tasks,ops\n1,100\n")
    (tmp_path / "mine.yaml").write_text("simfs: 1\nextends: lock-cycle\nname: mine\nmeasured: mine.csv\n")
    asked = RUNNER.invoke(app, ["run", str(tmp_path / "mine.yaml")])
    assert asked.exit_code == 2
    assert "mine.yaml:4:11: mine.csv: is no data set" in asked.stderr
    assert "simfs import" in asked.stderr
    (tmp_path / "mine.csv").write_text("yesterday,today\n1,100\n")
    imported = RUNNER.invoke(app, ["import", str(tmp_path / "mine.csv")])
    assert imported.exit_code == 2
    assert "series,tasks,value" in imported.stderr


@pytest.mark.slow
def test_lists_of_kinds_name_everything_shipped() -> None:
    for kind, folder in {
        "scenarios": paths.SCENARIOS,
        "measured data": paths.MEASURED,
        "machines": paths.MODELS / "machines",
    }.items():
        shown = {
            line.split()[0] for line in RUNNER.invoke(app, ["list", kind]).stdout.splitlines() if line.strip()
        }
        assert set(paths.names(folder)) <= shown


def test_list_begins_with_what_to_start_from_and_fits_two_screens() -> None:
    shown = RUNNER.invoke(app, ["list"]).stdout
    for name in ("compile-24", "lock-cycle", "will-it-scale", "fxmark", "server-24", "linux-3.0", "nvme"):
        assert f"\n {name} " in shown
    assert "xfs-dbench-workers" not in shown
    assert f"{len(paths.names(paths.MEASURED))} sets of measured data" in shown
    assert len(shown.splitlines()) < 100


@pytest.mark.parametrize(
    "text", ["title: a: 'b'", "title: >-\n  a long\n  one", 'title: "a\\u00e9 # b"  # c', ""]
)
def test_a_title_is_read_without_the_rest_of_its_file(text: str) -> None:
    whole = f"simfs: 1\n{text}\nquestion: and?\n"
    try:
        title = str(Document.parse(whole, "whole").data.get("title", ""))
    except ScenarioError:
        with pytest.raises(ScenarioError):
            catalogue._title(whole)
    else:
        assert catalogue._title(whole) == title


def test_list_has_the_titles_of_what_a_word_is_in() -> None:
    shown = RUNNER.invoke(app, ["list", "CAS-loop"]).stdout
    assert "Threads add to one counter" in shown
    assert "compile-24" not in shown
    kernels = RUNNER.invoke(app, ["list", "kernels"]).stdout
    assert "vfs.file_line" in kernels
    assert "compile-24" not in kernels
    assert RUNNER.invoke(app, ["list", "xyzzy"]).exit_code == 2


def test_schema_is_one_json_document() -> None:
    assert json.loads(RUNNER.invoke(app, ["schema"]).stdout)["type"] == "object"


def fake(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> dict[str, Any]:  # noqa: ANN401
    seen: dict[str, Any] = {}

    def run_scenario(points: Any, measure: Any, **options: Any) -> Any:  # noqa: ANN401
        seen.update(options, points=points, measure=measure)
        options["progress"](1, 2, "half")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(simfs.experiments.answer, "run_scenario", run_scenario)
    monkeypatch.setattr(simfs.experiments.answer, "conclusion", lambda result, points: "")
    monkeypatch.setattr(simfs.experiments.answer, "with_saturated", lambda result, *offered: result)
    monkeypatch.setattr(simfs.experiments.answer, "fitted", lambda asked, rows, **options: (asked, ()))
    return seen


def result(exit_code: int = 0) -> SimpleNamespace:
    finding = Finding(kind="law", point="p", replication=0, message="time is not conserved")
    answer = SimpleNamespace(exit_code=exit_code, findings=(finding,) if exit_code else (), expected=())
    answer.with_fits = lambda fits: answer
    answer.model_copy = lambda update: answer
    return answer


@pytest.fixture(autouse=True)
def plain_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simfs.reports.export, "to_json", lambda result: '{"answer": 42}\n')


@pytest.mark.parametrize("code", [0, 1, 3])
def test_json_is_one_document_and_findings_set_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fake(monkeypatch, result(code))
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--format", "json"])
    assert json.loads(answer.stdout) == {"answer": 42}
    assert answer.exit_code == code
    assert ("time is not conserved" in answer.stderr) == bool(code)


def test_options_reach_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = fake(monkeypatch, result())
    options = ["--seed", "7", "--threads", "3", "--quick", "--set", "workload.tasks=5", "--format", "json"]
    assert RUNNER.invoke(app, ["run", "lock-cycle", *options]).exit_code == 0
    assert seen["threads"] == 3
    assert seen["measure"].seed == 7
    assert seen["measure"].replications == 5
    assert [point.variant for point in seen["points"]] == ["semaphore", "mutex", "ticket"]


@pytest.mark.parametrize(
    ("outcome", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("workload.kind: not built yet"), 2, "not built yet"),
        (ImportError("no engine"), 4, "simfs doctor"),
        (EngineError("mutex tasks=8 #1: a defect in the engine"), 4, "mutex tasks=8 #1: a defect"),
    ],
)
def test_what_can_happen_on_the_way(
    monkeypatch: pytest.MonkeyPatch, outcome: BaseException, code: int, says: str
) -> None:
    fake(monkeypatch, outcome)
    answer = RUNNER.invoke(app, ["run", "lock-cycle"])
    assert answer.exit_code == code
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr


def test_measured_rows_reach_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = fake(monkeypatch, result())
    RUNNER.invoke(app, ["run", "compile-24", "--format", "json"])
    assert {row.role for row in seen["measured"]} == {"calibrate", "predict"}
    assert seen["operation"] == "compile"
    assert seen["titles"]["xfs"] == "xfs, one directory"


def test_a_place_that_cannot_be_written_to_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("x")
    seen = fake(monkeypatch, result())
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--out", str(tmp_path)])
    assert answer.exit_code == 2
    assert "is not empty and not a simfs result" in answer.stderr
    assert not seen


@pytest.mark.parametrize("out", ["mine.txt", "mine.txt/results", "mine.txt/a/b"])
def test_a_place_below_a_file_is_refused_before_the_run(
    out: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("x")
    seen = fake(monkeypatch, result())
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--out", str(tmp_path / out)])
    assert answer.exit_code == 2
    assert "is a file, not a directory" in answer.stderr
    assert not seen


@pytest.mark.parametrize("name", ["lock-cycle", "mine.yaml"])
def test_a_report_of_a_scenario_says_what_makes_one(name: str) -> None:
    answer = RUNNER.invoke(app, ["report", name])
    assert answer.exit_code == 2
    assert f"simfs run {name} --report" in answer.stderr.replace("\n", " ")


@pytest.mark.parametrize("name", ["nope", "/nonexistent.yaml"])
def test_words_that_are_hardly_alike_are_not_suggested(name: str) -> None:
    assert "did you mean" not in RUNNER.invoke(app, ["run", name]).stderr


def test_a_file_that_is_no_scenario_is_called_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perf.txt").write_text("x")
    answer = RUNNER.invoke(app, ["run", "perf.txt"])
    assert answer.exit_code == 2
    assert "perf.txt: this file is no scenario" in answer.stderr


def test_only_the_variants_that_are_named_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = fake(monkeypatch, result())
    RUNNER.invoke(app, ["run", "lock-cycle", "--variant", "mutex", "--variant", "ticket"])
    assert {point.variant for point in seen["points"]} == {"mutex", "ticket"}
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--variant", "mutx"])
    assert answer.exit_code == 2
    assert "did you mean 'mutex'" in answer.stderr


def test_out_has_one_short_name_in_all_commands() -> None:
    """`-o` was short for `--out` in four of thirteen commands."""
    missing = [
        name
        for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
        for option in command.params
        if "--out" in option.opts and "-o" not in option.opts
    ]
    assert not missing


@pytest.mark.parametrize("command", ["run", "timeline", "compare"])
def test_the_only_variant_has_the_name_that_its_results_give_it(command: str, tmp_path: Path) -> None:
    """`simfs whatif` and the folder of a result called it `default`; other commands said that there are none."""
    scenario = tmp_path / "one.yaml"
    scenario.write_text(
        "simfs: 1\nname: one\ntitle: One\nmachine: {profile: server-24, cpus: 2}\nkernel: linux-6.12\n"
        "workload: {kind: lock_cycle, tasks: 2, lock: mutex, think: 20 us, hold: 4 us}\n"
        "measure: {warmup: 100 us, duration: 1 ms, replications: 2}\n"
    )
    named = {
        "run": [str(scenario), "--variant", "default"],
        "timeline": [str(scenario), "--variant", "default", "-o", str(tmp_path / "one.svg")],
        "compare": [f"{scenario}:default", str(scenario)],
    }
    answer = CliRunner().invoke(app, [command, *named[command]])
    assert answer.exit_code == 0, answer.stderr
