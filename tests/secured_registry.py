"""A real Apicurio Registry for tests, behind TLS and a password."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from racetrack import install
from racetrack.install.apt import own_loader
from racetrack.stack import jvm, net
from tests.ports import free_ports
from tests.secured_kafka import make_certificates
from tests.servers import running

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


def proxy(folder: Path, port: int, behind_port: int, user: str, password: str) -> list[str]:
    """Return the command of a proxy (nginx) that adds TLS, with the certificate in `folder`, and a
    password to a server on `behind_port`."""
    part = install.ensure(["nginx"], install.read_versions(), print)["nginx"]
    hashed = subprocess.run(
        ["openssl", "passwd", "-apr1", "-stdin"],
        input=password,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (folder / "users").write_text(f"{user}:{hashed}")
    (folder / "nginx.conf").write_text(_nginx(folder, port, behind_port))
    options = ("-e", "stderr", "-p", f"{folder}/", "-c", str(folder / "nginx.conf"))
    return [*own_loader(part, "usr/sbin/nginx"), *options]


def _nginx(folder: Path, port: int, behind_port: int) -> str:
    paths = "".join(
        f"{name}_temp_path {folder}/nginx-{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
daemon off;
master_process off;
pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
    access_log {folder}/access.log;
    {paths}
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {folder}/broker.pem;
        ssl_certificate_key {folder}/broker.key;
        auth_basic "tests";
        auth_basic_user_file {folder}/users;
        location / {{ proxy_pass http://127.0.0.1:{behind_port}; }}
    }}
}}
"""
