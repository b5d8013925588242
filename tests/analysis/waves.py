"""Lags that come and go, and so look like growth for a while: made up, bounded by construction."""

import numpy as np
from numpy.random import Generator

from tests.analysis.synthetic import WARM_UP_MS, Floats, Waves

STEP_MS = 100.0


def _grid(seconds: float) -> Floats:
    return np.arange(-WARM_UP_MS, 1000 * seconds + STEP_MS, STEP_MS)


def sawtooth(period_s: float, height_ms: float, seconds: float, rng: Generator) -> Waves:
    """Rises evenly for a period, then falls at once; where it begins is chance."""
    at_ms = _grid(seconds)
    phase = (at_ms / 1000 / period_s + rng.random()) % 1
    return Waves(at_ms, height_ms * phase)


def autoregressive(tau_s: float, sd_ms: float, seconds: float, rng: Generator) -> Waves:
    """AR(1) noise of this standard deviation, which forgets with this time constant."""
    at_ms = _grid(seconds)
    return Waves(at_ms, sd_ms * _forgetful(tau_s, len(at_ms), rng))


def _forgetful(tau_s: float, count: int, rng: Generator) -> Floats:
    """AR(1) noise of standard deviation 1 every STEP_MS, stationary from its first value on."""
    keeps = np.exp(-STEP_MS / 1000 / tau_s)
    fresh = rng.normal(0, 1, count)
    noise = np.empty(count)
    value = noise[0] = fresh[0]
    for n in range(1, count):
        noise[n] = value = keeps * value + np.sqrt(1 - keeps * keeps) * fresh[n]
    return noise


def queue(load: float, seconds: float, rng: Generator, noise: float = 0.1) -> Waves:
    """A queue before an engine whose capacity wavers by `noise` (tau 8 s), offered `load` of it;
    empty when it begins."""
    at_ms = _grid(seconds)
    capacity = np.maximum(1 + noise * _forgetful(8.0, len(at_ms), rng), 0)
    backlog = np.empty(len(at_ms))  # in ms of work at the mean capacity
    value = 0.0
    for n, rate in enumerate(capacity):
        backlog[n] = value = max(0.0, value + STEP_MS * (load - rate))
    return Waves(at_ms, backlog / load)


def pauses(seconds: float, rng: Generator, catch_up_factor: float = 2.0) -> Waves:
    """2 to 5 s without a word, 20 to 60 s apart, each worked off at this multiple of the rate."""
    at_ms, until_ms = _grid(seconds), -WARM_UP_MS
    silent: list[tuple[float, float]] = []
    while until_ms < 1000 * seconds:
        from_ms = until_ms + 1000 * rng.uniform(*((20, 60) if silent else (0, 40)))
        until_ms = from_ms + 1000 * rng.uniform(2, 5)
        silent.append((from_ms, until_ms))
    stopped = np.zeros(len(at_ms), dtype=bool)
    for from_ms, to_ms in silent:
        stopped |= (at_ms >= from_ms) & (at_ms < to_ms)
    lag, value = np.empty(len(at_ms)), 0.0
    for n, stands in enumerate(stopped):
        value += STEP_MS if stands else -STEP_MS * (catch_up_factor - 1)
        lag[n] = value = max(0.0, value)
    return Waves(at_ms, lag, tuple(silent))


def settling(height_ms: float, tau_s: float, seconds: float) -> Waves:
    """A lag that the rate finds there, and that dies away with this time constant."""
    at_ms = _grid(seconds)
    return Waves(at_ms, height_ms * np.exp(-np.maximum(at_ms, 0) / 1000 / tau_s))
