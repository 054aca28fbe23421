"""The nearest valid word to a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: object, valid: Iterable[str]) -> str | None:
    """Return the valid word most like `word` (case ignored), or None when none is near."""
    by_folded = {item.casefold(): item for item in valid}
    found = difflib.get_close_matches(str(word)[:100].casefold(), by_folded, n=1, cutoff=0.55)
    return by_folded[found[0]] if found else None
