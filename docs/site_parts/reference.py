"""Reference pages that are written from the code and the data: the command line, the models, the measured data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from typer.main import get_command

from simfs.cli import app
from simfs.scenario import paths
from simfs.scenario.left_out import left_out
from site_parts import operations

KINDS = {
    "machines": "Machines",
    "kernels": "Kernels",
    "filesystems": "Filesystems",
    "devices": "Devices",
    "workloads": "Workloads",
}


VALUES, NAMES = ("value", "type", "is"), ("name", "what", "since")
"""What a sourced entry calls its value, and an entry of a list itself."""


def write(folder: Path) -> None:
    """Write the pages into `folder`; what is the same stays untouched, so that Sphinx does not read it again."""
    pages = {
        "cli.md": cli(),
        "operations.md": operations.page(),
        "models.md": models(),
        "left-out.md": left_out_table(),
    }
    pages |= {f"models/{kind}/{file.stem}.md": model(file) for kind in KINDS for file in files(kind)}
    for name, text in pages.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


# ── The command line ──


def cli() -> str:
    """Every command with its options, as `--help` says it."""
    group: Any = get_command(app)
    parts = [
        "# Command line\n\nWritten from the program itself. `simfs COMMAND --help` says the same; "
        "[exit codes](../scenarios.md#exit-codes) are those of all commands.\n"
    ]
    for name, command in group.commands.items():
        parts.append(described(command, command.make_context(name, [], resilient_parsing=True)))
    return "\n".join(parts)


def described(command: Any, context: Any) -> str:  # noqa: ANN401
    """One command; Typer has classes of its own for these."""
    lines = [f"## simfs {context.info_name}", "", f"```text\n{usage(command, context)}\n```", ""]
    parts = [*(command.help or "").split("\n\n"), command.epilog or ""]
    lines += [paragraph(part) for part in parts if part]
    rows = [
        param.get_help_record(context) or argument(param, context) for param in command.get_params(context)
    ]
    lines += ["| option | meaning |", "| --- | --- |"]
    lines += [f"| `{one_line(name)}` | {cell(text)} |" for name, text in filter(None, rows)]
    return "\n".join([*lines, ""])


def usage(command: Any, context: Any) -> str:  # noqa: ANN401
    """The first line of a command's help."""
    return " ".join(["simfs", context.info_name, *command.collect_usage_pieces(context)])


def argument(param: Any, context: Any) -> tuple[str, str]:  # noqa: ANN401
    """An argument, which has no record of its own."""
    return param.make_metavar(context), str(getattr(param, "help", "") or "")


def paragraph(text: str) -> str:
    """A paragraph of a docstring; an example becomes a block."""
    words = " ".join(text.replace("\b", "").split())
    if words.startswith("Example:"):
        return f"Example:\n\n```sh\n{words.removeprefix('Example:').strip()}\n```\n"
    return words + "\n"


def one_line(text: str) -> str:
    """Code in a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return one_line(text).replace("<", "&lt;")


# ── The models ──


def files(kind: str) -> list[Path]:
    """The profiles of one kind."""
    return sorted((paths.MODELS / kind).glob("*.yaml"))


def models() -> str:
    """The list of all profiles."""
    lines = [
        "# The numbers of the models\n",
        "Every number in `models/` with its range and source. [Where the numbers come from](../models.md) says how",
        "they were obtained and what *measured*, *derived*, *read* and *recalled* mean.\n",
        "```{toctree}\n:maxdepth: 1\n:titlesonly:\n",
    ]
    lines += [f"models/{kind}/{file.stem}" for kind in KINDS for file in files(kind)]
    return "\n".join([*lines, "```", ""])


def model(file: Path) -> str:
    """A table of all sourced numbers of one profile."""
    data = YAML(typ="safe").load(file.read_text("utf-8"))
    kind = KINDS[file.parent.name].lower().removesuffix("s")
    lines = [
        f"# {file.stem} ({kind})\n",
        f"{data.get('title', '')}\n\nFrom `models/{file.parent.name}/{file.name}`.\n",
        "| name | value | unit | range | evidence | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(name, number) for name, number in numbers(data)]
    return "\n".join([*lines, ""])


def numbers(data: object, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every number of a profile, under its dotted name."""
    if isinstance(data, Mapping):
        if "source" in data and any(word in data for word in VALUES):
            yield name, data
            return
        for key, value in data.items():
            yield from numbers(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            entry = value if isinstance(value, Mapping) else {}
            own = next((entry[word] for word in NAMES if word in entry), place)
            yield from numbers(value, f"{name}.{own}")


def left_out_table() -> str:
    """What the models leave out; a part of docs/machine.md."""
    lines = ["| left out | where | because |", "| --- | --- | --- |"]
    lines += [f"| {cell(each.what)} | {each.where} | {cell(each.why)} |" for each in left_out()]
    return "\n".join([*lines, ""])


def row(name: str, number: Mapping[str, Any]) -> str:
    """One number."""
    value = next(number[word] for word in VALUES if word in number)
    low_high = " to ".join(map(str, number.get("range", ())))
    cells = [
        f"`{name}`",
        value,
        number.get("unit", ""),
        low_high,
        number.get("evidence", ""),
        number["source"],
    ]
    return "| " + " | ".join(cell(str(each)) for each in cells) + " |"
