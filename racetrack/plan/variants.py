"""Grammar of variants: `flink@tuned[FLINK_MINI_BATCH_MS=100|1000 ENGINE_CPUS=0,1]+pg`.

`@` names a file of settings in the engine's folder (`@default`: none), brackets contain settings,
`|` separates the values of which each makes a variant of its own, and `+` joins engines that read
one input. Quotes (`"…"` or `'…'`) take these signs and spaces literally.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from racetrack import plugins, renamed

FORM = "write flink, flink@tuned, flink[SETTING=1|2 OTHER=3] or flink+pg; quote |, +, ] and spaces"
MOST = 50
DEFAULT = "default"  # the same as no file
_MEMBER = re.compile(r"(?P<engine>[a-z][a-z0-9_]*)(@(?P<file>[a-z][a-z0-9_-]*))?(\[(?P<own>.*)\])?")
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_PLAIN = re.compile(r"""[^\s|+\]\["']+""")


@dataclass(frozen=True)
class Member:
    """An engine of a variant, the name of its file of settings, and settings."""

    engine: str
    file: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        own = " ".join(f"{name}={_quoted(value)}" for name, value in self.settings.items())
        return f"{self.engine}{'@' * bool(self.file)}{self.file}{f'[{own}]' if own else ''}"


@dataclass(frozen=True)
class Variant:
    """One engine with its settings, or several on one input. `str` is its label, which `parse`
    reads again."""

    members: tuple[Member, ...]

    @property
    def engine(self) -> str:
        """Name of the engine, or of the group: `dh+pg`."""
        return plugins.JOIN.join(member.engine for member in self.members)

    def __str__(self) -> str:
        return plugins.JOIN.join(map(str, self.members))


def with_each(variant: Variant, values: Mapping[str, Sequence[str]]) -> list[Variant]:
    """Return a variant once for each combination of values of those settings that it lacks."""
    own = {name for member in variant.members for name in member.settings}
    free = {name: of for name, of in values.items() if name not in own}
    first, *others = variant.members
    found = []
    for chosen in itertools.product(*free.values()):
        settings = {**first.settings, **dict(zip(free, chosen, strict=True))}
        found.append(Variant((replace(first, settings=settings), *others)))
    return found


def without(label: str, setting: str) -> str:
    """Return a label of a variant without a setting."""
    try:
        variants = parse(label)
    except ValueError:
        return label  # a plan has given it
    for member in variants[0].members:
        member.settings.pop(setting, None)
    return str(variants[0])


def parse(text: str) -> list[Variant]:
    """Return the variants that a text stands for, at least one.

    Raises:
        ValueError: the text is not of this form; the message contains the reason.
    """
    members = [_members(part) for part in _split(text.strip(), plugins.JOIN)]
    _require_few(text, math.prod(map(len, members)))
    variants = [Variant(combined) for combined in itertools.product(*members)]
    for variant in variants:
        engines = [member.engine for member in variant.members]
        if len(set(engines)) < len(engines):
            raise ValueError(f"{text!r} names an engine twice on one input")
        given: dict[str, str] = {}
        for member in variant.members:
            for name, value in member.settings.items():
                if given.setdefault(name, value) != value:
                    raise ValueError(f"{text!r} gives {name} two values on one input")
    return variants


def _members(text: str) -> list[Member]:
    """Return an engine once for each combination of its settings' values."""
    if not (parts := _MEMBER.fullmatch(text)):
        raise ValueError(f"{text!r} is no engine with settings: {FORM}")
    values: dict[str, list[str]] = {}
    for word in _split(parts["own"] or "", " "):
        name, equals, value = word.partition("=")
        if not (equals and _NAME.fullmatch(name)):
            raise ValueError(f"{word!r} in {text!r} is no setting such as ENGINE_CPUS=0: {FORM}")
        name = renamed.setting(name, f"in {text}")
        if name in values:
            raise ValueError(f"{text!r} sets {name} twice; separate its values with |")
        values[name] = [_unquoted(part) for part in _split(value, "|", keep_empty=True)]
        if len(set(values[name])) < len(values[name]):
            raise ValueError(f"{text!r} names a value of {name} twice")
    _require_few(text, math.prod(map(len, values.values())))
    file = "" if parts["file"] in (None, DEFAULT) else parts["file"]
    return [
        Member(parts["engine"], file, dict(zip(values, chosen, strict=True)))
        for chosen in itertools.product(*values.values())
    ]


def _require_few(text: str, count: int) -> None:
    if count > MOST:
        raise ValueError(f"{text!r} stands for {count:,} variants; {MOST} are possible")


def _split(text: str, at: str, *, keep_empty: bool = False) -> list[str]:
    """Split a text at a sign, except inside quotes and brackets."""
    words = list(_words(text, at))
    if at == " ":
        return [word for word in words if word]
    if not keep_empty and "" in words:
        raise ValueError(f"{text!r} lacks an engine: {FORM}")
    return words


def _words(text: str, at: str) -> Iterator[str]:
    word, quote, depth = "", "", 0
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[]":
            depth += 1 if sign == "[" else -1
            if depth not in (0, 1):
                raise ValueError(f"{text!r} has unmatched brackets: {FORM}")
        elif sign == at and not depth:
            yield word
            word = ""
            continue
        word += sign
    if quote or depth:
        raise ValueError(f"{text!r} has an open {'quote' if quote else 'bracket'}: {FORM}")
    yield word


def _unquoted(text: str) -> str:
    """Return a value without the quotes around it, or around parts of it."""
    return re.sub(r""""([^"]*)"|'([^']*)'""", lambda part: part[1] or part[2] or "", text)


def _quoted(value: str) -> str:
    if not value or _PLAIN.fullmatch(value):
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'
