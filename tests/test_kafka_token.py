"""Tests of the endpoint from which Kafka's clients get their tokens."""

import base64
import json
import time
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from racetrack.kafka_token import TokenEndpoint, TokenError, by_command


def token(lifetime_s: float, number: int = 0) -> str:
    claims = {"sub": "me", "exp": time.time() + lifetime_s, "jti": number}
    encoded = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, claims)
    )
    return ".".join([*encoded, "signature"])


def numbered(lifetime_s: float) -> Callable[[], str]:
    issued = iter(range(100))
    return lambda: token(lifetime_s, next(issued))


def fetch(endpoint: TokenEndpoint, secret: str) -> tuple[int, dict[str, object]]:
    both = base64.b64encode(f"racetrack:{secret}".encode()).decode()
    address = urlsplit(endpoint.url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=5)
    body, headers = "grant_type=client_credentials", {"Authorization": f"Basic {both}"}
    connection.request("POST", address.path, body, headers)
    answer = connection.getresponse()
    return answer.status, json.load(answer)


def test_clients_with_the_secret_get_a_token() -> None:
    issued = token(60)
    endpoint = TokenEndpoint(lambda: issued)
    status, answer = fetch(endpoint, endpoint.secret)
    assert status == 200
    assert answer["access_token"] == issued
    assert answer["expires_in"] in (58, 59, 60)


def test_others_get_none() -> None:
    status, answer = fetch(TokenEndpoint(lambda: token(60)), "guessed")
    assert (status, answer) == (401, {"error": "invalid_client"})


def test_a_token_is_used_again_while_it_has_most_of_its_lifetime() -> None:
    endpoint = TokenEndpoint(numbered(1.0))
    first = endpoint.token().text
    assert endpoint.token().text == first
    time.sleep(0.5)
    assert endpoint.token().text != first


def test_a_failure_of_the_command_is_the_answer_and_the_next_try_may_succeed() -> None:
    tries = iter([TokenError("the issuer is away"), None])

    def get_token() -> str:
        if failure := next(tries):
            raise failure
        return token(60)

    endpoint = TokenEndpoint(get_token)
    status, answer = fetch(endpoint, endpoint.secret)
    assert (status, answer["error_description"]) == (500, "the issuer is away")
    assert fetch(endpoint, endpoint.secret)[0] == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opaque",
        "a.b.c",
        token(60).removesuffix("signature"),
        f"{token(60)} {token(60)}",
        token(-1),
    ],
    ids=["nothing", "opaque", "no JSON", "no signature", "two tokens", "expired"],
)
def test_other_output_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(TokenError, match="KAFKA_SASL_OAUTHBEARER_TOKEN_COMMAND") as refused:
        TokenEndpoint(lambda: text).token()
    assert not text or text not in str(refused.value)


def test_a_command_is_split_as_by_a_shell() -> None:
    assert by_command("printf '%s-%s' 'a b' c") == "a b-c"
    with pytest.raises(TokenError, match="failed with 3: no luck"):
        by_command("sh -c 'echo no luck >&2; exit 3'")
