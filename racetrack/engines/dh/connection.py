"""Sessions on a Deephaven server: the stack's own, or the one that the user provides at
DEEPHAVEN_URL."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from racetrack.config import Settings, refuse_if_readable_by_all
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.errors import RacetrackError, UsageError

if TYPE_CHECKING:
    from pydeephaven import Session

CONNECT_WITHIN_S = 5.0
# A gRPC client changes its window as it probes the bandwidth. Under load the server may send by the
# new window before it acknowledges it, and the client then ends the connection ("frame … overflows
# local window"). So the window is fixed, and large enough for a table.
_FIXED_WINDOW: list[tuple[str, int | str]] = [
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 4 << 20),
]
_PSK_HANDLER = "io.deephaven.authentication.psk.PskAuthenticationHandler"


class Refused(RacetrackError):
    """No connection to the server is possible. `setting` is the name of the setting to look at, and
    `remedy` is a clause without a full stop."""

    def __init__(self, answer: str, setting: str, remedy: str) -> None:
        super().__init__(answer)
        self.setting, self.remedy = setting, remedy


def connect(settings: Settings) -> "Session":
    """Open a session on the server of these settings. Tables created in the session remain after
    its end.

    Raises:
        UsageError: a file that a setting names can't be read.
        Refused: the server does not answer or does not accept the key.
    """
    from pydeephaven import DHError, Session

    own = DeephavenSettings.of(settings)
    url = urlsplit(own.deephaven_url)
    host, port = url.hostname or settings.reach_address, url.port or own.deephaven_port
    is_encrypted = url.scheme == "https"
    # Read first, so that a missing file is reported even if the server can't be reached.
    key = _key(own)
    authorities = _authorities(own) if is_encrypted else None
    # Try a plain connection first: a gRPC client would take longer to notice that the server can't
    # be reached, and would not give the reason.
    try:
        socket.create_connection((host, port), CONNECT_WITHIN_S).close()
    except OSError as error:
        answer = f"no connection to {host}:{port}: {error.strerror or error}"
        raise Refused(answer, "DEEPHAVEN_URL", "Check host and port") from error
    try:
        return Session(
            host=host,
            port=port,
            auth_type=_PSK_HANDLER,
            auth_token=key,
            use_tls=is_encrypted,
            tls_root_certs=authorities,
            client_opts=_FIXED_WINDOW,
        )
    except DHError as error:
        raise _refusal(error, own) from error


@contextmanager
def opened(settings: Settings) -> "Iterator[Session]":
    """Open a session as `connect` does, for a `with` statement."""
    from pydeephaven import DHError

    session = connect(settings)
    try:
        yield session
    finally:
        with suppress(DHError):  # the server may have ended
            session.close()


@contextmanager
def reading(settings: Settings) -> "Iterator[Session]":
    """Open a session as `opened` does, but let refused requests raise RacetrackError."""
    from pydeephaven import DHError

    try:
        with opened(settings) as session:
            yield session
    except DHError as error:
        raise RacetrackError(f"Deephaven refused a request: {cause_of(error)}") from error


def cause_of(error: Exception) -> str:
    """Return the server's answer in an error of pydeephaven, on one line."""
    cause = _first_cause(error)
    # Errors of gRPC contain the answer and a code.
    answer = cause.details() if hasattr(cause, "details") else cause
    return " ".join(str(answer).split())


def _refusal(error: Exception, own: DeephavenSettings) -> Refused:
    cause, answer = _first_cause(error), cause_of(error)
    if hasattr(cause, "code") and cause.code().name == "UNAUTHENTICATED":
        setting = "DEEPHAVEN_PSK_FILE" if own.deephaven_psk_file else "DEEPHAVEN_PSK"
        remedy = "The key must be the server's, in DEEPHAVEN_PSK or DEEPHAVEN_PSK_FILE"
        return Refused(answer, setting, remedy)
    if "CERTIFICATE" in answer:
        remedy = "Name the file of the authority that signed the server's certificate"
        return Refused(answer, "DEEPHAVEN_SSL_CA_LOCATION", remedy)
    remedy = "Check the scheme (http or https), and that a Deephaven listens there"
    return Refused(answer, "DEEPHAVEN_URL", remedy)


def _first_cause(error: BaseException) -> Any:
    """Return the innermost cause of an error."""
    while error.__cause__:
        error = error.__cause__
    return error


def _key(own: DeephavenSettings) -> str:
    if not own.deephaven_psk_file:
        return own.deephaven_psk.get_secret_value()
    key = _content(own.deephaven_psk_file, "DEEPHAVEN_PSK_FILE").decode().strip()
    refuse_if_readable_by_all("DEEPHAVEN_PSK_FILE", own.deephaven_psk_file)
    return key


def _authorities(own: DeephavenSettings) -> bytes | None:
    """Return the certificates of DEEPHAVEN_SSL_CA_LOCATION; None for the system's authorities."""
    path = own.deephaven_ssl_ca_location
    return _content(path, "DEEPHAVEN_SSL_CA_LOCATION") if path else None


def _content(path: str, setting: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{setting}: {path} can't be read ({error.strerror}).") from None
