"""Tokens for a Kafka with SASL/OAUTHBEARER, which a command of the user prints.

All clients get them from this process, by the standard way: a token endpoint of OAuth 2.0 for
client credentials (RFC 6749, section 4.4), which librdkafka and Java clients support. It listens on
the loopback interface, and requires a secret that the clients' properties contain. Each client
fetches its next token before the last one expires. No token is an argument, in a file or in a log.
"""

import base64
import hmac
import json
import re
import secrets
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from racetrack import environment
from racetrack.errors import SetupError
from racetrack.kafka_endpoint import CLIENT_ID

SETTING = "KAFKA_SASL_OAUTHBEARER_TOKEN_COMMAND"
COMMAND_WITHIN_S = 20.0
# Clients share a token until this share of its lifetime has passed. Since clients ask for the next
# token at 80 % of the lifetime, a shared token is of use to each of them for a while.
REUSED_FOR = 0.4
JWT = re.compile(r"[\w-]+\.([\w-]+)\.[\w-]+")  # header, claims and signature


class TokenError(SetupError):
    """The command gave no usable token."""


class Token:
    """A JSON Web Token; its signature is not checked. Raises TokenError if the text is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        claims = _claims(text)
        try:
            self.expires_s = float(claims["exp"])  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError):
            raise TokenError(
                f"{SETTING}: the command's output has no claim `exp`. It must print a JSON Web"
                " Token, and nothing else."
            ) from None
        now_s = time.time()
        if self.expires_s <= now_s:
            raise TokenError(f"{SETTING}: the command printed a token that has expired.")
        self.reused_until_s = now_s + REUSED_FOR * (self.expires_s - now_s)


def _claims(token: str) -> Mapping[str, object]:
    """Return the claims of a JSON Web Token, without a check of its signature."""
    found = JWT.fullmatch(token)
    try:
        payload = found[1] + "=" * (-len(found[1]) % 4) if found else ""
        claims = json.loads(base64.urlsafe_b64decode(payload))
    except ValueError:
        claims = None
    if not isinstance(claims, dict):
        raise TokenError(
            f"{SETTING}: the command's output is not a JSON Web Token. It must print one, and"
            " nothing else."
        )
    return claims


def by_command(command: str) -> str:
    """Run a command and return its output.

    Raises:
        TokenError: it can't be run, failed, or took too long.
    """
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_WITHIN_S,
            check=False,
            env=environment.of_download(),  # the user's variables, such as HOME
        )
    except subprocess.TimeoutExpired:
        raise TokenError(f"{SETTING}: no token within {COMMAND_WITHIN_S:.0f} s.") from None
    except OSError as error:
        raise TokenError(f"{SETTING}: the command can't be run: {error.strerror}.") from None
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
        raise TokenError(f"{SETTING}: the command failed with {done.returncode}: {why}")
    return done.stdout.strip()


class TokenEndpoint:
    """Gives tokens to clients that know the secret, in threads of this process until it ends."""

    def __init__(self, get_token: Callable[[], str]) -> None:
        """`get_token` returns a new JSON Web Token; it raises TokenError."""
        self.secret = secrets.token_hex(16)
        self._get_token, self._lock = get_token, threading.Lock()
        self._last: Token | None = None

    def token(self) -> Token:
        """Return a token that has more than half of its lifetime left.

        Raises:
            TokenError: the command gave no usable token.
        """
        with self._lock:
            if self._last is None or time.time() > self._last.reused_until_s:
                self._last = Token(self._get_token())
            return self._last

    @cached_property
    def url(self) -> str:
        """Address of the endpoint. Reading it for the first time lets the endpoint listen."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/token"

    def is_allowed(self, authorization: str) -> bool:
        """Return True if the value of an HTTP header contains the secret."""
        expected = base64.b64encode(f"{CLIENT_ID}:{self.secret}".encode()).decode()
        return hmac.compare_digest(authorization, f"Basic {expected}")


def _handler(endpoint: TokenEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not endpoint.is_allowed(self.headers.get("Authorization", "")):
                self._answer(HTTPStatus.UNAUTHORIZED, {"error": "invalid_client"})
                return
            try:
                token = endpoint.token()
            except TokenError as error:
                answer = {"error": "server_error", "error_description": str(error)}
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, answer)
                return
            left_s = max(1, int(token.expires_s - time.time()))
            given = {"access_token": token.text, "token_type": "Bearer", "expires_in": left_s}
            self._answer(HTTPStatus.OK, given)

        def _answer(self, status: HTTPStatus, content: Mapping[str, object]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


_endpoints: dict[str, TokenEndpoint] = {}
_making = threading.Lock()


def endpoint_of(command: str) -> TokenEndpoint:
    """Return this process's endpoint for the tokens that the command prints."""
    with _making:
        if command not in _endpoints:
            _endpoints[command] = TokenEndpoint(lambda: by_command(command))
        return _endpoints[command]
