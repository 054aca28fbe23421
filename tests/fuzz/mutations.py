"""What is done to good input: trees with parts dropped, replaced and spliced, text cut and spoilt."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

Tree = Any
Path_ = tuple[Any, ...]

ODD: list[Tree] = [
    None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e15, 1e18, 10**15, 10**40, float("inf"), float("nan"),
    "", " ", "0", "15", "-3 us", "0 ns", "1e15 ns", "1 ps", "1e400 s", "99999999 TiB", "100 %", "1000 h",
    "tasks", "auto", "null", "none", "x" * 300, "é", "\u202e", "\U0001f512", "a\tb", "a\nb", "../x.yaml", "./", "/",
    "/dev/null", "/dev/zero", "/proc/self/mem", "mine.py:Lock", "a.py:b", "FILE.py:CLASS", ".py:x", "mutex",
    "xfs.buffer",
    [], {}, [[]], [{}], [0], ["a"], {"kind": 1}, {"kind": "xfs"}, {"": ""}, {"a": {"a": {"a": {}}}},
    {"profile": "./own.yaml"},
    {"exponential": "1 us"}, {"exponential": -1}, {"lognormal": "1 us", "cv": 1e9}, [1] * 300, [None, 1, "a", [], {}],
]  # fmt: skip
SPOILERS = [
    "[", "{", "]", "}", ":", ": ", ",", "&a ", "*a", "!", "!!python/object:os.system ", "|", ">", "'", '"', "%",
    "%YAML 9.9\n",
    "@", "`", "#", "-", "- ", "?", "\t", "\n", "---\n", "...\n", "<<: *a\n", "&a [*a, *a]", "\x00", "\x1b[31m", "\x85",
    "\ufeff", "\ud7ff", '"\\ud800"', '"\\e"', "[" * 50, "{a: " * 50, "[" * 6000, "- " * 3000,
    "? " * 2000, "!!float nan", ".inf", "0x10",
    "0o17", "1_000", "2026-11-22", "~", "yes", "é", "\r\n", "\r",
]  # fmt: skip


def places(tree: Tree, path: Path_ = ()) -> Iterator[Path_]:
    """Where there is something in a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree: Tree, path: Path_) -> Tree:
    """What is there."""
    for step in path:
        tree = tree[step]
    return tree


def odd(random: Random) -> Tree:
    """One of the odd values; a copy, since what it is put into is changed again."""
    return deepcopy(random.choice(ODD))


def number_near(random: Random, value: Tree) -> Tree:
    """A number, or the number in a quantity, made a little or far too large or small."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return odd(random)
    factor = random.choice([-1, 0, 0.5, 1.0001, 2, 3, 1000, 1e6, 1e-6, 1e12, 1e300])
    changed = value * factor
    return int(changed) if isinstance(value, int) and abs(changed) < 1e30 else changed


def mutated(random: Random, tree: Tree, others: list[Tree]) -> Tree:
    """A tree with one to four changes, some with parts of other trees of its kind."""
    tree = deepcopy(tree)
    for _ in range(random.choice([1, 1, 2, 3, 4])):
        known = list(places(tree))
        if known:
            _change(random, tree, random.choice(known), others)
    if random.random() < 0.3:
        _stretch(random, tree)
    return tree


def _stretch(random: Random, tree: Tree) -> None:
    """Give a sourced number of a model another value with a range that holds it: only its unit can refuse it then."""
    parts = (at(tree, path) for path in places(tree))
    quantities = [part for part in parts if isinstance(part, dict) and {"value", "range"} <= part.keys()]
    if quantities:
        chosen = random.choice(quantities)
        chosen["value"] = random.choice([0, 1, 10, 256, 65_536, 1e6, 1e9, 1e12, 1e15, 2.0**60, -1, 1e300])
        chosen["range"] = [min(chosen["value"], random.choice([0, 1])), max(chosen["value"], 1)]


def _change(random: Random, tree: Tree, path: Path_, others: list[Tree]) -> None:
    holder, key = at(tree, path[:-1]), path[-1]
    act = random.choice(["drop", "odd", "near", "near", "rename", "wrap", "splice", "add", "swap"])
    if act == "drop":
        del holder[key]
    elif act == "odd":
        holder[key] = odd(random)
    elif act == "near":
        holder[key] = number_near(random, holder[key])
    elif act == "rename" and isinstance(holder, dict):
        holder[random.choice([str(key) + "x", str(key)[:-1], "", "kind", "name", str(key).upper()])] = (
            holder.pop(key)
        )
    elif act == "wrap":
        holder[key] = random.choice([[holder[key]], {"x": holder[key]}, [holder[key]] * 40, [[holder[key]]]])
    elif act == "swap":
        holder[key] = deepcopy(at(tree, random.choice(list(places(tree)))))
    else:
        _splice(random, holder, key, random.choice(others), path)


def _splice(random: Random, holder: Tree, key: Any, other: Tree, path: Path_) -> None:  # noqa: ANN401
    """Put a part of another tree here: its part of the same name where it has one."""
    known = list(places(other))
    same = [place for place in known if place[-1] == path[-1]]
    chosen = random.choice(same if same and random.random() < 0.8 else known)
    if isinstance(holder, dict) and random.random() < 0.5:
        key = chosen[-1]
    if isinstance(holder, dict) or isinstance(key, int):
        holder[key] = deepcopy(at(other, chosen))


def spoilt(random: Random, text: str) -> bytes:
    """Text with pieces cut out, doubled, or nonsense in them, as bytes."""
    for _ in range(random.choice([1, 1, 2, 5])):
        here, there = sorted(random.randrange(len(text) + 1) for _ in range(2))
        piece = text[here : min(there, here + random.choice([1, 5, 80, 2000]))]
        act = random.choice(["cut", "double", "insert", "insert", "replace", "end", "lines"])
        if act == "cut":
            text = text[:here] + text[here + len(piece) :]
        elif act == "double":
            text = text[:here] + piece * random.choice([2, 3, 50]) + text[here + len(piece) :]
        elif act == "insert":
            text = text[:here] + random.choice(SPOILERS) + text[here:]
        elif act == "replace":
            text = text[:here] + random.choice(SPOILERS) + text[here + 1 :]
        elif act == "end":
            text = text[:here]
        else:
            lines = text.splitlines(keepends=True)
            random.shuffle(lines)
            text = "".join(lines)
    data = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        return data.decode("utf-8", "ignore").encode(random.choice(["utf-16", "latin-1", "cp500"]), "ignore")
    if random.random() < 0.1:
        where = random.randrange(len(data) + 1)
        return data[:where] + random.randbytes(random.choice([1, 2, 8])) + data[where:]
    return data
