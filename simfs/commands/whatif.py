"""`simfs whatif`: one lock changed, everything else the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from simfs.commands.common import (
    Output,
    ScenarioName,
    Seed,
    Settings,
    TextOrJson,
    Threads,
    Wide,
    loaded,
    overrides,
    print_answer,
    refuse_out,
)
from simfs.commands.errors import plain_errors, refused
from simfs.commands.experiment import Question, QuickDecided, Variant, most_runs, question, write_answer
from simfs.scenario.suggest import KINDS_OF_LOCKS, choices

if TYPE_CHECKING:
    from simfs.experiments.whatif import WhatIf

KINDS = ("semaphore", "mutex", "rwsem")
"""Kinds that a lock is replaced by where nothing is asked for: those under which a holder may sleep."""


Lock = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Change this lock class, named as in `simfs run`; by default all are profiled."
    ),
]
Scales = Annotated[
    list[float] | None,
    typer.Option(
        min=0, max=1000, metavar="FACTOR", help="Multiply the lock's hold time by this; may be repeated."
    ),
]
Remove = Annotated[bool, typer.Option("--remove", help="Remove the lock.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND", help="Use this kind of lock instead (`simfs locks`); may be repeated."),
]
Splits = Annotated[
    list[int] | None,
    typer.Option(min=1, max=4096, metavar="N", help="Split each lock into this many; may be repeated."),
]
AllocationGroups = Annotated[
    list[int] | None,
    typer.Option(min=1, metavar="N", help="Use this number of allocation groups; may be repeated."),
]
Most = Annotated[
    float,
    typer.Option(
        min=1,
        max=100,
        metavar="PERCENT",
        help="With the profile: remove at most this part of the hold time, in per cent.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Write whatif.json, profile.coz and figures into this folder."
    ),
]


def whatif(
    scenario: ScenarioName,
    variant: Variant = None,
    lock: Lock = None,
    scale: Scales = None,
    remove: Remove = False,
    kind: Kinds = None,
    split: Splits = None,
    agcount: AllocationGroups = None,
    most: Most = 50,
    out: Out = None,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: QuickDecided = False,
    wide: Wide = False,
) -> None:
    """Say what one change to one lock would gain, with the same random numbers.

    Without --lock and --agcount it prints the causal profile: how much throughput is gained for each per cent of a
    lock's hold time that is removed. With --lock alone it tries the usual changes.
    """
    with plain_errors():
        refuse_out(out)
        given = overrides(settings, seed)
        asked = loaded(scenario, given)
        changes = _changes(lock, scale or [], remove, kind or [], split or [])
        with question(asked, given, variant, quick=quick, threads=threads) as about:
            tried = _Tried(changes, agcount or [], lock is None and not agcount, most)
            answer = _answer(about, tried, most_runs(about.asked.measure, given))
        print_answer(answer, output, lambda: _print(answer, wide=wide))
        if out is not None:
            _write(answer, out)
    raise typer.Exit(answer.exit_code)


class _Tried(NamedTuple):
    """Changes of single locks, numbers of allocation groups, and the profile up to `most` per cent of hold time."""

    changes: list[tuple[str, dict[str, object] | str]]
    agcounts: list[int]
    profile: bool
    most: float


def _answer(about: Question, tried: _Tried, most: int | None) -> WhatIf:
    from simfs.experiments.whatif import what_if

    return what_if(
        about.point,
        about.asked.measure,
        changes=tried.changes,
        agcounts=tried.agcounts,
        profile=tried.profile,
        removed=[tried.most * step / 5 for step in range(1, 6)],
        most=most,
        **about.titles,
        **about.options,
    )


def _print(answer: WhatIf, *, wide: bool) -> None:
    from simfs.reports.layout import report_console
    from simfs.reports.whatif import print_what_if

    print_what_if(answer, report_console(wide=wide))


def _write(answer: WhatIf, out: Path) -> None:
    from simfs.reports.coz import to_coz
    from simfs.reports.whatif import figure

    drawn = {"profile": figure(answer)} if answer.profile else {}
    profile = {"profile.coz": to_coz(answer)} if answer.profile else {}
    write_answer(out, "whatif", answer, figures=drawn, texts=profile)


def _changes(
    lock: str | None, scales: list[float], remove: bool, kinds: list[str], splits: list[int]
) -> list[tuple[str, dict[str, object] | str]]:
    from simfs.vocabulary import vocabulary

    known = vocabulary().lock_kinds
    for kind in kinds:
        if kind not in known:
            raise refused(
                f"--kind {kind}: there is no lock of this kind; {choices(kind, known, KINDS_OF_LOCKS)}"
            )
    changes: list[dict[str, object] | str] = [{"hold_scale": scale} for scale in scales]
    changes += ["remove"] if remove else []
    changes += [{"kind": kind} for kind in kinds]
    changes += [{"split": parts} for parts in splits]
    if lock is None:
        if changes:
            raise refused("--lock: say which lock is changed")
        return []
    if not changes:
        usual: list[dict[str, object] | str] = [{"hold_scale": 0.5}, {"split": 2}, {"split": 4}]
        usual += [{"kind": kind} for kind in KINDS]
        changes = [*usual, "remove"]
    return [(lock, change) for change in changes]
