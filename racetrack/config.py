"""Settings, read from `.env` and the environment; no other module reads them.

Engines and workloads define settings of their own: a subclass of `Settings` in their `settings.py`.
The defaults of these are in the `.env` file of their folder. `load` combines all.
"""

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from ipaddress import IPv4Address
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from racetrack import plugins, renamed, units
from racetrack.errors import UsageError

REPO = plugins.REPO
ENV_FILE = REPO / ".env"

# Versions of public container images; only the compose files read them.
IMAGE_VERSIONS = ("REDPANDA_VERSION",)
# Settings that are read from environment variables only, never from `.env`.
ENVIRONMENT_ONLY = ("MACHINE_LOCK", "DECIDE_WITHIN")
# Names in `.env` that Docker Compose itself reads.
COMPOSE_PREFIXES = ("COMPOSE_", "DOCKER_")
# Ends of the names of settings for the size of an engine's heap.
HEAP_ENDINGS = ("_heap", "_memory_mib")


@dataclass(frozen=True)
class ShareOfMemory:
    """Marks the field of a setting for memory that is not a heap: the part of an engine's memory
    that it gets if a plan sets that memory (`heap_share`)."""

    share: float


# Variables with these beginnings are no misspelled settings: what Kubernetes sets in each pod, and
# what Racetrack's processes set for each other.
NO_SETTINGS = ("KUBERNETES_SERVICE_", "KUBERNETES_PORT", "RACETRACK_")
# A variable with one of these suffixes (FLINK_HOME, MYSQL_HOST) belongs to another program; it is
# not a misspelled setting.
OTHER_PROGRAMS = (
    "HOME",
    "CONF",
    "DIR",
    "OPTS",
    "HOST",
    "USER",
    "PWD",
    "DATABASE",
    "DB",
    "URL",
    "TCP",
)

# Settings of earlier versions, and what to do instead.
REMOVED = {
    r"(MYSQL|CONNECT)_(URL|USERNAME|PASSWORD_FILE|SSL_CA_LOCATION|PROPERTIES_FILE)": (
        "The stack always starts MySQL and Kafka Connect. Unset it"
    ),
    r"PROMETHEUS_(URL|TOKEN_FILE)|\w+_(CPU|MEMORY)_QUERY|(KAFKA|REGISTRY|FLINK|MZ)_PODS": (
        "CPU and memory of services that run elsewhere stay blank. Unset it"
    ),
    "SPARK_STATE_STORE": "State is always in RocksDB. Unset it",
    "KAFKA_SASL_OAUTHBEARER_TOKEN_COMMAND": "Use a mechanism with a password, or a certificate",
}
# Settings of earlier versions that another one, or a constant, replaces. A run that ignored them
# would not use a service as its user intends.
REPLACED = {
    r"KAFKA_(SECURITY_PROTOCOL|SSL_\w+|SASL_\w+|CLIENT_(?!PROPERTIES$)\w+)": (
        "Write it as {property}=… into a file, and name the file in KAFKA_CLIENT_PROPERTIES"
        " (docs/own-parts.md)"
    ),
    "REGISTRY_PASSWORD": "Write the password into a file, and name it in REGISTRY_PASSWORD_FILE",
    "(MYSQL|REDIS)_IMAGE_VERSION|MYSQL_TMPFS": "Change it in docker-compose.yml",
    "CONFLUENT_VERSION|(MAVEN|PYPY|PYTHON)_IMAGE_VERSION": (
        "Change it in the Dockerfile of its image, such as debezium/Dockerfile"
    ),
    "SCHEMA_REGISTRY_HEAP|CONNECT_HEAP": "Change it in racetrack/stack/jvm.py",
}
# Where pods have the files that settings name; only the containers of a pod see them.
FILES_IN_PODS = "/etc/racetrack/own"
READABLE_BY_ALL = 0o004


