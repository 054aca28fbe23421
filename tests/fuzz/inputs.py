"""The kinds of damaged input. Each function writes files into a folder and returns what simfs is asked then."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from simfs.scenario import paths
from simfs.scenario.reading.document import Document

from .mutations import Tree, mutated, odd, places, spoilt


@dataclass(frozen=True)
class Input:
    """A scenario by name or path, and settings for it."""

    scenario: str
    settings: tuple[str, ...] = ()


@cache
def good(folder: str) -> list[tuple[str, str, Tree]]:
    """Name, text and data of the shipped files of a folder."""
    files = sorted((paths.DATA / folder).glob("*.yaml"))
    return [(path.stem, path.read_text("utf-8"), Document.read(path).data) for path in files]


def scenario_tree(random: Random, folder: Path) -> Input:
    """A scenario with parts dropped, replaced, spliced from others."""
    known = [tree for _, _, tree in good("scenarios")]
    return _written(folder, "scenario", json.dumps(mutated(random, random.choice(known), known)).encode())


def scenario_text(random: Random, folder: Path) -> Input:
    """A scenario's text, spoilt."""
    return _written(folder, "scenario", spoilt(random, random.choice(good("scenarios"))[1]))


def settings(random: Random, folder: Path) -> Input:
    """Up to five settings, of keys below each other, so that one meets what another has left."""
    name, _, tree = random.choice(good("scenarios"))
    keys = [".".join(map(str, path)) for path in places(tree)] or ["simfs"]
    chosen: list[str] = []
    for _ in range(random.choice([1, 2, 2, 3, 5])):
        key = random.choice(keys)
        if chosen and random.random() < 0.7:
            key = random.choice(chosen) + random.choice(
                ["", ".0", ".1", ".name", ".kind", ".prior", ".x", ".", ".-1"]
            )
        if random.random() < 0.2:
            key = key.rpartition(".")[0] or key
        chosen.append(key)
    return Input(name, tuple(f"{key}={_value(random)}" for key in chosen))


def _value(random: Random) -> str:
    value = odd(random)
    if random.random() < 0.3:
        return spoilt(random, str(value)).decode("utf-8", "replace")
    return value if isinstance(value, str) and random.random() < 0.5 else json.dumps(value)


def model(random: Random, folder: Path) -> Input:
    """A machine, kernel, filesystem or device of the user's own, damaged."""
    kind, section = random.choice(
        [("machines", "machine"), ("kernels", "kernel"), ("filesystems", "filesystem"), ("devices", "device")]
    )
    known = good(f"models/{kind}")
    name, text, tree = random.choice(known)
    if random.random() < 0.3:
        data = spoilt(random, text)
    else:
        data = json.dumps(mutated(random, tree, [tree for _, _, tree in known])).encode()
    _written(folder, "own", data)
    use: dict[str, Any] = {"profile": "./own.yaml"}
    if kind == "filesystems":
        use |= {"kind": name if name in ("xfs", "btrfs", "ext4", "tmpfs") else "xfs"}
    elif random.random() < 0.5 and kind != "devices":
        return _written(
            folder, "scenario", json.dumps(_scenario(random, cycle=True) | {section: use}).encode()
        )
    return _written(folder, "scenario", json.dumps(_scenario(random) | {section: use}).encode())


def dataset(random: Random, folder: Path) -> Input:
    """Measured data of the user's own, damaged, under the scenario that is shipped with them."""
    known = good("scenarios/measured")
    users = [tree for _, _, tree in good("scenarios") if tree.get("measured")]
    asked = dict(random.choice(users))
    use = asked["measured"] if isinstance(asked["measured"], dict) else {"dataset": asked["measured"]}
    _, text, tree = next(each for each in known if each[0] == use["dataset"])
    if random.random() < 0.3:
        data = spoilt(random, text)
    else:
        data = json.dumps(mutated(random, tree, [tree for _, _, tree in known])).encode()
    _written(folder, "data", data)
    return _written(
        folder, "scenario", json.dumps(asked | {"measured": use | {"dataset": "./data.yaml"}}).encode()
    )


def program(random: Random, folder: Path) -> Input:
    """A program or a lock of the user's own, damaged; it could do anything, so only its text is cut."""
    name, code = random.choice([("nfs-create", "nfs_create.py"), ("own-lock", "mylocks.py")])
    text = (paths.SCENARIOS / code).read_text("utf-8")
    cut = random.randrange(len(text))
    (folder / code).write_text(text[:cut] + text[cut + random.choice([1, 3, 40, 10**6]) :], "utf-8")
    tree = next(tree for known, _, tree in good("scenarios") if known == name)
    return _written(folder, "scenario", json.dumps(tree).encode())


KINDS: dict[str, tuple[Callable[[Random, Path], Input], int]] = {
    "scenario trees": (scenario_tree, 30),
    "scenario text": (scenario_text, 20),
    "settings": (settings, 20),
    "models": (model, 20),
    "data sets": (dataset, 8),
    "programs": (program, 2),
}
"""What makes an input of each kind, and how many of a hundred are of it."""


def made(seed: int, number: int, folder: Path) -> tuple[str, Input]:
    """Input `number` of a seed, with its files in `folder`."""
    random = Random(f"{seed}/{number}")
    (kind,) = random.choices(list(KINDS), [share for _, share in KINDS.values()])
    return kind, KINDS[kind][0](random, folder)


def _scenario(random: Random, *, cycle: bool = False) -> dict[str, Any]:
    work: dict[str, Any] = {"kind": random.choice(["compile", "create_unlink", "fs_mark", "fio"]), "tasks": 3}
    if cycle:
        work = {"kind": "lock_cycle", "tasks": 3, "lock": "mutex", "think": "1 us", "hold": "1 us"}
    about: dict[str, Any] = {
        "simfs": 1,
        "name": "own",
        "title": "own",
        "machine": "server-24",
        "workload": work,
    }
    return (
        about | {"kernel": "linux-6.11"} | ({} if cycle else {"filesystem": {"kind": "xfs", "size": "1 GiB"}})
    )


def _written(folder: Path, name: str, data: bytes) -> Input:
    path = folder / f"{name}.yaml"
    path.write_bytes(data)
    return Input(str(path))
