"""A proxy (nginx) that adds TLS and a password to a server of the tests."""

import subprocess
from pathlib import Path

from racetrack import install
from racetrack.install.apt import own_loader


def proxy(folder: Path, port: int, behind_port: int, user: str, password: str) -> list[str]:
    """Return the command of a proxy for a server on `behind_port`. `folder` contains certificate
    and key from `make_certificates` in `secured_kafka`."""
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
