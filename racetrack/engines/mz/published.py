"""What Materialize's published image is like: see racetrack/stack/compose/published.py."""

from racetrack.stack.compose.image_facts import Fact, Image, Source, User, names

_MATERIALIZE = "MaterializeInc/materialize", "of 2025, commit not known"
_MATERIALIZE_ENTRY = Source(_MATERIALIZE[0], "src/materialized/ci/entrypoint.sh", _MATERIALIZE[1])
_MATERIALIZE_FILE = Source(
    _MATERIALIZE[0], "misc/images/materialized-base/Dockerfile", "3fabdf946f44"
)

MATERIALIZE = Image(
    "materialize/materialized",
    "v26.",
    programs=Fact(names("bash sh curl"), _MATERIALIZE_FILE),
    user=Fact(User("materialize", 999, starts_as_root=False), _MATERIALIZE_FILE),
    data=Fact("/mzdata", _MATERIALIZE_FILE),
    variables=Fact(
        names(
            "MZ_NO_TELEMETRY MZ_CLUSTER_REPLICA_SIZES MZ_SYSTEM_PARAMETER_DEFAULT MZ_EAT_MY_DATA"
            " MZ_BOOTSTRAP_DEFAULT_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_SYSTEM_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_PROBE_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_SUPPORT_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_CATALOG_SERVER_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_ANALYTICS_CLUSTER_REPLICA_SIZE"
        ),
        _MATERIALIZE_ENTRY,
    ),
    defaults={
        "its own PostgreSQL": Fact("port 26257", _MATERIALIZE_ENTRY),
        "MZ_BOOTSTRAP_ROLE": Fact("materialize", _MATERIALIZE_ENTRY),
    },
)

IMAGES = (MATERIALIZE,)