def text_that(matches: str, otherwise: str) -> AfterValidator:
    """Return a validator that accepts text if all of it matches the pattern `matches`.

    `otherwise` describes valid text in the error message: "… is not {otherwise}".
    """

    def validate(text: str) -> str:
        if not re.fullmatch(matches, text):
            raise ValueError(f"{text!r} is not {otherwise}")
        return text

    return AfterValidator(validate)


def no_padding_or_at_least(low: int, message: str) -> AfterValidator:
    """Return a validator that accepts the size to which messages are padded: 0 or at least `low`,
    which holds any `message`."""

    def validate(size: int) -> int:
        if 0 < size < low:
            raise ValueError(
                f"{size} bytes do not hold {message}: 0 adds nothing, otherwise at least {low}"
            )
        return size

    return AfterValidator(validate)


def url_such_as(example: str) -> AfterValidator:
    """Return a validator that accepts the URL of an HTTP server, or nothing."""
    return text_that(r"(https?://[\w.-]+(:\d{1,5})?(/[\w./-]*)?)?", f"a URL such as {example}")


def _address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise ValueError(f"{text!r} is not an IPv4 address such as 127.0.0.1") from None


def _redpanda_size(text: str) -> str:
    """Return a size in the format of Redpanda's --memory: `2G`."""
    return units.normal_size(text).upper()


def _shell_words(text: str) -> str:
    """Return the text unchanged if a shell can split it into words."""
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{error}: quote it as for a shell") from None
    return text


def properties_in(words: str) -> dict[str, str]:
    """Return the properties in words such as `name=value`, which are quoted as for a shell.

    Raises:
        ValueError: a word has another form, or names a property again.
    """
    properties: dict[str, str] = {}
    for word in shlex.split(_shell_words(words)):
        name, equals, value = word.partition("=")
        if not equals or not re.fullmatch(r"[\w.-]+", name):
            raise ValueError(f"{word!r} is not a property such as name=value")
        if name in properties:
            raise ValueError(f"{name} is there twice")
        properties[name] = value
    return properties


def properties_except(reserved: Mapping[str, str], prefix: str = "") -> AfterValidator:
    """Return a validator that accepts properties whose names begin with `prefix`, except those in
    `reserved`: name → why it can't be set."""

    def validate(words: str) -> str:
        for name in properties_in(words):
            if not name.startswith(prefix):
                raise ValueError(f"{name} is no property here: its name has to begin with {prefix}")
            if name in reserved:
                raise ValueError(f"{name} can't be set here: {reserved[name]}")
        return words

    return AfterValidator(validate)


def _folder(path: Path) -> Path:
    """Return the absolute path of a folder; a relative one starts at the repository."""
    if path == Path():
        raise ValueError("it is empty: name a folder")
    return REPO / path.expanduser()


def _file(text: str) -> str:
    """Return the absolute path of a file; a relative one starts at the repository."""
    return str(REPO / Path(text).expanduser()) if text else ""


def _kafka_contradiction(settings: "Settings") -> str:
    """Return why the settings of a Kafka that runs elsewhere contradict each other; "" if not."""
    if not settings.kafka_bootstrap_servers:
        if settings.kafka_topic_prefix or settings.kafka_client_properties:
            return (
                "KAFKA_TOPIC_PREFIX and KAFKA_CLIENT_PROPERTIES are for a Kafka that runs"
                " elsewhere: set KAFKA_BOOTSTRAP_SERVERS too"
            )
        return ""
    if not settings.kafka_topic_prefix:
        return (
            "KAFKA_TOPIC_PREFIX is empty: a run must be able to tell its topics in a Kafka that"
            " others use too. Set it, such as KAFKA_TOPIC_PREFIX=racetrack_1."
        )
    return ""


def _size_or_everything(text: str) -> int:
    if text == "-1" or text.isdecimal():
        return int(text)
    return units.parse_size_bytes(text)


