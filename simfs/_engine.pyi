"""The native engine: one run in, one result out, both JSON text. `docs/seams.md` describes the documents."""

__all__ = ["__version__", "run", "structure_report", "trace"]

__version__: str
"""Version of the engine crate."""

def run(spec: str) -> str:
    """Run one RunSpec (JSON text) and return its RunResult (JSON text).

    The GIL is released meanwhile, so runs can be threads. Raises `ValueError` for a spec that is wrong, and
    `RuntimeError` for a defect of the engine.
    """

def structure_report(request: str) -> str:
    """Return what XFS structures look like after an experiment, both as JSON text.

    A request names a filesystem and what is done to it; `tests/test_xfs_structure.py` shows all of them.
    The GIL is released meanwhile. Raises `ValueError` for a request that is wrong, and `RuntimeError` for a
    defect of the engine.
    """

def trace(spec: str) -> tuple[str, list[tuple[int, int | None, int, str, str]]]:
    """Run one RunSpec and return its RunResult and everything that happened, in order.

    An event is (time in picoseconds, task or None, CPU, what, about what). Raises as `run` does.
    """
