"""The command line. Each command is a function in `simfs/commands`; `COMMANDS` lists them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated

import typer

from simfs import __version__
from simfs.commands.about import doctor, list_, schema
from simfs.commands.advise import advise
from simfs.commands.calibrate import calibrate
from simfs.commands.common import EXIT_CODES, FAILED, complain, plain_errors
from simfs.commands.compare import compare
from simfs.commands.locks import locks
from simfs.commands.run import run
from simfs.commands.sensitivity import sensitivity
from simfs.commands.sweep import merge, sweep
from simfs.commands.trace import trace
from simfs.commands.validate import validate
from simfs.commands.whatif import whatif
from simfs.scenario.files import NO_CODE

COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "run": (run, "simfs run compile-24 --set workload.tasks=24 --out results/compile-24"),
    "sweep": (
        sweep,
        "simfs sweep lock-cycle --quick --vary workload.tasks=1..24:log --design sobol --points 4 --out sweep",
    ),
    "merge": (merge, "simfs merge shard-1 shard-2 --out whole"),
    "whatif": (whatif, "simfs whatif compile-24 --variant xfs --quick"),
    "advise": (advise, "simfs advise compile-24 --variant xfs --quick"),
    "calibrate": (calibrate, "simfs calibrate compile-24 --out fit.json"),
    "sensitivity": (
        sensitivity,
        "simfs sensitivity lock-cycle --variant mutex --quick --trajectories 4 --parameter 'machine.costs.*'",
    ),
    "compare": (
        compare,
        "simfs compare lock-cycle:semaphore lock-cycle:mutex --quick --set workload.tasks=16",
    ),
    "trace": (trace, "simfs trace lock-cycle --variant semaphore --set workload.tasks=2 --length '20 us'"),
    "validate": (validate, "simfs validate xfs-rangelock-userspace-2019 --quick --out results/validate"),
    "list": (list_, "simfs list"),
    "locks": (locks, "simfs locks"),
    "schema": (schema, "simfs schema > scenario.schema.json"),
    "doctor": (doctor, "simfs doctor"),
}
"""Name, function and example of each command, in the order of `simfs --help`."""

app = typer.Typer(
    name="simfs",
    help="Predict how much filesystem throughput is lost to lock contention, and where.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, (_command, _example) in COMMANDS.items():
    app.command(_name, epilog=f"Example: {_example}")(_command)


def main() -> None:
    """Start the command line; what a command lets through is told as one line too."""
    if sys.stdout is None:
        complain("standard output is closed: send it to /dev/null instead")
        sys.exit(FAILED)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a table is worth more than one character of it
    try:
        with plain_errors():
            app(prog_name="simfs")
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simfs {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    no_code: Annotated[
        bool,
        typer.Option(
            "--no-code", help=f"Refuse scenarios that bring Python code; as {NO_CODE}=1 in the environment."
        ),
    ] = False,
) -> None:
    if no_code:
        os.environ[NO_CODE] = "1"
