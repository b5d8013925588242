"""Lags that grow for a while but are bounded, for synthetic runs."""

import numpy as np
from numpy.random import Generator

from simulations.synthetic import WARM_UP_MS, Floats, Waves

STEP_MS = 100.0


def _grid(seconds: float) -> Floats:
    return np.arange(-WARM_UP_MS, 1000 * seconds + STEP_MS, STEP_MS)


def sawtooth(period_s: float, height_ms: float, seconds: float, rng: Generator) -> Waves:
    """Return a lag that rises over each period and then drops to 0, with a random phase."""
    at_ms = _grid(seconds)
    phase = (at_ms / 1000 / period_s + rng.random()) % 1
    return Waves(at_ms, height_ms * phase)


def autoregressive(tau_s: float, sd_ms: float, seconds: float, rng: Generator) -> Waves:
    """Return AR(1) noise with this standard deviation and time constant."""
    at_ms = _grid(seconds)
    return Waves(at_ms, sd_ms * _ar1(tau_s, len(at_ms), rng))


def _ar1(tau_s: float, count: int, rng: Generator) -> Floats:
    """Return stationary AR(1) noise with standard deviation 1, a value every STEP_MS."""
    keeps = np.exp(-STEP_MS / 1000 / tau_s)
    innovations = rng.normal(0, 1, count)
    noise = np.empty(count)
    value = noise[0] = innovations[0]
    for n in range(1, count):
        noise[n] = value = keeps * value + np.sqrt(1 - keeps * keeps) * innovations[n]
    return noise


def queue(load: float, seconds: float, rng: Generator, noise: float = 0.1) -> Waves:
    """Return the lag of an initially empty queue before an engine with relative capacity noise
    `noise` (time constant 8 s), at an offered load of `load` times its mean capacity."""
    at_ms = _grid(seconds)
    capacity = np.maximum(1 + noise * _ar1(8.0, len(at_ms), rng), 0)
    backlog = np.empty(len(at_ms))  # in ms of work at the mean capacity
    value = 0.0
    for n, rate in enumerate(capacity):
        backlog[n] = value = max(0.0, value + STEP_MS * (load - rate))
    return Waves(at_ms, backlog / load)


def pauses(seconds: float, rng: Generator, catch_up_factor: float = 2.0) -> Waves:
    """Return pauses of 2 to 5 s, 20 to 60 s apart, after which the engine catches up at
    `catch_up_factor` times the offered rate."""
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
    for n, paused in enumerate(stopped):
        value += STEP_MS if paused else -STEP_MS * (catch_up_factor - 1)
        lag[n] = value = max(0.0, value)
    return Waves(at_ms, lag, tuple(silent))


def settling(height_ms: float, tau_s: float, seconds: float) -> Waves:
    """Return an initial lag that decays with this time constant."""
    at_ms = _grid(seconds)
    return Waves(at_ms, height_ms * np.exp(-np.maximum(at_ms, 0) / 1000 / tau_s))
