"""The command line. Each command is a function in `simfs/commands`; `COMMANDS` lists them."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer.core import TyperCommand, TyperGroup

from simfs.commands.errors import EXIT_CODES, FAILED, complain, plain_errors
from simfs.commands.interrupts import end_at_the_second
from simfs.scenario.reading.files import NO_CODE

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter


@dataclass(frozen=True)
class Command:
    """A command: its function in `simfs.commands`, what it does in a line, and an example."""

    home: str
    about: str
    example: str

    def load(self, name: str) -> TyperCommand:
        """Import it."""
        module, function = self.home.split(":")
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        command = getattr(import_module(f"simfs.commands.{module}"), function)
        one.command(name, short_help=self.about, epilog=f"Example: {self.example}")(command)
        return cast(TyperCommand, typer.main.get_command(one))


COMMANDS = {
    "run": Command(
        "run:run",
        "Predict throughput, beside measured data if there is any.",
        "simfs run compile-24 --set workload.tasks=24 --out results/compile-24",
    ),
    "sweep": Command(
        "sweep:sweep",
        "Run a scenario at many points; can be resumed.",
        "simfs sweep lock-cycle --quick --vary workload.tasks=1..24:log --design sobol --points 4 --out sweep",
    ),
    "merge": Command(
        "sweep:merge", "Put the shards of a sweep together.", "simfs merge shard-1 shard-2 --out whole"
    ),
    "whatif": Command(
        "whatif:whatif",
        "Say what one change to one lock would gain.",
        "simfs whatif compile-24 --variant xfs --quick",
    ),
    "advise": Command(
        "advise:advise",
        "Find the best allocation groups, directories and lock.",
        "simfs advise compile-24 --variant xfs --quick",
    ),
    "new": Command("new:new", "Write a commented scenario to start from.", "simfs new my-lock --about lock"),
    "explain": Command(
        "explain:explain",
        "Say what a scenario simulates, and in which order locks are taken.",
        "simfs explain compile-24 --variant xfs",
    ),
    "why": Command(
        "why:why",
        "Say why tasks wait, down to the reason.",
        "simfs why compile-24 --variant xfs --quick",
    ),
    "calibrate": Command(
        "calibrate:calibrate",
        "Fit the parameters that a scenario lists under `calibrate:`.",
        "simfs calibrate compile-24 --out fit.json",
    ),
    "sensitivity": Command(
        "sensitivity:sensitivity",
        "Rank the sourced numbers by their effect on a prediction.",
        "simfs sensitivity lock-cycle --variant mutex --quick --trajectories 4 --parameter 'machine.costs.*'",
    ),
    "compare": Command(
        "compare:compare",
        "Compare two results, or a real machine's output with one.",
        "simfs compare lock-cycle:semaphore lock-cycle:mutex --quick --set workload.tasks=16",
    ),
    "import": Command(
        "import_:import_",
        "Make a data set from the output of perf, fio, fs_mark, ...",
        "simfs import perf.txt --tasks 8 --out measured.yaml",
    ),
    "measure": Command(
        "measure:measure",
        "Measure this machine, for `machine:` of scenarios.",
        "simfs measure --quick -o my-machine.yaml",
    ),
    "observe": Command(
        "observe:observe",
        "Say what to measure on a real machine to test a prediction.",
        "simfs observe lock-cycle --variant mutex --quick --set workload.tasks=4 --load './my-loop 4'",
    ),
    "trace": Command(
        "trace:trace",
        "Print every event at one point of a scenario.",
        "simfs trace lock-cycle --variant semaphore --set workload.tasks=2 --length '20 us'",
    ),
    "timeline": Command(
        "timeline:timeline",
        "Draw what tasks and CPUs do around the worst wait.",
        "simfs timeline lock-cycle --variant semaphore --variant mutex -o convoy.png",
    ),
    "lab": Command("lab:lab", "Explore scenarios with sliders, in a browser.", "simfs lab --no-browser"),
    "report": Command(
        "report:report",
        "Write one page for a browser with the results of a run.",
        "simfs report results -o report.html",
    ),
    "validate": Command(
        "validate:validate",
        "Compare predictions with measured data.",
        "simfs validate xfs-rangelock-userspace-2019 --quick --out results/validate",
    ),
    "check": Command(
        "check:check",
        "Test a lock of your own.",
        "simfs check teachlocks.py:Sleeping",
    ),
    "lesson": Command(
        "lesson:lesson",
        "Ask a question about locks, and score a guess.",
        "simfs lesson knee -s 7 --guess 1:10k,8:60k",
    ),
    "list": Command("about:list_", "List scenarios, measured data and models.", "simfs list xfs"),
    "locks": Command("locks:locks", "List all locks and their policies.", "simfs locks"),
    "schema": Command(
        "about:schema", "Print the JSON Schema of scenarios.", "simfs schema > scenario.schema.json"
    ),
    "doctor": Command("about:doctor", "Check this installation, or a measured machine.", "simfs doctor"),
}
"""The commands by name."""


GROUPS = {
    "Predict": ("run", "sweep", "merge", "compare", "report"),
    "Understand": ("explain", "why", "timeline", "trace", "lab"),
    "Decide": ("advise", "whatif", "sensitivity"),
    "Write and look up": ("new", "check", "list", "locks", "schema"),
    "Real machines": ("validate", "calibrate", "import", "measure", "observe"),
    "Learn and mend": ("lesson", "doctor"),
}
"""The commands by what they are for, as `simfs --help` shows them."""

BEGIN = """\
Begin with: simfs run compile-24 --quick. Then `simfs why` says why tasks wait there, `simfs new` begins a scenario of
your own, and `simfs lesson` teaches. `simfs COMMAND --help` has an example of each command.
"""


class LazyGroup(TyperGroup):
    """Imports a command when it is used: help and completion of the others come at once."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> TyperCommand | None:
        """Import a command."""
        return COMMANDS[cmd_name].load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands below the options, by what they are for."""
        width = max(map(len, COMMANDS))
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), COMMANDS[name].about) for name in names])

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str, TyperCommand | None, list[str]]:
        """Find the command that arguments begin with; refuse an unknown one with the nearest."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from simfs.scenario.suggest import nearest

            near = nearest(args[0], COMMANDS)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{near}'?" if near else ""))
        return args[0], self.get_command(ctx, args[0]), args[1:]


app = typer.Typer(
    name="simfs",
    cls=LazyGroup,
    help="Predict how much filesystem throughput is lost to lock contention, and where.",
    epilog=f"{BEGIN}\n{EXIT_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Start the command line; what a command lets through is told as one line too."""
    if sys.stdout is None:
        complain("standard output is closed: send it to /dev/null instead")
        sys.exit(FAILED)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a table is worth more than one character of it
    _start_lightly()
    end_at_the_second()
    try:
        with plain_errors():
            app(prog_name="simfs")
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def _start_lightly() -> None:
    """Look for garbage seldom, as what is imported stays, and not at exit; sums are too small for threads of BLAS.

    Nor does pydantic look for plugins in all packages that are installed.
    """
    gc.set_threshold(200_000, 20, 100)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _version(wanted: bool) -> None:
    if wanted:
        from simfs import __version__

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
