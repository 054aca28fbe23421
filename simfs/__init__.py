"""simfs: a discrete-event simulator of lock contention in filesystems."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfs.api import Answer, Question, load

    __version__: str

__all__ = ["Answer", "Question", "__version__", "load"]


def __getattr__(name: str) -> object:
    """Load the API when it is asked for: the command line and the engine's users do without."""
    if name == "__version__":
        return _version()
    if name in __all__:
        from simfs import api

        return getattr(api, name)
    raise AttributeError(f"module 'simfs' has no attribute '{name}'; begin with simfs.load('lock-cycle')")


def __dir__() -> list[str]:
    """Name what there is, loaded or not."""
    return sorted(__all__)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("simfs")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0.3.0"