def _postgres_url(secret: SecretStr) -> SecretStr:
    """Check the URL. Errors do not quote it, since it may contain a password."""
    if not (text := secret.get_secret_value()):
        return secret
    try:
        url = urlsplit(text)
        is_usable = url.scheme in ("postgres", "postgresql") and url.hostname and url.port != 0
    except ValueError:  # the port is invalid
        is_usable = False
    if not is_usable:
        raise ValueError("it is not a URL such as postgres://user:password@host:5432/database")
    return secret


Port = Annotated[int, Field(ge=1, le=65535)]
Name = Annotated[
    str,
    text_that(r"[a-z][a-z0-9_-]{0,30}", "a name: lower-case letters, digits, - and _, at most 31"),
]
Size = Annotated[str, AfterValidator(units.normal_size)]
Mebibytes = Annotated[int, BeforeValidator(units.parse_mebibytes)]
Address = Annotated[str, AfterValidator(_address)]
HostOrNothing = Annotated[str, text_that(r"[A-Za-z0-9.-]*", "the name or address of a host alone")]
Cores = Annotated[
    str,
    text_that(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?", "a list of cores such as 0,2-3 (nothing: all)"),
]
Servers = Annotated[
    str,
    text_that(
        r"([\w.-]+:\d{1,5}(,[\w.-]+:\d{1,5})*)?", "host:port, or several separated by commas"
    ),
]
TopicPrefix = Annotated[
    str,
    text_that(
        r"([A-Za-z][A-Za-z0-9_-]{3,40}\.)?",
        "letters, digits, - and _, at least four, and a full stop at the end, such as racetrack-1.",
    ),
]
File = Annotated[str, AfterValidator(_file)]
# URL of a server that speaks PostgreSQL's protocol, or nothing. It may contain a password.
PostgresUrl = Annotated[SecretStr, AfterValidator(_postgres_url)]
Count = Annotated[int, Field(ge=1)]
Percent = Annotated[float, Field(ge=0)]
# Exponent of Zipf's law.
Skew = Annotated[float, Field(ge=0, le=4)]
Rate = Annotated[int, BeforeValidator(units.parse_rate)]
Milliseconds = Annotated[int, BeforeValidator(units.parse_milliseconds)]
Seconds = Annotated[float, BeforeValidator(units.parse_duration_s)]
Folder = Annotated[Path, AfterValidator(_folder)]
ShellWords = Annotated[str, AfterValidator(_shell_words)]


class Settings(BaseSettings):
    """Settings of the stack: each field has the lower-case name of a variable in `.env`.

    Environment variables take precedence over the file. Ports are TCP ports. `racetrack.units`
    parses rates, durations and sizes.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)

    runtime: Literal["auto", "compose", "native", "kubernetes"]
    airgap: bool
    kubernetes_small: bool
    kubernetes_job: bool
    kubernetes_registry: Annotated[
        str, text_that(r"([a-z0-9.:_/-]+/)?", "the begin of image names, ending with /, or nothing")
    ]
    kubernetes_cut_command: ShellWords

    # Excluded from `run.json`: the record of a run does not depend on its folder.
    logs_folder: Folder = Field(exclude=True)

    engine_cpus: Cores
    broker_cpus: Cores
    loadgen_cpus: Cores
    harness_cpus: Cores

    engine_replicas: Count
    broker_replicas: Count
    loadgen_replicas: Count

    noise_gate: bool
    foreign_cpu_max_pct: Percent
    steal_max_pct: Percent
    slowdown_max_pct: Percent

    bind_address: Address
    stack_name: Name
    kafka_port: Port
    kafka_controller_port: Port
    schema_registry_port: Port
    mysql_port: Port
    connect_port: Port
    loadgen_port: Port
    redis_port: Port
    kafka_advertised_address: HostOrNothing

    kafka_bootstrap_servers: Servers
    kafka_topic_prefix: TopicPrefix
    kafka_replication_factor: Annotated[int, Field(ge=-1, le=32)]
    kafka_client_properties: File
    registry_url: Annotated[str, url_such_as("https://host:8443/apis/ccompat/v7")]
    registry_username: str
    registry_password_file: File
    registry_ssl_ca_location: File

    kafka_heap: Size
    kafka_retention_bytes: Annotated[int, BeforeValidator(_size_or_everything)]
    jvm_options: ShellWords
    redpanda_smp: Count
    redpanda_memory: Annotated[str, AfterValidator(_redpanda_size)]
    redpanda_tmpfs: Size

    kafka_version: str
    apicurio_version: str
    debezium_version: str

    workload: Name
    purchases_per_second_start: Rate
    events_per_second_start: Rate
    tracer_events_per_second: Rate
    reads_per_second: Rate
    updates_per_second: Rate
    deletes_per_second: Rate
    events_partitions: Count
    loadgen_seed: int
    loadgen_acks: Literal["0", "1", "all"]

    # Set inside containers only: the host names of other services, the addresses (`host:port`,
    # separated by commas) that the brokers advertise to clients outside the containers, and the
    # name of the pod (`redpanda-0`). Excluded from `run.json`.
    peer_mysql: str = Field(default="", exclude=True)
    peer_kafka: str = Field(default="", exclude=True)
    peer_registry: str = Field(default="", exclude=True)
    peer_redis: str = Field(default="", exclude=True)
    kafka_outside: str = Field(default="", exclude=True)
    racetrack_instance: str = Field(default="", exclude=True)

    mysql_root_password: SecretStr
    mysql_shop_password: SecretStr
    mysql_debezium_password: SecretStr

    @model_validator(mode="after")
    def _kafka_settings_agree(self) -> Self:
        if why := _kafka_contradiction(self):
            raise ValueError(why)
        if self.registry_url and not self.kafka_bootstrap_servers:
            raise ValueError(
                "REGISTRY_URL needs KAFKA_BOOTSTRAP_SERVERS: a run's schemas are named by its"
                " topics, which have a prefix only in a Kafka that runs elsewhere"
            )
        return self

    @model_validator(mode="after")
    def _jobs_are_on_kubernetes(self) -> Self:
        if self.kubernetes_job and self.runtime != "kubernetes":
            raise ValueError("KUBERNETES_JOB=true needs RUNTIME=kubernetes")
        return self

    @field_validator("redpanda_memory")
    @classmethod
    def _redpanda_starts_with_it(cls, size: str, info: ValidationInfo) -> str:
        cores: int = info.data.get("redpanda_smp", 1)
        if units.parse_size_bytes(size) < cores << 30:
            raise ValueError(
                "Redpanda does not start with less than 1 GiB for each core, and REDPANDA_SMP is"
                f" {cores}: make it {cores}G or more"
            )
        return size

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """Return `settings` with this class as its type, for a type checker.

        Raises:
            TypeError: `settings` is no instance of this class. Those from `load` always are.
        """
        if not isinstance(settings, cls):
            raise TypeError(f"These settings lack those of {cls.__module__}.")
        return settings

    @property
    def advertised_address(self) -> str:
        """Host name or address that the broker advertises to clients."""
        return self.kafka_advertised_address or self.reach_address

    @property
    def reach_address(self) -> str:
        """Address at which this machine reaches servers on BIND_ADDRESS."""
        return "127.0.0.1" if self.bind_address == "0.0.0.0" else self.bind_address  # noqa: S104


@cache
def _whole() -> type[Settings]:
    """Return one class with the settings of the stack, all engines and all workloads."""
    modules = {**plugins.of_all_workloads("settings"), **plugins.of_all("settings")}
    bases: tuple[type[Settings], ...] = (*map(class_in, modules.values()), Settings)
    return create_model("WholeSettings", __base__=bases)


def every_setting() -> Mapping[str, FieldInfo]:
    """Return the settings of the stack, all engines and all workloads: lower-case name → field."""
    return _whole().model_fields


def class_in(module: ModuleType) -> type[Settings]:
    """Return the subclass of `Settings` that a `settings.py` defines."""
    (only,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Settings)
        and value.__module__ == module.__name__
    )
    return only


def own_names(module: ModuleType | None) -> tuple[str, ...]:
    """Return the lower-case names of the settings that a `settings.py` adds; () for no module."""
    named = class_in(module).model_fields if module else ()
    return tuple(name for name in named if name not in Settings.model_fields)


@cache
def of_engine(engine: str) -> tuple[str, ...]:
    """Return the lower-case names of the settings in the engine's `settings.py`."""
    return own_names(plugins.of_all("settings").get(engine))


def heaps_of_engine(engine: str) -> dict[str, float]:
    """Return the engine's settings for the sizes of its heaps, and of memory that it uses like a
    heap: lower-case name → share of the engine's memory. Empty if it has none."""
    shares = {name: 1.0 for name in of_engine(engine) if name.endswith(HEAP_ENDINGS)}
    for name in of_engine(engine):
        for mark in every_setting()[name].metadata:
            if isinstance(mark, ShareOfMemory):
                shares[name] = mark.share
    return shares


def size_bytes(settings: Settings, name: str) -> int:
    """Return the size in a setting, in bytes; a number without a unit is in MiB."""
    size = str(getattr(settings, name))
    return int(size) << 20 if size.isdigit() else units.parse_size_bytes(size)


def heap_bytes(engine: str, settings: Settings) -> int:
    """Return the size of an engine's heaps together, in bytes."""
    return sum(size_bytes(settings, name) for name in heaps_of_engine(engine))


def of_other_engines(*engines: str) -> frozenset[str]:
    """Return the lower-case names of the settings of all engines except these."""
    others = (name for name in plugins.engine_names() if name not in engines)
    return frozenset(name for other in others for name in of_engine(other))


def cores_of(settings: Mapping[str, object], service: str) -> str:
    """Return the cores of a service, by settings as they are recorded (`for_record`), in the syntax
    of ENGINE_CPUS; empty means all."""
    if plugins.service_module(service):
        return str(settings["engine_cpus"])
    own = {"broker": "broker_cpus", "loadgen": "loadgen_cpus"}.get(service, "harness_cpus")
    return str(settings[own] or settings["harness_cpus"])


def load(overrides: Mapping[str, str] | None = None) -> Settings:
    """Return the settings from all `.env` files and the environment.

    `overrides` (name as in `.env` → value) take precedence over both.

    Raises:
        UsageError: a value is missing or malformed; the message names the variable and the reason.
    """
    files = (ENV_FILE, *plugins.env_files())
    changed_ns = tuple(file.stat().st_mtime_ns for file in files if file.exists())
    return _load(frozenset((overrides or {}).items()), frozenset(os.environ.items()), changed_ns)


# Parsing takes a tenth of a second, and commands load the same settings many times.
@lru_cache(maxsize=32)
def _load(
    overrides: frozenset[tuple[str, str]],
    _environment: frozenset[tuple[str, str]],
    _changed_ns: tuple[int, ...],
) -> Settings:
    """Load settings; read them again if the environment or a file has changed."""
    chosen = renamed.in_settings(dict(overrides), "as an option or in a plan")
    given: dict[str, object] = {name.lower(): value for name, value in chosen.items()}
    if unknown := sorted(given.keys() - every_setting().keys()):
        name = unknown[0].upper()
        raise UsageError(
            f"There is no setting {name}.{_did_you_mean(name)} See .env, and `./race engines` for"
            " those of an engine."
        )
    refuse_unknown_in_files()
    environment = {name.upper() for name in os.environ}
    old = _old_names_in_files(_changed_ns).items()
    given = {name.lower(): value for name, value in old if name not in environment} | given
    try:
        # Fields that are not in `given` come from the environment and the files.
        return _whole()(_env_file=(ENV_FILE, *plugins.env_files()), **given)  # type: ignore
    except ValidationError as error:
        if not ENV_FILE.exists():
            raise UsageError(plugins.NO_ENV_FILE) from None
        reasons = "\n".join(f"  {_reason(fault)}" for fault in error.errors())
        raise UsageError(
            f"These settings (in .env or the environment) can't be used:\n{reasons}"
        ) from None


@lru_cache(maxsize=1)
def _old_names_in_files(_changed_ns: tuple[int, ...]) -> dict[str, str]:
    """Return the settings that files have under an old name: new name → value."""
    settings: dict[str, str] = {}
    for file in filter(Path.exists, (ENV_FILE, *plugins.env_files())):
        values = dotenv_values(file)
        now = renamed.in_settings(values, str(file))
        new = (new for old, new in renamed.SETTINGS.items() if old in values)
        settings |= {name: value for name in new if (value := now.get(name))}
    return settings


def defaults() -> Settings:
    """Return the settings from all `.env` files, ignoring the environment.

    Raises:
        UsageError: a value is missing or malformed, as in `load`.
    """
    files = (ENV_FILE, *plugins.env_files())
    values = {
        name: value
        for file in files
        for name, value in renamed.in_settings(dotenv_values(file), str(file)).items()
        if value is not None and name.lower() in every_setting()
    }
    return load(values)


@cache
def known_names() -> frozenset[str]:
    """Return the names allowed in `.env`, in capitals: all settings and all image versions."""
    brought = (
        getattr(module, "APPLICABILITY", None) for module in plugins.of_all("settings").values()
    )
    images = {name for rules in brought if rules for name in rules.image_versions}
    return frozenset({name.upper() for name in every_setting()} | {*IMAGE_VERSIONS} | images)


def refuse_unknown_in_files(files: Iterable[Path] | None = None) -> None:
    """Check that files contain known names only, each in one file. By default, check all `.env`
    files.

    Raises:
        UsageError: a name is unknown, or in two files, or a setting has two values under two names.
    """
    places: dict[str, Path] = {}
    for file in filter(Path.exists, files or (ENV_FILE, *plugins.env_files())):
        for name in renamed.in_settings(dotenv_values(file, interpolate=False), str(file)):
            if name in ENVIRONMENT_ONLY:
                raise UsageError(f"{name} in {file}: it is read from the environment only.")
            if name not in known_names() and not name.startswith(COMPOSE_PREFIXES):
                raise UsageError(f"{file}: there is no setting {name}.{_did_you_mean(name)}")
            if name in places:
                raise UsageError(
                    f"{name} is in {places[name]} and in {file}, where it belongs. Remove it from"
                    " the former."
                )
            places[name] = file


def unknown_in(environment: Iterable[str]) -> dict[str, str]:
    """Return the variables that look like misspelled settings, each with a hint ("" for none).

    Such a name is close to a setting's name or has the same prefix, and has no suffix that is usual
    for variables of other programs (`FLINK_HOME`, `MYSQL_HOST`).
    """
    prefixes = tuple({name.split("_")[0] + "_" for name in map(str.upper, every_setting())})
    hints = {}
    for name in sorted(set(environment) - known_names() - {*ENVIRONMENT_ONLY}):
        if removed := _removed(name):
            hints[name] = removed
        elif not name.endswith(OTHER_PROGRAMS) and not name.startswith(NO_SETTINGS):
            hint = _did_you_mean(name, at_least=0.85)
            if hint or name.startswith(prefixes):
                hints[name] = hint
    return hints


def _did_you_mean(name: str, at_least: float = 0.6) -> str:
    if removed := _removed(name):
        return removed
    if name.upper() in known_names():
        return " It is the version of an image: set it in the environment, for RUNTIME=compose."
    near = difflib.get_close_matches(name.upper(), known_names(), n=1, cutoff=at_least)
    return f" Did you mean {near[0]}?" if near else ""


def _removed(name: str) -> str:
    """Return what to do instead of a setting that was removed; "" for another name."""
    for names, remedy in {**REMOVED, **REPLACED}.items():
        if re.fullmatch(names, name.upper()):
            return f" It was removed. {remedy.format(property=_property_of(name))}."
    return ""


def _property_of(name: str) -> str:
    """Return the property that had a setting of its own: `ssl.ca.location` of
    KAFKA_SSL_CA_LOCATION."""
    prefix = "KAFKA_CLIENT_" if name.startswith("KAFKA_CLIENT_") else "KAFKA_"
    return name.removeprefix(prefix).removesuffix("_FILE").replace("_", ".").lower()


def refuse_replaced_in(environment: Mapping[str, str]) -> None:
    """Check that the environment has no setting that another one replaced.

    Raises:
        UsageError: it has some; the message has a line for each.
    """
    reasons = [
        f"  {name}:{_removed(name)}"
        for name, value in sorted(environment.items())
        if value and any(re.fullmatch(names, name) for names in REPLACED)
    ]
    if reasons:
        lines = "\n".join([*reasons, "  Then unset it."])
        raise UsageError(f"These settings (in the environment) can't be used:\n{lines}")


def _reason(error: ErrorDetails) -> str:
    """Describe why a setting is invalid."""
    context = error.get("ctx", {})
    if not error["loc"]:  # several settings together
        return str(context["error"])
    name = str(error["loc"][0]).upper()
    text = repr(error["input"])
    match error["type"]:
        case "value_error":
            why = str(context["error"])
        case "missing":
            why = "neither .env nor the environment sets it"
        case "literal_error":
            why = f"{text} is not one of {context['expected']}".replace(" or ", ", ")
        case "int_parsing":
            why = f"{text} is not a whole number"
        case "float_parsing":
            why = f"{text} is not a number"
        case "bool_parsing":
            why = f"{text} is neither true nor false"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            why = f"{text} is out of range: {error['msg'].removeprefix('Input ')}"
        case _:
            why = error["msg"]
    return f"{name}: {why}"


def content_of(settings: Settings, name: str) -> str:
    """Return the content of the file that the setting `name` contains; "" if the setting is empty.

    Raises:
        UsageError: the file can't be read.
    """
    path = getattr(settings, name)
    try:
        return Path(path).read_text() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "it is no text")
        raise UsageError(
            f"{name.upper()}: {path} can't be read ({why}). Name a file that this user may read."
        ) from None


