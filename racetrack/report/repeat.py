"""Commands that repeat runs, searches and comparisons, derived from their records."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from racetrack.report.collect import Limit, Run
from racetrack.report.material import Material
from racetrack.results.base import Scalar
from racetrack.results.comparison import ComparisonRecord
from racetrack.results.run import RunArguments


def commands(engine: str, settings: Mapping[str, Scalar], material: Material) -> tuple[str, ...]:
    """Return the commands that repeat what was measured of an engine with these settings, which
    differ from the defaults. Runs that differ only in their rates are repeated by one sweep."""
    alike: dict[str, list[Run]] = {}
    for run in material.runs:
        if run.record.arguments:
            alike.setdefault(_options(run.record.arguments), []).append(run)
    sweeps = [_sweep(engine, options, of) for options, of in alike.items()]
    prefix = _prefix(settings)
    return (
        *(prefix + one for one in (*sweeps, *_search(engine, material.searches))),
        *(_comparison(engine, settings, record) for record in material.comparisons),
    )


def _prefix(settings: Mapping[str, Scalar]) -> str:
    return "".join(
        f"{name.upper()}={shlex.quote(_text(value))} " for name, value in settings.items()
    )


def _comparison(engine: str, settings: Mapping[str, Scalar], record: ComparisonRecord) -> str:
    """Return the command of a comparison, which sets heaps, reads and tracer events itself."""
    own = record.settings.get(engine, {})
    given = {name: value for name, value in settings.items() if name.upper() not in own}
    words = [
        f"./race compare {' '.join(record.engines)}",
        *(["--quick"] if record.is_quick else []),
        f"--rates {','.join(map(str, record.rates))} --repeats {record.repeats}",
        *([] if record.reads_per_s else ["--no-reads"]),
    ]
    return _prefix(given) + " ".join(words)


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(arguments: RunArguments) -> str:
    verify = " --verify" if arguments.verify else ""
    return (
        f"--wait {arguments.wait_s:g}s --samples {arguments.samples}"
        f" --decide-within {arguments.decide_within_s:g}s{verify}"
    )


def _sweep(engine: str, options: str, runs: Sequence[Run]) -> str:
    counts = Counter(run.rate for run in runs)
    rates = ",".join(map(str, sorted(counts)))
    repeat = max(counts.values())
    return f"./race sweep {engine} --rates {rates} --repeat {repeat} {options}"


def _search(engine: str, searches: Sequence[Limit]) -> list[str]:
    """Return the command that repeats the searches, with the arguments of the first search."""
    if not searches:
        return []
    words = [f"./race limit {engine} --repeat {len(searches)}"]
    if arguments := searches[0].record.arguments:
        words.append(f"--start {arguments.start_per_s} --warm-up {arguments.warm_up_s:g}s")
        words += [f"--bound {bound_ms:g}ms" for bound_ms in arguments.bounds_ms]
        words.append(f"--within {arguments.within_s:g}s")
    return [" ".join(words)]
