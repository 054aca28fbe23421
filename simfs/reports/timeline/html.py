"""A time line to step through in a browser: a fragment of HTML with its data, which needs nothing from outside.

`fragment` is one scene; a page holds `STYLE` and `SCRIPT` once, then any number of fragments. `page` is such a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from simfs.experiments.scene import Scene
from simfs.machine.labels import name_of
from simfs.machine.time import Time
from simfs.reports.timeline.figure import LOOKS, ROWS, SWITCH, Look, strips
from simfs.reports.timeline.words import sentence
from simfs.results.timeline import Doing, Interval, State, state_of

_HERE = Path(__file__).parent
STYLE = (_HERE / "timeline.css").read_text(encoding="utf-8")
"""The style sheet of all fragments."""
SCRIPT = (_HERE / "timeline.js").read_text(encoding="utf-8")
"""The player: `simfsTimeline(element)` starts a fragment."""

HATCHES = {"/": "M0,6L6,0", "\\": "M0,0L6,6", ".": "M1,1h2v2h-2z", "x": "M0,0L6,6M0,6L6,0", "|": "M3,0V6"}
NAMES = {"/": "up", "\\": "down", ".": "dots", "x": "cross", "|": "upright"}
BUTTONS = (
    ("first", "|<", "to the begin"),
    ("back", "<", "one step back"),
    ("play", "play", "play or pause"),
    ("forward", ">", "one step forward"),
    ("last", ">|", "to the end"),
    ("worst", "longest wait", "to the longest wait"),
    ("closer", "+", "closer"),
    ("wider", "-", "wider"),
)


def page(scenes: Sequence[Scene], title: str = "simfs timeline") -> str:
    """A whole document with the scenes below each other."""
    parts = "\n".join(fragment(scene, f"scene-{at}", len(scenes)) for at, scene in enumerate(scenes))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>body {{ margin: 1em; }}\n"
        "@media (prefers-color-scheme: dark) { body { background: #1b1b1b; } }\n"
        f"{STYLE}</style><script>{SCRIPT}</script></head><body>\n{parts}\n</body></html>\n"
    )


def fragment(scene: Scene, name: str, of: int = 1) -> str:
    """One scene, called `name` in the page; `of` so many that share the rows."""
    document = json.dumps(data(scene, name, of), separators=(",", ":")).replace("<", "\\u003c")
    said = f"{sentence(scene)} Click a task or use the arrow keys."
    seen = legend(state for state in LOOKS if scene.times[state])
    start = (
        f'<script type="application/json">{document}</script>'
        f'<script>simfsTimeline(document.getElementById("{name}"))</script>'
    )
    return frame(name, scene.title, said, seen + start)


def frame(name: str, title: str, said: str, below: str) -> str:
    """The player without its data."""
    buttons = "".join(
        f'<button type="button" name="{act}" title="{told}" aria-label="{told}">{escape(sign)}</button>'
        for act, sign, told in BUTTONS
    )
    return (
        f'<section class="simfs-timeline" id="{name}"><h2>{escape(title)}</h2><p>{escape(said)}</p>'
        f'<div class="controls">{buttons}'
        '<input type="range" min="0" max="0" value="0" aria-label="time in the window">'
        '<output class="clock"></output></div><div class="why" aria-live="polite"></div>'
        f'<div class="scroll"><svg role="group" aria-label="time line of {escape(title)}"></svg></div>'
        f"{below}</section>"
    )


def drawn() -> dict[str, Any]:
    """How states look, for a player."""
    return {
        "looks": [_look(state.value, LOOKS.get(state)) for state in State],
        "areas": {
            "queue": _look("waiting", LOOKS[State.WAITS]),
            "spinning": _look("spinning", LOOKS[State.SPINS]),
        },
        "switching": _look("switching", SWITCH),
        "hatches": {NAMES[sign]: path for sign, path in HATCHES.items()},
    }


def data(scene: Scene, name: str, of: int = 1) -> dict[str, Any]:
    """What the player draws; times in ns since the window's begin."""
    line, states = scene.line, list(State)
    locks = sorted(
        {lock for parts in line.tasks.values() for part in parts for lock in (*part.waits, *part.holds)}
    )
    number = {lock: at for at, lock in enumerate(locks)}
    rows = scene.rows(ROWS // of)

    def when(time: Time) -> int:
        return (min(time, line.end) - line.begin) // 1000

    def part(each: Interval) -> list[Any]:
        sets = ([number[lock] for lock in each.waits], [number[lock] for lock in each.holds])
        what = (states.index(state_of(each, scene.locks)), list(Doing).index(each.doing))
        return [when(each.begin), when(each.end), what[0], what[1], each.cpu, *sets, each.woken_by]

    overs = [over for over in line.hand_overs if over.lock == scene.focus]
    return {
        "id": name,
        "length": when(line.end),
        "locks": locks,
        **drawn(),
        "tasks": [
            {"id": task, "name": name_of(task), "parts": [part(each) for each in parts]}
            for task, parts in line.tasks.items()
            if parts and (task in rows or any(each.doing is not Doing.AWAY for each in parts))
        ],
        "rows": rows,
        "cpus": [_strip(scene, cpu, states) for cpu in scene.cpu_rows(strips(of))],
        "queue": [[when(time), n] for time, n in line.waiting(scene.locks)],
        "spinning": [[when(time), n] for time, n in line.spinning(scene.locks)],
        "handOvers": [[o.giver, max(when(o.released), 0), o.taker, when(o.acquired)] for o in overs],
        "moments": _moments(scene, rows, when),
        "start": _start(scene, rows, when),
    }


def _look(name: str, look: Look | None) -> dict[str, Any]:
    if look is None:
        return {"name": name, "colour": "none", "height": 0, "hatch": ""}
    return {
        "name": name,
        "colour": look.colour,
        "height": look.height,
        "hatch": NAMES.get(look.hatch[:1], ""),
    }


def _strip(scene: Scene, cpu: int, states: list[State]) -> dict[str, Any]:
    """What a CPU does: [begin, end, task or None, state, whether the task's number fits in]."""
    line, parts = scene.line, list[list[Any]]()
    for ran in line.cpus[cpu]:
        begin, end = (ran.begin - line.begin) // 1000, (ran.end - line.begin) // 1000
        if ran.task is None:
            if not ran.idle:
                parts.append([begin, end, None, None, False])
            continue
        for each in line.tasks[ran.task]:
            if each.doing is Doing.RUN and each.cpu == cpu and ran.begin <= each.begin < ran.end:
                state = states.index(state_of(each, scene.locks))
                own = [(each.begin - line.begin) // 1000, (each.end - line.begin) // 1000]
                parts.append([*own, ran.task, state, True])
    return {"cpu": cpu, "parts": parts}


def _moments(scene: Scene, rows: Iterable[int], when: Callable[[Time], int]) -> list[int]:
    """When something happens to the lock in focus or to who has to do with it."""
    times: set[int] = set()
    for task in rows:
        last: State | None = None
        for each in scene.line.tasks[task]:
            state = state_of(each, scene.locks)
            if state is not last:
                times.add(when(each.begin))
            last = state
    return sorted(times)


def _start(scene: Scene, rows: Sequence[int], when: Callable[[Time], int]) -> dict[str, int]:
    """Where the player starts: late in the longest wait, or at the begin."""
    if scene.worst and scene.worst[1] in scene.line.tasks:
        _, task, begin, end = scene.worst
        first = max(begin, scene.line.begin)
        return {"task": task, "time": when(first + (min(end, scene.line.end) - first) // 2)}
    return {"task": rows[0] if rows else min(scene.line.tasks, default=0), "time": 0}


def legend(states: Iterable[State]) -> str:
    """Names of states with their looks."""
    items = []
    for state in states:
        look = LOOKS[state]
        sign = look.hatch[:1]
        hatch = f'<path d="{HATCHES[sign]}" stroke="white" fill="none"/>' if sign else ""
        box = f'<rect width="12" height="12" fill="{look.colour}"/>'
        items.append(
            f'<li><svg width="12" height="12" viewBox="0 0 {6 if sign else 12} {6 if sign else 12}" '
            f'aria-hidden="true">{box}{hatch}</svg>{escape(state.value)}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>'
