"""The schema registry: Apicurio, in memory, behind nginx.

Apicurio serves Confluent's API under a path. One engine's client drops the path of the registry's
URL, so nginx serves the API at the root, as Redpanda does.
"""

import json
import shlex
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.config import Settings
from racetrack.install.apt import own_loader
from racetrack.stack import jvm, net
from racetrack.stack.prebuilt import Archive, training
from racetrack.stack.service import Context, Launch, NotReady

PROCESS_ID = "com.arjuna.ats.internal.arjuna.utils.MBeanProcessId"
# Apicurio listens on a free port of this address. Outgoing connections of this machine use
# 127.0.0.1, so they can't take the port before Apicurio does.
BEHIND = "127.0.0.2"
BEHIND_FILE = "apicurio.port"
API = "/apis/ccompat/v7"
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
        jar = _jar(context)
        archive = Archive(self.name, "registry", str(jar), training(_apicurio), _answers)
        apicurio = _apicurio(context, archive.option(context))
        settings = context.settings
        proxy = nginx_command(
            context.parts["nginx"],
            context.work,
            net.endpoint(settings.bind_address, settings.schema_registry_port),
            _behind(context),
        )
        both = f"{{ {shlex.join(proxy)}; kill $$; }} & exec {shlex.join(apicurio.argv)}"
        return Launch(argv=["sh", "-c", both], cwd=context.work, faster=archive)

    def check(self, context: Context) -> None:
        subjects(context.settings)

    def versions(self, context: Context) -> Mapping[str, str]:
        version = _jar(context).name.removeprefix("apicurio-registry-app-")
        return {
            "apicurio": version.removesuffix("-runner.jar"),
            "nginx": (context.parts["nginx"] / "VERSION").read_text().strip(),
        }


def _apicurio(context: Context, options: Sequence[str]) -> Launch:
    with socket.create_server((BEHIND, 0)) as free:
        port = free.getsockname()[1]
    (context.work / BEHIND_FILE).write_text(str(port))
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(context.settings.schema_registry_heap, context.work, context.settings),
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
    """Register a schema directly with Apicurio, because there is no nginx during a training."""
    api = f"http://{_behind(context)}{API}/subjects"
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": "long"}]}
    status, _ = net.request(f"{api}/training/versions", "POST", {"schema": json.dumps(schema)})
    if status != 200:
        raise NotReady(f"POST {api}/training/versions: HTTP {status}")
    net.get_json(api)


def _jar(context: Context) -> Path:
    return next(context.parts["registry"].glob("apicurio-registry-app-*-runner.jar"))


def nginx_command(part: Path, work: Path, listen: str, upstream: str) -> list[str]:
    """Write the configuration into `work` and return the command of nginx in the foreground.

    `listen` and `upstream` are `host:port`.
    """
    file = work / "nginx.conf"
    file.write_text(nginx_configuration(work, listen, upstream))
    # Without -e nginx tries to open the log file whose path was compiled in.
    return [*own_loader(part, "usr/sbin/nginx"), "-e", "stderr", "-p", f"{work}/", "-c", str(file)]


def nginx_configuration(work: Path, listen: str, upstream: str) -> str:
    """Return the content of nginx.conf. Nothing is buffered, so nginx writes no files."""
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
    proxy_set_header Host $http_host;
    upstream apicurio {{ server {upstream}; keepalive 8; }}
    server {{
        listen {listen};
        # $request_uri keeps a %2F in a subject's name encoded.
        location / {{ proxy_pass http://apicurio{API}$request_uri; }}
        location /apis/ {{ proxy_pass http://apicurio; }}
    }}
}}
"""


SERVICE = Registry()
