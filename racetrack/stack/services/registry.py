"""The schema registry: Apicurio, in memory, behind nginx.

Apicurio serves Confluent's API under a path. One engine's client drops the path of the registry's
URL, so nginx serves the API at the root, as Redpanda does. If the user provides a registry, this
service is only an nginx that relays requests to it (`own_registry.py`).
"""

import json
import shlex
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from racetrack.config import Settings
from racetrack.install.apt import own_loader
from racetrack.stack import jvm, net, own_registry
from racetrack.stack.prebuilt import Archive, training
from racetrack.stack.service import Context, Launch, NotReady

PROCESS_ID = "com.arjuna.ats.internal.arjuna.utils.MBeanProcessId"
# Apicurio listens on a free port of this address. Outgoing connections of this machine use
# 127.0.0.1, so they can't take the port before Apicurio does.
BEHIND = "127.0.0.2"
BEHIND_FILE = "apicurio.port"
API = "/apis/ccompat/v7"
HEADERS = {"Host": "$http_host"}
# The certificate authorities of Debian's package ca-certificates.
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def url(settings: Settings) -> str:
    """Return the URL of the registry, which serves Confluent's API at the root."""
    return f"http://{net.registry(settings)}"


def native_url(settings: Settings) -> str:
    """Return the URL of Apicurio's own API, version 2, which its Avro converter uses."""
    return f"{url(settings)}/apis/registry/v2"


def subjects(settings: Settings) -> set[str]:
    """Return the registered subjects.

    Raises:
        NotReady: the registry does not answer.
    """
    found = net.get_json(f"{url(settings)}/subjects")
    if not isinstance(found, list):
        raise NotReady(f"GET {url(settings)}/subjects: a list was expected, not {found!r}")
    return set(found)


class Registry:
    """Apicurio and nginx as a native service."""

    name = "registry"
    parts = ("registry", "nginx")
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"SCHEMA_REGISTRY_PORT": settings.schema_registry_port}

    def launch(self, context: Context) -> Launch:
        """Return a launch of Apicurio with nginx as its child. If one ends, the other ends too."""
        if context.settings.registry_url:
            settings = context.settings
            authorization = own_registry.authorization(settings)
            authorities = settings.registry_ssl_ca_location
            listen, url = _listen(context), settings.registry_url
            return Launch(relay(context, listen, url, authorization, authorities), cwd=context.work)
        jar = _jar(context)
        archive = Archive(self.name, "registry", str(jar), training(_apicurio), _answers)
        apicurio = _apicurio(context, archive.option(context))
        proxy = nginx_command(
            context, nginx_configuration(context.work, _listen(context), _behind(context))
        )
        both = f"{{ {shlex.join(proxy)}; kill $$; }} & exec {shlex.join(apicurio.argv)}"
        return Launch(argv=["sh", "-c", both], cwd=context.work, faster=archive)

    def check(self, context: Context) -> None:
        subjects(context.settings)

    def versions(self, context: Context) -> Mapping[str, str]:
        nginx = (context.parts["nginx"] / "VERSION").read_text().strip()
        if context.settings.registry_url:
            return {"nginx": nginx}
        version = _jar(context).name.removeprefix("apicurio-registry-app-")
        return {
            "apicurio": version.removesuffix("-runner.jar"),
            "nginx": nginx,
        }


def _apicurio(context: Context, options: Sequence[str]) -> Launch:
    with socket.create_server((BEHIND, 0)) as free:
        port = free.getsockname()[1]
    (context.work / BEHIND_FILE).write_text(str(port))
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(jvm.REGISTRY_HEAP, context.work, context.settings),
            *jvm.for_a_small_part(),
            *options,
            f"-Dquarkus.http.host={BEHIND}",
            f"-Dquarkus.http.port={port}",
            "-Dquarkus.log.level=WARN",
            # Otherwise Apicurio's transaction manager opens a port just to identify the process.
            f"-DCoreEnvironmentBean.processImplementationClassName={PROCESS_ID}",
            "-jar",
            str(_jar(context)),
        ],
        cwd=context.work,
    )


