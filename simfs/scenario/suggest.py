"""The nearest valid word to a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def choices(word: object, valid: Iterable[str]) -> str:
    """Return what there is instead of `word`, the nearest first: `there are a, b (did you mean 'b'?)`."""
    known = list(valid)
    near = nearest(word, known)
    hint = f" (did you mean '{near}'?)" if near else ""
    return f"there are {', '.join(known)}{hint}" if known else "there are none"


def nearest(word: object, valid: Iterable[str]) -> str | None:
    """Return the valid word most like `word` (case ignored), or None when none is near."""
    by_folded = {item.casefold(): item for item in valid}
    found = difflib.get_close_matches(str(word)[:100].casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[found[0]] if found else None
