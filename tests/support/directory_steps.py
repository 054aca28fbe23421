"""Random creations and removals in two directories, for the structures that real tools are asked about."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Step = dict[str, Any]


def random_steps(
    seed: int, count: int, names: int, removes: Callable[[int], float], commit_every: int | None = None
) -> list[Step]:
    """So many steps with `names` names; `removes` says how likely it is that a step removes one, by its number."""
    draw = random.Random(seed)
    steps: list[Step] = [{"op": "mkdir", "name": f"d{i}"} for i in range(2)]
    there: list[set[str]] = [set(), set()]
    for i in range(count):
        dir_ = draw.randrange(2)
        if there[dir_] and draw.random() < removes(i):
            name = draw.choice(sorted(there[dir_]))
            there[dir_].remove(name)
            steps.append({"op": "unlink", "dir": dir_, "name": name})
        elif (name := f"f{draw.randrange(names):0{draw.choice([1, 7, 30])}}") not in there[dir_]:
            there[dir_].add(name)
            steps.append({"op": "create", "dir": dir_, "name": name})
        if commit_every and i % commit_every == commit_every - 1:
            steps.append({"op": "commit"})
    return steps
