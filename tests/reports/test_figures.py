"""Figures are made, readable and reproducible; text fits the terminal; files are whole and nobody else's."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import fakes
import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from pictures import assert_no_overlap, boxes
from pyarrow import parquet
from rich.console import Console

from simfs.reports import export, text
from simfs.reports.figures.curves import SIDE_BY_SIDE
from simfs.reports.figures.drawing import label, pictures, svg
from simfs.reports.figures.latency import curve, one_in
from simfs.reports.figures.result import figures, makers
from simfs.results.model import Finding, Fit, PointResult, ScenarioResult
from simfs.results.run import Runs, run_scenario
from simfs.results.run_result import Stall
from simfs.results.summaries import CURVE as PER_CENTS
from simfs.results.summaries import PooledLatency


def scenario(tasks: tuple[int, ...] = fakes.TASKS) -> ScenarioResult:
    fit = Fit(
        values={"workload.user_cpu": 1.4e7},
        units={"workload.user_cpu": "ns"},
        bounds={"workload.user_cpu": (1e6, 1e8)},
        rows=fakes.ROWS[:1],
        objective=0.001,
        evaluations=5,
    )
    return run_scenario(
        fakes.points(tasks=tasks),
        Runs(3),
        engine=fakes.engine,
        to_spec=fakes.to_spec,
        measured=fakes.ROWS,
        name="compile-24",
        operation="compile",
        sweep=("workload.tasks",),
    ).with_fits((fit,))


CURVE, TABLE = scenario(), scenario((24,))
NAMES = ["throughput", "cpu-time", "locks", "latency", "warm-up", "measured"]


def figure(result: ScenarioResult, name: str) -> Figure:
    """One of its figures."""
    return makers(result)[name]()


@cache
def drawn(name: str) -> Figure:
    """A figure, made once."""
    return figure(CURVE, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["throughput", "cpu-time", "locks", "latency", "measured"])
def test_no_text_lies_over_another_or_outside(name: str) -> None:
    assert_no_overlap(drawn(name))


@pytest.mark.parametrize("name", ["throughput", "cpu-time", "locks", "latency", "measured"])
def test_the_legend_lies_outside_the_axes(name: str) -> None:
    figure = drawn(name)
    boxes(figure)
    (legend,) = figure.legends
    for axes in figure.axes:
        overlap = Bbox.intersection(legend.get_window_extent(), axes.get_window_extent())
        assert not axes.get_visible() or overlap is None


def drawn_of_three(name: str) -> Figure:
    """The same figure of three variants, made anew."""
    points = tuple(p for variant in list(fakes.VARIANTS)[:3] for p in CURVE.of(variant))
    return figure(CURVE.model_copy(update={"points": points}), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bytes_twice(name: str) -> None:
    assert pictures(name, drawn_of_three(name)) == pictures(name, drawn_of_three(name))


@pytest.mark.slow
def test_the_text_of_an_svg_is_text_without_a_date() -> None:
    data = svg(drawn("throughput"))
    assert b"compiles per second</text>" in data
    assert b"<dc:date>" not in data


def test_figures_leave_global_settings_alone() -> None:
    before = dict(mpl.rcParams)
    svg(drawn("measured"))
    assert dict(mpl.rcParams) == before


def test_only_figures_that_make_sense_are_made() -> None:
    assert list(figures(CURVE)) == NAMES
    assert list(figures(TABLE)) == ["locks", "latency", "warm-up", "measured"]
    bare = [
        p.model_copy(update={"locks": (), "latency": {}, "measured": (), "batches_per_s": ()})
        for p in TABLE.points
    ]
    assert figures(TABLE.model_copy(update={"points": tuple(bare)})) == {}


def test_every_variant_is_in_the_legend_with_its_own_marker_and_line() -> None:
    axes = drawn("throughput").axes[0]
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    looks = {(str(lines[v].get_marker()), str(lines[v].get_color())) for v in CURVE.variants}
    assert len(looks) == len(CURVE.variants)
    assert {"linear scaling", "measured, calibration row", "measured, to be predicted"} <= set(lines)


def settings() -> ScenarioResult:
    """A scenario that is a table: two swept keys besides the tasks, rows for each."""
    variants = list(fakes.VARIANTS)[:4]
    points = [
        replace(p, values={**p.values, "workload.kind": kind, "workload.pin_to_cpu": pin}, cpus=2)
        for p in fakes.points(variants, (1, 2, 24))
        for kind in ("create", "create_unlink", "tmpfile")
        for pin in ("null", 0)
    ]
    measure: dict[str, Any] = {"engine": fakes.engine, "to_spec": fakes.to_spec}
    sweep = ("workload.tasks", "workload.kind", "workload.pin_to_cpu")
    bare = run_scenario(points, Runs(2), sweep=sweep, **measure)
    rows = [
        fakes.row(p.variant, p.tasks, "ops_per_s", p.throughput.mean * 1.1).model_copy(
            update={"values": dict(p.values), "role": "calibrate" if p.tasks == 1 else "predict"}
        )
        for p in bare.points
    ]
    return run_scenario(points, Runs(2), sweep=sweep, measured=rows, **measure)


@pytest.mark.slow
def test_a_table_of_many_settings_is_drawn_in_panels_and_fits_the_terminal() -> None:
    table = settings()
    made = figures(table)
    assert list(made) == ["locks", "latency", "warm-up", "measured"]
    assert [axes.get_title("left") for axes in made["measured"].axes][:2] == [
        "kind create, pin_to_cpu null",
        "kind create, pin_to_cpu 0",
    ]
    assert_no_overlap(made["measured"])
    assert_no_overlap(made["warm-up"])
    assert max(map(len, printed(table, 100).splitlines())) <= 100


@pytest.mark.slow
def test_more_curves_than_can_be_told_apart_get_a_panel_each() -> None:
    points = [
        replace(p, variant=f"loop {i} of a long name")
        for i in range(13)
        for p in fakes.points(["ext4"], (1, 4, 24))
    ]
    many = run_scenario(
        points, Runs(2), engine=fakes.engine, to_spec=fakes.to_spec, sweep=("workload.tasks",)
    )
    made = figures(many)
    assert "cpu-time" not in made
    shown = [axes for axes in made["throughput"].axes if axes.get_visible()]
    assert len(shown) == 13
    assert_no_overlap(made["throughput"])


@pytest.mark.slow
def test_throughputs_far_apart_have_a_logarithmic_axis() -> None:
    def scaled(factor: float) -> list[PointResult]:
        return [
            p.model_copy(
                update={
                    "variant": f"times {factor:g}",
                    "throughput": p.throughput.model_copy(update={"mean": factor * p.throughput.mean}),
                }
            )
            for p in CURVE.of("ext4")
        ]

    for factor, scale in ((1.5, "linear"), (1e4, "log")):
        result = CURVE.model_copy(update={"points": (*CURVE.of("ext4"), *scaled(factor))})
        assert figure(result, "throughput").axes[0].get_yscale() == scale


def test_titles_of_many_warm_ups_are_inside_the_figure_and_those_left_out_are_counted() -> None:
    """Of `will-it-scale` the last titles of a row were cut, and four variants were missing without a word."""
    title = "create and unlink files of one directory in turn"
    titles = dict.fromkeys(fakes.VARIANTS, title)
    made = figure(CURVE.model_copy(update={"titles": titles}), "warm-up")
    assert_no_overlap(made)
    points = [p.model_copy(update={"variant": f"{p.variant}-{n}"}) for n in range(9) for p in CURVE.points]
    many = figure(CURVE.model_copy(update={"points": tuple(points)}), "warm-up")
    assert re.search(r"\(12 of \d+: the longest transients\)", many.get_supxlabel())


def test_the_legend_of_a_single_warm_up_fits() -> None:
    alone = figure(TABLE.model_copy(update={"points": TABLE.of("ext4")}), "warm-up")
    alone.draw_without_rendering()
    (legend,) = alone.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= alone.bbox.x1


def test_a_legend_of_long_names_is_inside_the_figure() -> None:
    """Of `cna-lock2` both ends were cut, in the figure of a lesson."""
    title = "will-it-scale lock2, lock qspinlock, numa_spinlock_threshold 1 ms"
    titles = {variant: f"{title} {variant}" for variant in fakes.VARIANTS}
    assert_no_overlap(figure(CURVE.model_copy(update={"titles": titles}), "throughput"))


LONG = "a title that says everything at once, and_a_word_without_any_blank_that_goes_on_for_ever_and_ever_and_ever"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["throughput", "cpu-time", "locks", "latency", "warm-up"])
def test_very_long_names_are_shortened_in_their_middle(name: str) -> None:
    """Seven lines of a title left no room for its panel, and long words lay over each other."""
    variants = list(fakes.VARIANTS)[:3]
    points = tuple(p for variant in variants for p in CURVE.of(variant))
    titles = {variant: f"{LONG} {n}" for n, variant in enumerate(variants)}
    made = figure(CURVE.model_copy(update={"points": points, "titles": titles, "fits": ()}), name)
    assert_no_overlap(made)
    assert all(axes.get_window_extent().height > 60 for axes in made.axes if axes.get_visible())


@given(st.text(" ab_\n", max_size=200), st.integers(6, 40), st.integers(1, 4))
def test_a_label_is_no_wider_and_no_higher_than_told(text: str, width: int, lines: int) -> None:
    shown = label(text, width, lines).split("\n")
    assert len(shown) <= lines
    assert max(map(len, shown)) <= width


def test_of_many_variants_the_longest_waits_are_drawn_and_those_left_out_are_counted() -> None:
    """Of 200 variants the figure was five metres high."""
    full = CURVE.of("xfs, one directory")
    points = [p.model_copy(update={"variant": f"{p.variant} {n}"}) for n in range(60) for p in full]
    made = figure(CURVE.model_copy(update={"points": tuple(points)}), "locks")
    assert "16 of 60, the longest waits" in made.axes[0].get_title("left")
    assert made.get_figheight() < 20


@pytest.mark.slow
@pytest.mark.parametrize(("most", "scale"), [(48, "linear"), (1024, "log")])
def test_tasks_far_apart_have_a_logarithmic_axis(most: int, scale: str) -> None:
    counts = tuple(2**n for n in range(11) if 2**n <= most)
    made = figures(scenario(counts))
    assert made["throughput"].axes[0].get_xscale() == made["cpu-time"].axes[0].get_xscale() == scale
    assert_no_overlap(made["throughput"])


def test_measured_points_that_are_moved_aside_are_said_to_be() -> None:
    """In the samples ext4 and btrfs were measured at the same rate."""

    def legend(result: ScenarioResult) -> list[str]:
        (found,) = figure(result, "throughput").legends
        return [entry.get_text() for entry in found.get_texts()]

    assert SIDE_BY_SIDE in legend(CURVE)
    assert SIDE_BY_SIDE not in legend(CURVE.model_copy(update={"points": CURVE.of("ext4")}))


def took(count: int, *times: float, longest: float) -> PooledLatency:
    """Latencies of which the last of `times` is that of all higher per cents that are kept."""
    kept = (*times, *[times[-1]] * (len(PER_CENTS) - len(times)))
    return PooledLatency(
        count=count, mean_ns=1, p50_ns=1, p90_ns=1, p99_ns=kept[-1], max_ns=longest, hdr="", curve=kept
    )


def with_latency(point: PointResult, **latency: PooledLatency) -> PointResult:
    return point.model_copy(update={"latency": latency})


def test_a_line_of_latencies_ends_with_the_one_operation_that_took_longest() -> None:
    """Of 40 operations none is known that is one in 10,000."""
    line = curve(took(40, 1e3, 2e3, longest=7e3))
    assert line[:2] == ((1e3, 0.95), (2e3, 0.9))
    assert line[-2][1] == pytest.approx(0.03)
    assert line[-1] == (7e3, 1 / 40)


def test_a_panel_of_latencies_has_a_line_for_each_variant_that_has_the_operation() -> None:
    one, two = CURVE.of("ext4")[-1], CURVE.of("xfs, one directory")[-1]
    slow, fast = took(40, 1e3, 2e3, longest=7e6), took(4000, 1e2, 2e2, longest=3e2)
    points = (with_latency(one, create=slow, unlink=fast), with_latency(two, create=fast))
    made = figure(CURVE.model_copy(update={"points": points}), "latency")
    names = [axes.get_title("left") for axes in made.axes]
    lines = [
        [line.get_color() for line in axes.lines if line.get_linestyle() != "None"] for axes in made.axes
    ]
    assert dict(zip(names, map(len, lines), strict=True)) == {"create": 2, "unlink": 1}
    assert len(set(lines[0])) == 2
    assert {axes.get_xscale() for axes in made.axes} == {axes.get_yscale() for axes in made.axes} == {"log"}
    assert all(axes.get_ylim()[0] < 1 / 4000 and axes.get_ylim()[1] == 1 for axes in made.axes)
    assert_no_overlap(made)


def test_latencies_that_are_all_the_same_are_no_figure() -> None:
    always = took(40, 1e3, longest=1e3)
    points = tuple(with_latency(p, create=always) for p in CURVE.points)
    assert "latency" not in makers(CURVE.model_copy(update={"points": points}))


@pytest.mark.parametrize(
    ("share", "words"), [(1.0, "all"), (0.1, "1 in 10"), (1e-3, "1 in 1,000"), (1e-6, "1 in 1,000,000")]
)
def test_shares_of_operations_are_words(share: float, words: str) -> None:
    assert one_in(share) == words


@pytest.mark.slow
def test_of_many_latencies_the_longest_are_drawn_and_those_left_out_are_counted() -> None:
    full = CURVE.of("xfs, one directory")[-1]
    kinds = {f"call {n}": took(400, 1e2, 1e3 * (n + 1), longest=1e4 * (n + 1)) for n in range(12)}
    names = [f"{full.variant} {n}" for n in range(20)]
    points = [with_latency(full.model_copy(update={"variant": name}), **kinds) for name in names]
    made = figure(CURVE.model_copy(update={"points": tuple(points)}), "latency")
    assert re.search("8 of 20 variants: the longest; 9 of 12 operations", made.get_supxlabel())
    assert_no_overlap(made)


# --- text


def printed(result: ScenarioResult, width: int = 118) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    text.print_report(result, console)
    return console.export_text()


def test_the_report_has_the_columns_of_perf_and_says_what_was_fitted() -> None:
    report = printed(CURVE)
    columns = (
        "contended",
        "total wait",
        "max wait",
        "avg wait",
        "avg hold",
        "type",
        "caller",
        "compiles/s",
        "idle %",
    )
    for column in columns:
        assert column in report
    assert "by unlink" in report
    assert "fitted: workload.user_cpu = 14 ms on row 'ext4, tasks 24'; all else predicted" in " ".join(
        report.split()
    )
    assert "predicted compiles_per_s, 3 rows: median error" in report
    assert "predicted idle_percent, 2 rows: median error" in report


def test_a_stall_tells_who_waits_for_whom() -> None:
    stall = Stall(kind="deadlock", at_ns=5e6, cycle=("task 1 waits for a[#0] held by task 2",))
    finding = Finding(kind="stall", point="ext4", replication=0, message="deadlock at 5 ms", stall=stall)
    assert "task 1 waits for a[#0] held by task 2" in printed(
        TABLE.model_copy(update={"findings": (finding,)})
    )


# --- files


def write(directory: Path) -> list[Path]:
    return export.write(TABLE, directory, scenario="simfs: 1\n", seed=1, command=["simfs", "run"])


@pytest.mark.slow
def test_a_result_directory_is_complete_and_reads_back_and_is_replaced_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a" / "b"
    written = write(out)
    assert sorted(p for p in out.rglob("*") if p.is_file()) == sorted(written)
    assert {p.suffix for p in written} == {".json", ".csv", ".parquet", ".png", ".svg", ".pdf"}
    read = ScenarioResult.model_validate_json((out / "result.json").read_text())
    assert read.model_dump() == TABLE.model_dump()  # latency curves stand in a table of their own
    assert parquet.read_table(out / "tables" / "points.parquet").num_rows == 7
    files = json.loads((out / "manifest.json").read_text())["files"]
    assert all(sha256((out / name).read_bytes()).hexdigest() == digest for name, digest in files.items())
    first = {p: p.read_bytes() for p in written if p.name != "manifest.json"}
    kept = [(str(p.relative_to(out)), data) for p, data in first.items() if p.parent.name == "figures"]
    monkeypatch.setattr(export, "_figures", lambda _: kept)  # that these are the same is tested above
    assert {p: p.read_bytes() for p in write(out) if p.name != "manifest.json"} == first


def test_files_that_only_an_earlier_result_has_are_removed_unless_they_were_changed(tmp_path: Path) -> None:
    now, earlier = {"a.csv": b"a"}, {"a.csv": b"a", "b/c.csv": b"c", "d.csv": b"d"}
    about = {"simfs": "0"}
    export.write_files(tmp_path, about, earlier)
    export.write_files(tmp_path, about, now)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["a.csv", "manifest.json"]

    export.write_files(tmp_path, about, earlier)
    (tmp_path / "d.csv").write_bytes(b"a note of mine")
    export.write_files(tmp_path, about, now)
    left = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["a.csv", "d.csv", "manifest.json"]


def test_a_result_whose_writing_was_cut_short_can_be_replaced(tmp_path: Path) -> None:
    about, files = {"simfs": "0"}, {name: name.encode() for name in ("a.csv", "b.csv", "c/d.csv")}
    for path in export.write_files(tmp_path, about, files)[2:]:
        path.unlink()
    assert all(path.exists() for path in export.write_files(tmp_path, about, files))


def test_someone_elses_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(OSError, match="not a simfs result"):
        write(tmp_path)
    with pytest.raises(OSError, match="is a file"):
        write(tmp_path / "thesis.tex")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_csv_has_a_header_and_a_row_a_point() -> None:
    lines = export.to_csv(CURVE).splitlines()
    assert len(lines) == 71
    assert "throughput_per_s" in lines[0]
