"""Which files of the user's own a Python file imports: what a result depends on besides the file itself."""

from __future__ import annotations

import ast
import site
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from simfs.scenario.reading.files import syntax_tree


def modules_of(path: Path) -> set[Path]:
    """The files that `path` imports anywhere in it, and those that these import, without installed packages.

    Found in the text, so also what is imported later; a module named only while the program runs is not found.
    """
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        for file in _imports(waiting.pop()):
            if file is not None and file not in found and file != path and _is_own(file):
                found.add(file)
                waiting.append(file)
    return found


def _imports(path: Path) -> Iterator[Path | None]:
    try:
        tree = syntax_tree(path.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_file_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            head = f"{node.module}." if node.module else ""
            names = [*([node.module] if node.module else []), *(head + alias.name for alias in node.names)]
            yield from (_beside(path, node.level, name) if node.level else _file_of(name) for name in names)


def _file_of(module: str) -> Path | None:
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
    else:
        try:
            spec = find_spec(module)
        except (ImportError, AttributeError, ValueError):
            return None
        file = spec.origin if spec and spec.has_location else None
    return Path(file) if file else None


def _beside(path: Path, level: int, module: str) -> Path | None:
    """The file of `from .module import`, with as many dots as `level`."""
    whole = path.parents[level - 1].joinpath(*module.split("."))
    candidates = (whole.with_suffix(".py"), whole / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _is_own(file: Path) -> bool:
    here = sysconfig.get_paths()
    installed = [here[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    return file.suffix == ".py" and not any(file.is_relative_to(folder) for folder in installed)
