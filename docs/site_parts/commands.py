"""Directives that keep the pages true: files that commands use, and commands that run when the site is built.

```{file} my.yaml          shows its content and puts it into the page's folder
```{run}                   runs the simfs command in that folder and shows what it prints
:figure: throughput        ... or shows this figure of it
:exit: 3                   the exit code it must have; any other is an error of the build
:lines: 12                 shows so many lines
```

On GitHub a reader sees the files and the commands.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from simfs import cli
from simfs.reports import export
from simfs.reports.figures import drawing
from simfs.results import run as runs
from simfs.results.store import Engine, Store

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from simfs.results.model import ScenarioResult

logger = logging.getLogger(__name__)
NEEDED = (
    *(
        "simfs.commands.run",
        "simfs.experiments.answer",
        "simfs.reports.figures.result",
        "simfs.reports.export",
    ),
    *("matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg", "pandas"),
)
"""What most commands need: they run in copies of this process, so all of them together import it once."""

LANGUAGES = {".yaml": "yaml", ".py": "python", ".csv": "text"}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str
    cpu_s: float


def command(words: list[str], folder: Path, figure: str | None = None) -> Ended:
    """Run `simfs` with these words in a folder, in a copy of this process; of its figures one is drawn, if any."""
    began = os.times()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _be_simfs(words, folder, out, errors, figure)
        _, status = os.waitpid(child, 0)
        ended = os.times()
        used = ended.children_user + ended.children_system - began.children_user - began.children_system
        return Ended(os.waitstatus_to_exitcode(status), _text(out), _text(errors), used)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


def _be_simfs(words: list[str], folder: Path, out: BinaryIO, errors: BinaryIO, asked: str | None) -> NoReturn:
    """Go on as that command; of a figure a page needs SVG alone, and of those it does not show the name."""
    code: object = 1
    try:
        sys.stdout, sys.stderr = (TextIOWrapper(file, "utf-8") for file in (out, errors))
        sys.argv = ["simfs", *words]
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        _remember_runs(folder / "runs")
        drawing.pictures = lambda name, figure: {
            f"figures/{name}.svg": drawing.svg(figure) if name == asked else b""
        }
        export._figures = lambda result: _only(asked, result)
        cli.main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # of this copy nothing may go on to build pages
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _only(asked: str | None, result: ScenarioResult) -> Iterator[tuple[str, bytes]]:
    """The figure of a result that is asked for, and the names of the others, which are not made."""
    for name, make in export.makers_of(result).items():
        yield f"figures/{name}.svg", drawing.svg(make()) if name == asked else b""


def _remember_runs(folder: Path) -> None:
    """Let a command take what another of the same page has run; a run says the same whenever it is run."""
    anew = runs._with_programs

    def remembering(run: Callable[..., str]) -> Engine:
        return Store(folder).remembering(anew(run))

    runs._with_programs = remembering


def setup(app: Sphinx) -> None:
    """Add the directives."""
    for name in NEEDED:
        import_module(name)
    app.add_directive("file", FileDirective)
    app.add_directive("run", RunDirective)


class _InFolder(SphinxDirective):
    """A directive with a folder for each page, which goes away with the build."""

    has_content = True

    @property
    def folder(self) -> Path:
        folders: dict[str, Any] = self.env.app.__dict__.setdefault("simfs_folders", {})
        name = self.env.docname
        if name not in folders:
            folders[name] = tempfile.TemporaryDirectory(prefix="simfs-docs-")
        return Path(folders[name].name)

    def block(self, text: str, language: str) -> nodes.literal_block:
        return nodes.literal_block(text, text, language=language)


class FileDirective(_InFolder):
    """A file of the reader's, shown and written."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the file and show it under its name."""
        name, text = self.arguments[0], "\n".join(self.content) + "\n"
        (self.folder / name).write_text(text, "utf-8")
        caption = nodes.caption("", "", nodes.literal(name, name))
        box = nodes.container("", caption, self.block(text, LANGUAGES[Path(name).suffix]))
        box["literal_block"] = True
        box["classes"] = ["literal-block-wrapper"]
        return [box]


class RunDirective(_InFolder):
    """A command, with what it prints or one of its figures."""

    option_spec = {  # noqa: RUF012
        "figure": directives.unchanged_required,
        "exit": directives.nonnegative_int,
        "lines": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Run the command and show it."""
        asked = " ".join(line.strip().removesuffix("\\") for line in self.content)
        name, *words = shlex.split(asked)
        if name != "simfs":
            raise self.error(f"only simfs commands can be run, not {name}")
        figure = self.options.get("figure")
        out = self.folder / f"figure-{self.env.new_serialno('simfs')}"
        if figure and "--out" in words:  # of a command that must have one
            out = self.folder / words[words.index("--out") + 1]
        elif figure:
            words += ["--out", str(out)]
        done = command(words, self.folder, figure)
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"`{asked}` ended with {done.returncode}: {done.stderr or done.stdout}")
        logger.info("%s: %.1f s: %s", self.env.docname, done.cpu_s, asked)
        shown = "\n".join(["$ " + self.content[0], *self.content[1:]])
        answer = self.picture(out, figure, asked) if figure else self.printed(done)
        return [self.block(shown, "console"), answer]

    def printed(self, done: Ended) -> nodes.Node:
        """What the command printed, without blanks at the ends of lines."""
        text = re.sub(r"[ \t]+$", "", done.stdout or done.stderr, flags=re.MULTILINE).strip("\n")
        lines = text.splitlines()
        most = self.options.get("lines", len(lines))
        return self.block("\n".join(lines[:most] + ["..."] * (len(lines) > most)), "text")

    def picture(self, out: Path, figure: str, command: str) -> nodes.Node:
        """A figure that the command wrote."""
        file = out / "figures" / f"{figure}.svg"
        if not file.exists():
            known = sorted(path.stem for path in file.parent.glob("*.svg"))
            raise self.error(f"`{command}` has no figure {figure}; it has {', '.join(known)}")
        pictures = Path(self.env.srcdir) / "generated" / "pictures"
        pictures.mkdir(parents=True, exist_ok=True)
        name = f"{self.env.docname.replace('/', '-')}-{out.name}-{figure}.svg"
        (pictures / name).write_bytes(file.read_bytes())
        return nodes.image(uri=f"/generated/pictures/{name}", alt=command)
