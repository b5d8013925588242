"""What PostgreSQL's published image is like: see racetrack/stack/compose/published.py."""

from racetrack.stack.compose.image_facts import STAND_IN, Fact, Image, Source, User, names

_POSTGRES = "docker-library/postgres", "6edb0a8c4def"
_POSTGRES_FILE = Source(_POSTGRES[0], "17/trixie/Dockerfile", _POSTGRES[1])
_POSTGRES_ENTRY = Source(_POSTGRES[0], "17/trixie/docker-entrypoint.sh", _POSTGRES[1])

POSTGRES = Image(
    "postgres",
    "17.",
    programs=Fact(names("bash sh postgres psql pg_isready"), _POSTGRES_FILE, STAND_IN),
    user=Fact(User("postgres", 999, starts_as_root=True), _POSTGRES_ENTRY, STAND_IN),
    # Of 17. From 18 on PGDATA is /var/lib/postgresql/18/docker, and that mount is an error.
    data=Fact("/var/lib/postgresql/data", _POSTGRES_FILE, STAND_IN),
    variables=Fact(
        names(
            "POSTGRES_USER POSTGRES_DB POSTGRES_PASSWORD POSTGRES_INITDB_ARGS"
            " POSTGRES_INITDB_WALDIR POSTGRES_HOST_AUTH_METHOD PGDATA"
        ),
        _POSTGRES_ENTRY,
        STAND_IN,
    ),
    defaults={
        "the server that makes the database": Fact("listen_addresses=''", _POSTGRES_ENTRY, STAND_IN)
    },
)

IMAGES = (POSTGRES,)
