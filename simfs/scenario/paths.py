"""Where the data that comes with simfs lies: cost models and scenarios.

In the package both are under `_data`; in a checkout these are links to the top of the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

DATA = Path(__file__).parents[1] / "_data"
MODELS = DATA / "models"
SCENARIOS = DATA / "scenarios"
MEASURED = SCENARIOS / "measured"

Kind = Literal["machines", "kernels", "filesystems", "instructions", "devices", "workloads"]


def names(folder: Path) -> list[str]:
    """Return the names of the YAML files in `folder`, sorted; empty when there is no such folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def find(name_or_path: str, folder: Path, beside: Path | None = None) -> Path | None:
    """Return the file meant by a shipped name or a path (relative also to `beside`); None for neither."""
    shipped = folder / f"{name_or_path}.yaml"
    if is_name(name_or_path):
        return shipped if exists(shipped) else None
    candidates = [Path(name_or_path)] + ([beside / name_or_path] if beside else [])
    return next((path for path in candidates if exists(path)), None)


def exists(path: Path) -> bool:
    """Tell whether a path is there; one that no file can have is not."""
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a character that no name can have
        return False


def is_name(name_or_path: str) -> bool:
    """Tell a shipped name, such as `compile-24`, from a path, which has a slash or a suffix."""
    return not ({"/", "\\", "\0"} & set(name_or_path) or name_or_path.endswith((".yaml", ".yml")))