def secret_content_of(settings: Settings, name: str) -> str:
    """Return the content of a file with a secret; "" if the setting is empty.

    Raises:
        UsageError: the file can't be read, or all users can read it.
    """
    content, path = content_of(settings, name), getattr(settings, name)
    if content and not path.startswith(f"{FILES_IN_PODS}/"):
        refuse_if_readable_by_all(name.upper(), path)
    return content


def refuse_if_readable_by_all(setting: str, path: str) -> None:
    """Check that not all users of this machine can read a file with a secret.

    Raises:
        UsageError: they can.
    """
    if Path(path).stat().st_mode & READABLE_BY_ALL:
        raise UsageError(
            f"{setting}: {path} contains a secret, and all users of this machine can read it. Use"
            f" `chmod 600 {path}`."
        )


def revealed(settings: Settings) -> dict[str, str]:
    """Return all settings with a value as environment variables, secrets in plain text.

    For another process or a container.
    """
    return {name.upper(): _text(value) for name, value in settings if value is not None}


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value).lower() if isinstance(value, bool) else str(value)


def for_record(settings: Settings) -> dict[str, str | int | float | bool | None]:
    """Return the settings for `run.json`: JSON values, with secrets masked."""
    dumped: dict[str, str | int | float | bool | None] = settings.model_dump(mode="json")
    return dumped
