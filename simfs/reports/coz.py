"""A causal profile in the format of Coz (`profile.coz`), which its viewer draws.

Lines of fields parted by tabs (`libcoz/profiler.cpp`): `startup`, then for each experiment which line was sped
up, by what fraction, for how many nanoseconds, and how many of Coz's one-millisecond samples fell on it; then
how often the progress point was passed. A lock class stands where Coz has a source line.
"""

from __future__ import annotations

from simfs.experiments.whatif import WhatIf

SAMPLE_NS = 1e6
"""Coz's sampling period."""


def to_coz(answer: WhatIf) -> str:
    """Return the profile as text; every lock has its own experiment at speedup 0, as the viewer wants it."""
    window = answer.window_ns * answer.replications
    lines = ["startup\ttime=0"]
    for slope in answer.profile:
        speedups = (0.0, *slope.removed_percent)
        for removed, operations, held in zip(speedups, slope.operations, slope.hold_total_ns, strict=True):
            lines.append(
                f"experiment\tselected={slope.lock}\tspeedup={removed / 100:.2f}"
                f"\tduration={window:.0f}\tselected-samples={held / SAMPLE_NS:.0f}"
            )
            lines.append(f"throughput-point\tname={answer.operation}\tdelta={operations}")
    lines.append(f"runtime\ttime={window:.0f}")
    return "\n".join(lines) + "\n"
