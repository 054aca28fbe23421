"""Streams of numbers whose means are known, and how many of their intervals hold them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from simfs.results.statistics import Estimate


def ar1(rng: np.random.Generator, runs: int, length: int, phi: float) -> NDArray[np.float64]:
    """`runs` stationary AR(1) streams of mean 0 and lag-one correlation `phi`."""
    noise = rng.normal(size=(runs, length))
    noise[:, 0] /= math.sqrt(1 - phi**2)
    streams: NDArray[np.float64] = lfilter([1.0], [1.0, -phi], noise, axis=1)
    return streams


def mm1_waits(rng: np.random.Generator, runs: int, length: int, rho: float) -> NDArray[np.float64]:
    """Waiting times in M/M/1 queues with service rate 1, by Lindley's recursion, started empty."""
    steps = rng.exponential(size=(runs, length)) - rng.exponential(1 / rho, size=(runs, length))
    waits = np.zeros((runs, length))
    for i in range(1, length):
        waits[:, i] = np.maximum(0, waits[:, i - 1] + steps[:, i])
    return waits


def coverage(estimates: list[Estimate], truth: float) -> float:
    return sum(e.contains(truth) for e in estimates) / len(estimates)
