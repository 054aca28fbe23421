"""simfs: a discrete-event simulator of lock contention in filesystems."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfs.api import Answer, Question, load

try:
    __version__ = version("simfs")
except PackageNotFoundError:
    # A checkout that was never installed.
    __version__ = "0.1.0"

__all__ = ["Answer", "Question", "__version__", "load"]


def __getattr__(name: str) -> object:
    """Load the API when it is asked for: the command line and the engine's users do without."""
    if name in __all__:
        from simfs import api

        return getattr(api, name)
    raise AttributeError(f"module 'simfs' has no attribute '{name}'")