def _behind(context: Context) -> str:
    """Return Apicurio's `host:port`."""
    return net.endpoint(BEHIND, int((context.work / BEHIND_FILE).read_text()))


def _answers(context: Context) -> None:
    """Register a schema directly with Apicurio, because no nginx runs while the class archive is
    made."""
    api = f"http://{_behind(context)}{API}/subjects"
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": "long"}]}
    status, _ = net.request(f"{api}/training/versions", "POST", {"schema": json.dumps(schema)})
    if status != 200:
        raise NotReady(f"POST {api}/training/versions: HTTP {status}")
    net.get_json(api)


def _jar(context: Context) -> Path:
    return next(context.parts["registry"].glob("apicurio-registry-app-*-runner.jar"))


def _listen(context: Context) -> str:
    settings = context.settings
    return net.endpoint(settings.bind_address, settings.schema_registry_port)


def relay(
    context: Context, listen: str, address: str, authorization: str, authorities: str
) -> list[str]:
    """Return the command of nginx as a relay, at `listen`, to the service at the URL `address`.

    `authorization` is the value of the header `Authorization`. `authorities` is a PEM file with
    certificate authorities; if it is empty, the system's authorities are used.
    """
    url = urlsplit(address)
    port = url.port or (443 if url.scheme == "https" else 80)
    # A registry serves its own API next to Confluent's, under the root of the same server.
    origin = f"{url.scheme}://apicurio"
    return nginx_command(
        context,
        nginx_configuration(
            context.work,
            listen,
            f"{url.hostname}:{port}",
            api=f"{origin}{url.path.rstrip('/')}",
            origin=origin,
            headers={"Host": url.netloc, "Authorization": authorization},
            tls=_tls(url.hostname or "", authorities or AUTHORITIES),
        ),
    )


def _tls(host: str, authorities: str) -> str:
    return f"""
    proxy_ssl_verify on;
    proxy_ssl_verify_depth 5;
    proxy_ssl_trusted_certificate {authorities};
    proxy_ssl_server_name on;
    proxy_ssl_name {host};"""


def nginx_command(context: Context, configuration: str) -> list[str]:
    """Write the configuration, and return the command of nginx in the foreground."""
    part, work = context.parts["nginx"], context.work
    file = work / "nginx.conf"
    file.touch(mode=0o600)  # only for this user: it may contain a password
    file.write_text(configuration)
    # Without -e nginx tries to open the log file whose path was compiled in.
    return [*own_loader(part, "usr/sbin/nginx"), "-e", "stderr", "-p", f"{work}/", "-c", str(file)]


def nginx_configuration(
    work: Path,
    listen: str,
    upstream: str,
    api: str = f"http://apicurio{API}",
    origin: str = "http://apicurio",
    headers: Mapping[str, str] = HEADERS,
    tls: str = "",
) -> str:
    """Return the content of nginx.conf. Nothing is buffered, so nginx writes no files.

    `listen` and `upstream` are `host:port`. `api` is the URL of Confluent's API, and `origin` is
    the URL of the registry. Both name the host `apicurio`, which nginx resolves to `upstream`.
    `headers` are sent with each request; an empty value removes the header.
    """
    sent = "\n".join(
        f"    proxy_set_header {name} {json.dumps(value)};" for name, value in headers.items()
    )
    folders = "\n".join(f"    {name}_temp_path {work}/nginx-{name};" for name in TEMPORARY)
    return f"""\
daemon off;
# A single process: the title of a master would overwrite the mark by which the stack finds nginx.
master_process off;
pid {work}/nginx.pid;
# Apicurio may still be starting, so a failed request is no error.
error_log stderr crit;
events {{ worker_connections 512; }}
http {{
    access_log off;
{folders}
    client_max_body_size 0;
    proxy_request_buffering off;
    proxy_buffering off;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
{sent}{tls}
    upstream apicurio {{ server {upstream}; keepalive 8; }}
    server {{
        listen {listen};
        # $request_uri keeps a %2F in a subject's name encoded.
        location / {{ proxy_pass {api}$request_uri; }}
        location /apis/ {{ proxy_pass {origin}; }}
    }}
}}
"""


SERVICE = Registry()
