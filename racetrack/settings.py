"""`.env` and the environment become one frozen Settings; nothing else reads either.

An engine's own settings are the class `Knobs` in `racetrack/engines/<engine>/knobs.py`, with their
defaults in `racetrack/engines/<engine>/.env`. `load` combines all of them.
"""

import re
from collections.abc import Mapping
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from racetrack import plugins
from racetrack.errors import UsageError

REPO = plugins.REPO

Port = Annotated[int, Field(ge=1, le=65535)]
Heap = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[mg]$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,30}$")]
Size = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[mMgG]$")]
Address = Annotated[str, AfterValidator(lambda text: str(IPv4Address(text)))]
HostOrNothing = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]*$")]
Cores = Annotated[str, StringConstraints(pattern=r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$")]
Count = Annotated[int, Field(ge=1)]
Percent = Annotated[float, Field(ge=0)]
Rate = Annotated[int, Field(ge=0)]


def _from_here(path: Path) -> Path:
    """A folder as it stands in `.env`, from the repository on."""
    if path == Path():
        raise ValueError("name a folder")
    return REPO / path.expanduser()


Folder = Annotated[Path, AfterValidator(_from_here)]


class Settings(BaseSettings):
    """Every knob of `.env` but the engines', under its own name in lower case; the environment wins
    over the file.

    Ports are TCP ports, heaps are JVM sizes such as `512m` or `4g`, rates are events per second.
    """

    model_config = SettingsConfigDict(
        env_file=REPO / ".env", frozen=True, extra="ignore", str_strip_whitespace=True
    )

    runtime: Literal["auto", "compose", "native"]
    airgap: bool

    # What a run says does not depend on where it is kept.
    logs_folder: Folder = Field(exclude=True)

    engine_cpus: Cores
    broker_cpus: Cores
    loadgen_cpus: Cores
    harness_cpus: Cores

    noise_gate: bool
    foreign_cpu_max_pct: Percent
    steal_max_pct: Percent
    core_speed_min_pct: Percent

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

    kafka_heap: Heap
    kafka_retention_bytes: Annotated[int, Field(ge=-1)]
    schema_registry_heap: Heap
    connect_heap: Heap
    redpanda_smp: Count
    redpanda_memory: str
    redpanda_tmpfs: Size
    mysql_tmpfs: Size

    kafka_version: str
    apicurio_version: str
    debezium_version: str

    workload: Name
    purchases_per_second_start: Rate
    pageviews_per_second_start: Rate
    marks_per_second: Rate
    reads_per_second: Rate
    updates_per_second: Rate
    deletes_per_second: Rate
    pageviews_partitions: Count
    loadgen_seed: int
    loadgen_acks: Literal["0", "1", "all"]

    # Set inside containers only: the names of the peers that are not on this machine, and what the
    # broker tells clients outside the containers (`host:port`). A run has no say in them.
    peer_mysql: str = Field(default="", exclude=True)
    peer_kafka: str = Field(default="", exclude=True)
    peer_registry: str = Field(default="", exclude=True)
    peer_redis: str = Field(default="", exclude=True)
    kafka_outside: str = Field(default="", exclude=True)

    mysql_root_password: SecretStr
    mysql_shop_password: SecretStr
    mysql_debezium_password: SecretStr

    @field_validator("redpanda_memory")
    @classmethod
    def _redpanda_starts_with_it(cls, size: str, info: ValidationInfo) -> str:
        if not re.fullmatch(r"[1-9][0-9]*[MG]", size):
            raise PydanticCustomError(
                "redpanda_memory", "Redpanda reads sizes such as 1500M or 2G, with a capital letter"
            )
        gib = int(size[:-1]) / (1 if size.endswith("G") else 1024)
        cores: int = info.data.get("redpanda_smp", 1)
        if gib < cores:
            raise PydanticCustomError(
                "redpanda_memory",
                "Redpanda does not start with less than 1 GiB for each core, and REDPANDA_SMP is"
                " {cores}: make it {cores}G or more",
                {"cores": cores},
            )
        return size

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """The same settings, known to have the knobs of this class.

        Raises:
            TypeError: they have not; only `load` makes settings that have the knobs of all engines.
        """
        if not isinstance(settings, cls):
            raise TypeError(f"These settings lack those of {cls.__module__}.")
        return settings

    @property
    def advertised_address(self) -> str:
        """Where the broker tells its clients to find it."""
        return self.kafka_advertised_address or self.reach_address

    @property
    def reach_address(self) -> str:
        """Where this machine reaches what listens on BIND_ADDRESS."""
        return "127.0.0.1" if self.bind_address == "0.0.0.0" else self.bind_address  # noqa: S104


@cache
def _whole() -> type[Settings]:
    """Settings with the knobs of all engines and workloads."""
    modules = {**plugins.of_all_workloads("knobs"), **plugins.of_all("knobs")}
    bases = (*(module.Knobs for module in modules.values()), Settings)
    whole: type[Settings] = create_model("WholeSettings", __base__=bases)
    whole.model_config["env_file"] = (REPO / ".env", *plugins.env_files())
    return whole


def every_setting() -> Mapping[str, FieldInfo]:
    """Name in lower case → what it takes, of the stack's and all engines' settings."""
    return _whole().model_fields


def own_names(knobs: ModuleType | None) -> tuple[str, ...]:
    """Names in lower case of the settings that a `knobs.py` adds, if there is one."""
    named = knobs.Knobs.model_fields if knobs else ()
    return tuple(name for name in named if name not in Settings.model_fields)


@cache
def of_engine(engine: str) -> tuple[str, ...]:
    """Names in lower case of the settings that only this engine heeds: its `knobs.py` has them."""
    return own_names(plugins.of_all("knobs").get(engine))


def of_other_engines(engine: str) -> frozenset[str]:
    """Names in lower case of those that it does not heed, since they are another's."""
    others = (name for name in plugins.engine_names() if name != engine)
    return frozenset(name for other in others for name in of_engine(other))


def load(overrides: Mapping[str, str] | None = None) -> Settings:
    """Read `.env`, the engines' own, and the environment; `overrides`, by the names in `.env`, win
    over all.

    Raises:
        UsageError: a value is missing or malformed; the message names the variable and the reason.
    """
    given = {name.lower(): value for name, value in (overrides or {}).items()}
    if unknown := sorted(given.keys() - every_setting().keys()):
        raise UsageError(
            f"There is no setting {', '.join(unknown).upper()}: see .env, and `./race engines` for"
            " those of an engine."
        )
    try:
        # The fields that are not given come from the environment.
        return _whole()(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        reasons = [f"{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors()]
        raise UsageError(
            "These settings (in .env or the environment) can't be used: " + "; ".join(reasons)
        ) from None


def revealed(settings: Settings) -> dict[str, str]:
    """All that are set, with their secrets, by their names in `.env`: what another process or a
    container takes from its environment."""
    return {name.upper(): _text(value) for name, value in settings if value is not None}


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value).lower() if isinstance(value, bool) else str(value)


def for_record(settings: Settings) -> dict[str, str | int | float | bool | None]:
    """The settings as they go into `run.json`: JSON values, secrets masked."""
    dumped: dict[str, str | int | float | bool | None] = settings.model_dump(mode="json")
    return dumped
