"""`simfs whatif`: one lock changed, everything else the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simfs.commands.common import (
    Quick,
    ScenarioName,
    Seed,
    Settings,
    Threads,
    Wide,
    overrides,
    plain_errors,
    progress,
    refusals_of_runs,
    refuse_out,
    refused,
)
from simfs.commands.experiment import (
    Output,
    TextOrJson,
    Variant,
    keys_of,
    most_runs,
    print_json,
    write_answer,
)
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.suggest import nearest

KINDS = ("semaphore", "mutex", "rwsem")
"""Kinds that a lock is replaced by where nothing is asked for: those under which a holder may sleep."""


def whatif(
    scenario: ScenarioName,
    variant: Variant = None,
    lock: Annotated[
        str | None,
        typer.Option(help="Change this lock class, named as in `simfs run`; else all are profiled."),
    ] = None,
    scale: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1000, help="Multiply the lock's hold time; may be repeated."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the lock away.")] = False,
    kind: Annotated[list[str] | None, typer.Option(help="Another kind of lock; may be repeated.")] = None,
    split: Annotated[
        list[int] | None,
        typer.Option(min=1, max=4096, help="So many locks instead of each; may be repeated."),
    ] = None,
    agcount: Annotated[
        list[int] | None, typer.Option(min=1, help="Another number of allocation groups; may be repeated.")
    ] = None,
    most: Annotated[
        float, typer.Option(min=1, max=100, help="Most hold time the profile removes, in per cent.")
    ] = 50,
    out: Annotated[Path | None, typer.Option(help="Write whatif.json, profile.coz and figures here.")] = None,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
    wide: Wide = False,
) -> None:
    """Say what one change to one lock would bring, under the same random streams.

    Without --lock and --agcount: the causal profile, the gain in throughput per per cent of each lock's hold
    time removed. With --lock alone, the usual changes are tried.
    """
    with plain_errors():
        from simfs.scenario import load

        refuse_out(out)
        given = overrides(settings, seed)
        asked = load(scenario, given)
        changes = _changes(lock, scale or [], remove, kind or [], split or [])
        with progress() as report, refusals_of_runs():
            from simfs.experiments.answer import fit, operation_of
            from simfs.experiments.points import the_point
            from simfs.experiments.whatif import what_if

            asked, _ = fit(asked, given=keys_of(given), quick=quick, threads=threads, progress=report)
            point = the_point(asked, variant)
            answer = what_if(
                point,
                asked.measure,
                scenario=asked.name,
                operation=operation_of([point]),
                changes=changes,
                agcounts=agcount or [],
                profile=lock is None and not agcount,
                removed=[most * step / 5 for step in range(1, 6)],
                most=most_runs(asked.measure, given),
                threads=threads,
                progress=report,
            )
        if output is TextOrJson.JSON:
            print_json(answer)
        else:
            from simfs.reports.layout import report_console
            from simfs.reports.whatif import print_what_if

            print_what_if(answer, report_console(wide=wide))
        if out is not None:
            from simfs.reports.coz import to_coz
            from simfs.reports.whatif import figure

            drawn = {"profile": figure(answer)} if answer.profile else {}
            profile = {"profile.coz": to_coz(answer)} if answer.profile else {}
            write_answer(out, "whatif", answer, figures=drawn, texts=profile)
    raise typer.Exit(answer.exit_code)


def _changes(
    lock: str | None, scales: list[float], remove: bool, kinds: list[str], splits: list[int]
) -> list[tuple[str, dict[str, object] | str]]:
    from simfs.vocabulary import vocabulary

    known = vocabulary().lock_kinds
    for kind in kinds:
        if kind not in known:
            raise ScenarioError(
                [Problem(f"--kind {kind}", "there is no lock of this kind", nearest(kind, known))]
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
