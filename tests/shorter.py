"""Commands of the documentation, in less time than a reader gives them: compiles of 1 ms instead of a fitted time."""

from __future__ import annotations

LESS = ("measure={duration: 20 ms, replications: 5}", "workload.user_cpu=1 ms", "calibrate=[]")
LONG = ("run", "whatif", "observe")
"""Commands that run `compile-24` for ten seconds of CPU time and more."""


def shorter(words: list[str]) -> list[str]:
    """The words of a command, with settings behind them if it would take long."""
    long = words[0] in LONG and "compile-24" in words
    return [*words, *(word for setting in LESS * long for word in ("--set", setting))]
