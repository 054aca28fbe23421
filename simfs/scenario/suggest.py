"""The nearest valid word to a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST = 12
"""So many names are told; of more, those that are most like the mistyped one."""

KINDS_OF_LOCKS = "`simfs locks`"
LOCKS_OF_A_RUN = "tables/locks.csv of `simfs run --out`"
"""What lists all of them."""


def choices(word: object, valid: Iterable[str], lister: str = "") -> str:
    """Return the nearest word, then what else there is: `did you mean 'b'? There are a, b`.

    `lister` is what names them all, where that are too many to be told.
    """
    known = list(valid)
    if not known:
        return "there are none"
    near = nearest(word, known)
    return (
        f"did you mean '{near}'? There are {some(word, known, lister)}"
        if near
        else (f"there are {some(word, known, lister)}")
    )


def some(word: object, valid: Iterable[str], lister: str = "") -> str:
    """Return the names, of many those most like `word` first, and how many more there are."""
    known = list(valid)
    if len(known) <= MOST:
        return ", ".join(known)
    wanted = str(word)[:100].casefold()
    like = sorted(known, key=lambda name: -difflib.SequenceMatcher(None, wanted, name.casefold()).ratio())
    shown = like if nearest(word, known) else known
    all_ = f" ({lister} lists all)" if lister else ""
    return f"{', '.join(shown[:MOST])} and {len(known) - MOST} more{all_}"


def nearest(word: object, valid: Iterable[str]) -> str | None:
    """Return the valid word most like `word` (case ignored), or None when none is near."""
    by_folded = {item.casefold(): item for item in valid}
    found = difflib.get_close_matches(str(word)[:100].casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[found[0]] if found else None
