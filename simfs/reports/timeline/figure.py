"""The picture of a time line: a row for each task, strips of the CPUs, the queue of the lock in focus.

Full height is on a CPU or with the lock, half height is off CPU. Colours can be told apart by the colour-blind,
hatches and heights in greyscale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from simfs.experiments.scene import Scene
from simfs.machine.labels import name_of, short_name_of
from simfs.machine.time import Time
from simfs.reports.figures.drawing import new_figure, style
from simfs.reports.numbers import folded
from simfs.reports.timeline.words import reason, sentence
from simfs.results.timeline import Doing, Interval, State, state_of

ROWS = 40
"""Tasks drawn at most, of all variants together."""
STRIPS = 24
"""CPUs drawn at most, of all variants together; of several two thirds of that."""
ARROWS = 120
"""Hand-overs drawn at most in a panel: more would hide the rows."""
WIDTH, ROW, QUEUE = 7.2, 0.14, 0.42
"""Inches: of the figure, of a row, of the queue."""
GREY = "#4D4D4D"


class Look(NamedTuple):
    """How a state is drawn."""

    colour: str
    height: float
    hatch: str = ""


LOOKS = {
    State.HOLDS: Look("#0072B2", 0.86),
    State.GRANTED: Look("#D55E00", 0.86, "//////"),
    State.STALLED: Look("#000000", 0.86, "......"),
    State.SPINS: Look("#CC79A7", 0.86, "\\\\\\\\\\\\"),
    State.RUNS: Look("#D4D4D4", 0.86),
    State.WAITS: Look("#F0E442", 0.42),
    State.WAITS_ELSEWHERE: Look("#F0E442", 0.42, "xxxxxx"),
    State.RUNNABLE: Look("#56B4E9", 0.42, "||||||"),
    State.DEVICE: Look("#009E73", 0.42),
    State.SLEEPS: Look("#BBBBBB", 0.08),
}
"""All states that are drawn, in the order of the legend."""
SWITCH = Look("#8C8C8C", 0.42)


def figure(scenes: Sequence[Scene]) -> Figure:
    """The scenes below each other on one time axis."""
    with style():
        rows = [scene.rows(ROWS // len(scenes)) for scene in scenes]
        cpus = [scene.cpu_rows(strips(len(scenes))) for scene in scenes]
        heights: list[float] = []
        for tasks, own in zip(rows, cpus, strict=True):
            heights += [QUEUE, max(len(tasks), 2) * ROW, max(len(own), 1) * ROW]
        fig = new_figure(WIDTH, sum(heights) + 0.62 * len(scenes) + 0.85)
        fig.set_layout_engine("constrained", hspace=0.0, h_pad=0.02)
        axes = fig.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        scale, unit = _unit(max(scene.line.end - scene.line.begin for scene in scenes))
        seen: set[State] = set()
        for at, scene in enumerate(scenes):
            panel = _Panel(scene, scale, rows[at], cpus[at])
            panel.draw(*axes[3 * at : 3 * at + 3])
            seen |= panel.seen
        for each in axes[:-1]:
            each.tick_params(axis="x", length=0)
        axes[-1].set_xlabel(f"time since the window's begin ({unit})")
        axes[-1].set_xlim(0, max(scene.line.end - scene.line.begin for scene in scenes) / scale)
        _legend(fig, seen)
    return fig


def strips(scenes: int) -> int:
    """How many CPUs each of several scenes may have: a page is no longer for it."""
    return STRIPS if scenes == 1 else STRIPS * 2 // 3 // scenes


def _unit(length: Time) -> tuple[float, str]:
    return (1e9, "ms") if length >= 2e9 else (1e6, "us")


def _legend(fig: Figure, seen: set[State]) -> None:
    handles: list[Patch] = [
        Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0, label=state.value)
        for state, look in LOOKS.items()
        if state in seen
    ]
    handles.append(Patch(facecolor=SWITCH.colour, label="CPU switches"))
    fig.legend(handles=handles, loc="outside lower center", ncols=3, handlelength=2.2, handleheight=1.1)


class _Panel:
    """One scene."""

    def __init__(self, scene: Scene, scale: float, tasks: list[int], cpus: list[int]) -> None:
        self.scene, self.scale, self.tasks, self.cpus = scene, scale, tasks, cpus
        self.row = {task: at for at, task in enumerate(tasks)}
        self.strip = {cpu: at for at, cpu in enumerate(cpus)}
        self.seen: set[State] = set()

    def draw(self, queue: Axes, tasks: Axes, cpus: Axes) -> None:
        queue.set_title(folded(f"{self.scene.title}: {sentence(self.scene)}", 110), loc="left", fontsize=8)
        self._queue(queue)
        self._tasks(tasks)
        self._cpus(cpus)

    def _x(self, time: Time) -> float:
        return (time - self.scene.line.begin) / self.scale

    def _queue(self, axes: Axes) -> None:
        line, locks = self.scene.line, self.scene.locks
        top = self._area(axes, line.waiting(locks), State.WAITS)
        self._area(axes, line.spinning(locks), State.SPINS)
        axes.set_ylim(0, top * 1.1)
        axes.set_yticks([0, top])
        axes.set_ylabel("queue")
        axes.grid(visible=False)

    def _area(self, axes: Axes, steps: Sequence[tuple[Time, int]], state: State) -> int:
        """How many tasks are in a state, over time; returns the most of them, at least 1."""
        times = [*(self._x(time) for time, _ in steps), self._x(self.scene.line.end)]
        lengths = [*(n for _, n in steps), steps[-1][1]]
        look = LOOKS[state]
        axes.fill_between(
            times,
            lengths,
            step="post",
            facecolor=look.colour,
            hatch=look.hatch,
            edgecolor="white",
            linewidth=0,
        )
        if state is State.WAITS:  # all of them; an edge around the others would hide short moments
            axes.step(times, lengths, where="post", color=GREY, linewidth=0.7)
        return max(*lengths, 1)

    def _tasks(self, axes: Axes) -> None:
        more = len(self.scene.order) - len(self.tasks)
        label = f"tasks ({more} more)" if more else "tasks"
        _rows(axes, [name_of(task) for task in self.tasks], label)
        for task, at in self.row.items():
            self._bars(axes, at, self._states(self.scene.line.tasks[task]))
        self._reasons(axes)
        if self.scene.worst and self.scene.worst[1] in self.row:
            axes.get_yticklabels()[self.row[self.scene.worst[1]]].set_fontweight("bold")
        arrows = [over for over in self.scene.line.hand_overs if over.lock == self.scene.focus]
        for over in arrows if len(arrows) <= ARROWS else ():
            if over.giver in self.row and over.taker in self.row:
                tail = (self._x(over.released), self.row[over.giver])
                head = (self._x(over.acquired), self.row[over.taker])
                axes.annotate("", head, tail, arrowprops=ARROW)

    def _reasons(self, axes: Axes) -> None:
        """Why a holder is off CPU, where there is room."""
        least = (self.scene.line.end - self.scene.line.begin) / 6
        for task, at in self.row.items():
            for each in self.scene.line.tasks[task]:
                if each.end - each.begin >= least and state_of(each, self.scene.locks) is State.STALLED:
                    x = self._x((each.begin + each.end) // 2)
                    axes.text(x, at, reason(each), ha="center", va="center", fontsize=5.5, bbox=PLATE)

    def _states(self, intervals: Iterable[Interval]) -> Iterator[tuple[State, Time, Time]]:
        """States with their ends, neighbours of one state put together."""
        last: tuple[State, Time, Time] | None = None
        for each in intervals:
            state = state_of(each, self.scene.locks)
            if last and last[0] is state:
                last = (state, last[1], each.end)
                continue
            if last:
                yield last
            last = (state, each.begin, each.end)
        if last:
            yield last

    def _bars(self, axes: Axes, at: int, states: Iterable[tuple[State, Time, Time]]) -> None:
        spans: dict[State, list[tuple[float, float]]] = {}
        for state, begin, end in states:
            spans.setdefault(state, []).append((self._x(begin), (end - begin) / self.scale))
        for state, parts in spans.items():
            if state in LOOKS:
                _bar(axes, at, parts, LOOKS[state])
                self.seen.add(state)

    def _cpus(self, axes: Axes) -> None:
        _rows(axes, [str(cpu) for cpu in self.cpus], "CPUs")
        for cpu, at in self.strip.items():
            switches = [ran for ran in self.scene.line.cpus[cpu] if ran.task is None and not ran.idle]
            _bar(axes, at, [(self._x(r.begin), (r.end - r.begin) / self.scale) for r in switches], SWITCH)
        strips: dict[int, list[tuple[State, Time, Time]]] = {cpu: [] for cpu in self.cpus}
        for intervals in self.scene.line.tasks.values():
            for each in intervals:
                if each.doing is Doing.RUN and each.cpu in strips:
                    strips[each.cpu].append((state_of(each, self.scene.locks), each.begin, each.end))
        for cpu, states in strips.items():
            self._bars(axes, self.strip[cpu], states)
        self._names(axes)

    def _names(self, axes: Axes) -> None:
        """The numbers of tasks on the strips, where there is room."""
        least = (self.scene.line.end - self.scene.line.begin) / 40
        for cpu, at in self.strip.items():
            for ran in self.scene.line.cpus[cpu]:
                if ran.task is not None and ran.end - ran.begin >= least:
                    x = self._x((ran.begin + ran.end) // 2)
                    axes.text(
                        x, at, short_name_of(ran.task), ha="center", va="center", fontsize=5.5, bbox=PLATE
                    )


ARROW = {
    "arrowstyle": "-|>,head_width=0.12,head_length=0.25",
    "color": "black",
    "linewidth": 0.5,
    "shrinkA": 0,
    "shrinkB": 0,
}
PLATE = {"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"}


def _rows(axes: Axes, names: list[str], label: str) -> None:
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.set_ylabel(label)
    axes.grid(visible=False, axis="y")


def _bar(axes: Axes, at: int, parts: list[tuple[float, float]], look: Look) -> None:
    edge: dict[str, Any] = {"edgecolor": "white", "hatch": look.hatch} if look.hatch else {}
    axes.broken_barh(parts, (at - look.height / 2, look.height), facecolor=look.colour, linewidth=0, **edge)
