"""A real Apicurio Registry for tests, behind TLS and a password.

`python -m tests.secured_registry` starts it, and prints the settings for a run that uses it.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from racetrack import install
from racetrack.stack import jvm, net
from tests.ports import free_ports
from tests.secured_kafka import make_certificates
from tests.secured_proxy import proxy
from tests.servers import print_settings, running

USER, PASSWORD = "race", 'regi"stry $secret'
API = "/apis/ccompat/v7"


@dataclass(frozen=True)
class SecuredRegistry:
    """A running registry."""

    port: int
    behind_port: int  # without TLS and password
    folder: Path

    def settings(self) -> dict[str, str]:
        """Return the settings of a run that uses this server."""
        return {
            "REGISTRY_URL": f"https://localhost:{self.port}{API}",
            "REGISTRY_USERNAME": USER,
            "REGISTRY_PASSWORD_FILE": str(self.folder / "registry-password"),
            "REGISTRY_SSL_CA_LOCATION": str(self.folder / "ca.pem"),
        }

    def subjects(self) -> set[str]:
        """Return the names of all schemas."""
        found = net.get_json(f"http://127.0.0.1:{self.behind_port}{API}/subjects")
        assert isinstance(found, list)
        return set(found)

    def register(self, subject: str) -> None:
        """Register a schema under this name."""
        url = f"http://127.0.0.1:{self.behind_port}{API}/subjects/{subject}/versions"
        status, answer = net.request(url, "POST", {"schema": '"string"'})
        assert status == 200, answer


@contextmanager
def secured_registry(folder: Path) -> Iterator[SecuredRegistry]:
    """Start the registry; stop it at the end."""
    parts = install.ensure(["registry"], install.read_versions(), print)
    port, behind_port = free_ports(2)
    make_certificates(folder)
    (folder / "registry-password").write_text(f"{PASSWORD}\n")
    (folder / "registry-password").chmod(0o600)
    jar = next(parts["registry"].glob("apicurio-registry-app-*-runner.jar"))
    listen = ("-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={behind_port}")
    commands = [
        [str(jvm.java()), "-Xmx128m", *listen, "-jar", str(jar)],
        proxy(folder, port, behind_port, USER, PASSWORD),
    ]
    registry = SecuredRegistry(port, behind_port, folder)
    with running(commands, folder, lambda: registry.subjects() is not None):
        yield registry


def main() -> None:
    """Start the registry, print the settings, and stop it when the input ends."""
    with tempfile.TemporaryDirectory() as name, secured_registry(Path(name)) as registry:
        print_settings(registry.settings())


if __name__ == "__main__":
    main()
