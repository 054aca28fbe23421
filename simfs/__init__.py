"""simfs: a discrete-event simulator of lock contention in filesystems."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("simfs")
except PackageNotFoundError:
    # A checkout that was never installed.
    __version__ = "0.1.0"

__all__ = ["__version__"]
