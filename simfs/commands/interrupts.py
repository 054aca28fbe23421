"""Ctrl-C: the first ends the runs under way at their next event; the second ends simfs at once."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from threading import Timer
from types import FrameType
from typing import NoReturn

from simfs.commands.errors import INTERRUPTED, complain

PATIENCE = 1.0
"""Seconds after which who has interrupted is told what simfs waits for."""


def end_at_the_second() -> None:
    """Make the second Ctrl-C end the process; files are written whole or not at all, so nothing is torn."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _first)


def _first(_signal: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, _second)
    hint = Timer(
        PATIENCE,
        complain,
        ["the runs under way are ending; Ctrl-C once more does not wait for them"],
    )
    hint.daemon = True
    hint.start()
    raise KeyboardInterrupt


def _second(_signal: int, _frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        os.write(2, b"interrupted: the runs under way are lost\n")
    os._exit(INTERRUPTED)
