"""Write the numbers on the prediction pages: docs/predictions.md and docs/predictions/*.md.

    simfs validate --out results/validate && python docs/predictions.py results/validate

takes the rows and fits of that run into docs/predictions.csv and docs/predictions-fits.csv (those of the data sets
that were run, others stay) and rewrites what stands between the marks on each page, simfs/reports/accuracy.json,
which results quote, and simfs/lessons/fits.json, with which notebooks run. Without a folder
they are written anew from the two tables. `--check` writes nothing and fails where one of them is not what the tables
say.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from prediction_record import accuracy, record
from prediction_text import Recorded, about, fits_of, overview

from simfs.experiments.validate import held_to_sources, unpredicted
from simfs.reports.accuracy import FILE as ACCURACY
from simfs.results.model import quantity
from simfs.results.validation import Validated
from simfs.scenario.measured.predicting import predicted

DOCS = Path(__file__).parent
FITS = DOCS.parent / "simfs/lessons/fits.json"
"""What was fitted for each data set, for the package."""
MARKS = "<!-- written by docs/predictions.py -->", "<!-- end -->"
Record = dict[str, str]


class StaleError(Exception):
    """The tables do not say what the data sets or pages need."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite or check the pages; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="what `simfs validate --out` wrote")
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a page is stale")
    parser.add_argument("--docs", type=Path, default=DOCS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    rows, fits = options.docs / "predictions.csv", options.docs / "predictions-fits.csv"
    try:
        if options.folder:
            ran = {record["dataset"] for record in read(options.folder / "rows.csv")}
            take_over(options.folder / "rows.csv", rows, ran)
            take_over(options.folder / "fits.csv", fits, ran)
        found = list(recorded(read(rows), read(fits)))
        stale = [page for page, text in pages(options.docs, found) if refresh(page, text, options.check)]
        if options.docs == DOCS:
            said = {ACCURACY: accuracy(found), FITS: fits_of(found)}
            stale += [file for file, text in said.items() if rewrite(file, text, options.check)]
    except StaleError as problem:
        print(
            f"{problem}\nrun `simfs validate --out FOLDER && python docs/predictions.py FOLDER`",
            file=sys.stderr,
        )
        return 1
    for page in stale:
        print(f"{page}: {'stale: run `python docs/predictions.py`' if options.check else 'written'}")
    return int(options.check and bool(stale))


def read(path: Path) -> list[Record]:
    """The lines of a table."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def take_over(new: Path, old: Path, ran: set[str]) -> None:
    """Replace in the table `old` what it has of the data sets that `ran` by what `new` has."""
    fresh = read(new)
    kept = [record for record in read(old) if record["dataset"] not in ran]
    names = list(fresh[0] if fresh else (*kept, {"dataset": ""})[0])
    with old.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept + fresh, key=lambda record: record["dataset"]))


def refresh(page: Path, generated: str, check: bool) -> bool:
    """Put `generated` between the marks of `page`, or only look; whether it differed."""
    text = page.read_text("utf-8")
    begin, end = map(re.escape, MARKS)
    if len(re.findall(f"{begin}\n.*?{end}", text, re.DOTALL)) != 1:
        raise StaleError(f"{page} needs one line '{MARKS[0]}' and one line '{MARKS[1]}' after it")
    fresh = re.sub(f"({begin}\n).*?({end})", lambda m: m[1] + generated + m[2], text, flags=re.DOTALL)
    return rewrite(page, fresh, check)


def rewrite(file: Path, fresh: str, check: bool) -> bool:
    """Write a file, or only look; whether it differed."""
    stale = not file.exists() or file.read_text("utf-8") != fresh
    if stale and not check:
        file.write_text(fresh, "utf-8")
    return stale


def pages(docs: Path, found: Sequence[Recorded]) -> Iterator[tuple[Path, str]]:
    """Each page with the text between its marks."""
    for each in found:
        page = docs / "predictions" / f"{each.data.name}.md"
        if not page.exists():
            raise StaleError(
                f"{page}: this data set needs a page: a heading, the two marks, and what the misses mean"
            )
        yield page, about(each)
    yield docs / "predictions.md", "\n".join(["", *record(found)]) + overview(found)


def recorded(rows: Sequence[Record], fits: Sequence[Record]) -> Iterator[Recorded]:
    """Every shipped data set with what the tables have of it."""
    pairs = predicted([])
    strangers = {record["dataset"] for record in rows} - {pair.dataset.name for pair in pairs}
    if strangers:
        raise StaleError(f"predictions.csv: there is no data set {', '.join(sorted(strangers))}")
    for pair in pairs:
        name = pair.dataset.name
        mine = [record for record in rows if record["dataset"] == name]
        values = {r["parameter"]: (float(r["value"]), r["unit"]) for r in fits if r["dataset"] == name}
        whole = with_record(unpredicted(pair), mine)
        if pair.scenario is not None:
            whole = held_to_sources(whole, pair.scenario, values)
        yield Recorded(pair, whole, {key: quantity(*value) for key, value in values.items()})


def with_record(empty: Validated, records: Sequence[Record]) -> Validated:
    """A data set's rows with the recorded predictions; raises StaleError where rows and records are not the same."""
    asked = [(row.series, row.x, row.metric, row.role, row.measured) for row in empty.rows]
    told = [(r["series"], float(r["x"]), r["metric"], r["role"], float(r["measured"])) for r in records]
    if asked != told:
        raise StaleError(f"predictions.csv: its rows of {empty.dataset} are not those of the data set")
    rows = (
        replace(
            row, predicted=number(r["predicted"]), ci_low=number(r["ci_low"]), ci_high=number(r["ci_high"])
        )
        for row, r in zip(empty.rows, records, strict=True)
    )
    return replace(empty, rows=tuple(rows))


def number(text: str) -> float | None:
    """A cell of the table."""
    return float(text) if text else None


if __name__ == "__main__":
    sys.exit(main())
