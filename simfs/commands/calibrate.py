"""`simfs calibrate`: the fit a scenario declares, with intervals and provenance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simfs.commands.common import (
    Output,
    ScenarioName,
    Seed,
    Settings,
    TextOrJson,
    Threads,
    as_json,
    loaded,
    notes,
    overrides,
    print_json,
    progress,
    refuse_file,
    write_file,
)
from simfs.commands.errors import plain_errors, refusals_of_runs


def calibrate(
    scenario: ScenarioName,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the fit and its provenance to this JSON file."
        ),
    ] = None,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
) -> None:
    """Fit the parameters that a scenario lists under `calibrate:`, and print how well the data determine them.

    Only the rows that the scenario names are used. It never fits more parameters than rows, and warns if one
    parameter can make up for another.
    """
    with plain_errors():
        from simfs.scenario import placed_rows

        refuse_file(out)
        asked = loaded(scenario, overrides(settings, seed))
        with progress() as report, refusals_of_runs():
            from simfs.experiments.identify import calibration
            from simfs.results.model import MeasuredRow

            rows = [MeasuredRow(**vars(row)) for row in placed_rows(asked.measured)]
            found = calibration(asked, rows, threads=threads, progress=report)
        if output is TextOrJson.JSON:
            print_json(found)
        else:
            from simfs.reports.calibrate import print_calibration

            print_calibration(found)
        if out is not None:
            write_file(out, f"{as_json(found)}\n".encode())
            notes().print(f"written to {out}")
