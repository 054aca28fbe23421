"""Commands of the documentation, in less time than a reader gives them: compiles of 1 ms instead of a fitted time."""

from __future__ import annotations

FEW = ("measure={duration: 10 ms, replications: 3}", "workload.user_cpu=1 ms", "calibrate=[]")
SHORT = tuple(word for setting in FEW for word in ("--set", setting))
OPTIONS = {
    **{(name, "compile-24"): SHORT for name in ("run", "whatif", "observe", "advise")},
    ("compare", "compile-24:xfs"): SHORT,
    ("calibrate", "compile-24"): ("--set", "measure={duration: 100 ms, replications: 2}"),
    **{
        (name, "lock-cycle"): ("--set", "measure={duration: 1 ms, replications: 2}")
        for name in ("sweep", "sensitivity")
    },
    ("check", "teachlocks.py:Sleeping"): ("--schedules", "300", "--schedules-only"),
}
"""Commands of many runs, and what makes them short."""
IN_PYTHON = ("--set", "measure={duration: 1 ms, replications: 2}")


def shorter(words: list[str]) -> list[str]:
    """The words of a command, with options behind them if it would take long."""
    if "simpy" in words:
        return [*words, *IN_PYTHON]
    return [*words, *OPTIONS.get((words[0], words[1] if words[1:] else ""), ())]
