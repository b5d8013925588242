"""nginx in front of the registry: Confluent's API at the root, Apicurio's own paths as they are.

The client of one engine drops the path of the URL that it is given, so that the API must be at the
root, as it is in Redpanda; Apicurio has it under a path.
"""

from pathlib import Path

from racetrack.install.apt import own_loader

API = "/apis/ccompat/v7"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def command(part: Path, work: Path, listen: str, upstream: str) -> list[str]:
    """Write the configuration into `work`; how to start nginx in the foreground.

    `listen` and `upstream` are `host:port`.
    """
    file = work / "nginx.conf"
    file.write_text(configuration(work, listen, upstream))
    # With -e, or it tries to open the log that was compiled in.
    return [*own_loader(part, "usr/sbin/nginx"), "-e", "stderr", "-p", f"{work}/", "-c", str(file)]


def configuration(work: Path, listen: str, upstream: str) -> str:
    """nginx.conf. Nothing is buffered, so that it needs no file."""
    folders = "\n".join(f"    {name}_temp_path {work}/nginx-{name};" for name in TEMPORARY)
    return f"""\
daemon off;
# One process: a master writes its title over its environment, and so over the mark by which the
# stack finds what it has to end.
master_process off;
pid {work}/nginx.pid;
# It is no error that Apicurio is not up yet: whoever waits for it asks again.
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
        # With $request_uri, a %2F in a subject's name stays what it is.
        location / {{ proxy_pass http://apicurio{API}$request_uri; }}
        location /apis/ {{ proxy_pass http://apicurio; }}
    }}
}}
"""
