"""The user's configuration of Maven that concerns downloads: mirrors, proxies, certificates and
credentials.

Other options, such as a small heap or the offline mode, would make a set-up fail. Standard library
only.
"""

import argparse
import os
import pwd
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

# Variables with options of a JVM. In this order, a later option takes precedence.
JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "_JAVA_OPTIONS")
# Variables of Maven's launcher and of Java that are removed or replaced.
VARIABLES = (*JVM_VARIABLES, "MAVEN_ARGS", "MAVEN_CONFIG", "MAVEN_DEBUG_OPTS", "CLASSPATH")
# Properties that affect only how files are downloaded. `user.home` is where settings.xml is.
NETWORK = re.compile(
    r"-D(https?|ftp|socksProxy\w*|java\.net|java\.security|javax\.net|jdk\.(http|tls|net|security)"
    r"|(com\.)?sun\.(security|net)|maven\.(wagon|resolver)|aether|settings\.security|user\.home)"
    r"[.=]"
)
OFFLINE = re.compile(r"<offline>\s*true\s*</offline>")


def jvm_options(environ: Mapping[str, str]) -> list[str]:
    """Return the user's options for a JVM that affect only how files are downloaded."""
    words = [word for name in JVM_VARIABLES for word in environ.get(name, "").split()]
    return [word for word in words if NETWORK.match(word)]


def arguments(environ: Mapping[str, str], scratch: Path) -> list[str]:
    """Return arguments with which Maven reads the user's settings files, but works online.

    A settings file that demands the offline mode is replaced by a copy in `scratch`.
    """
    given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    given.add_argument("-s", "--settings", type=Path, default=_home(environ) / ".m2/settings.xml")
    given.add_argument("-gs", "--global-settings", type=Path, default=_global_settings())
    files, others = given.parse_known_args(environ.get("MAVEN_ARGS", "").split())
    return [
        *(word for word in others if NETWORK.match(word)),
        *_online("--settings", files.settings, scratch),
        *_online("--global-settings", files.global_settings, scratch),
    ]


def _online(option: str, file: Path, scratch: Path) -> Sequence[str]:
    try:
        text, count = OFFLINE.subn("", file.read_text(errors="surrogateescape"))
    except OSError:
        return ()  # usually there is no such file
    if count:
        file = scratch / f"{option.strip('-')}.xml"
        file.write_text(text, errors="surrogateescape")
    return option, str(file.absolute())


def _home(environ: Mapping[str, str]) -> Path:
    """Return the home directory according to Java, which ignores HOME."""
    for option in reversed(jvm_options(environ)):
        if option.startswith("-Duser.home="):
            return Path(option.partition("=")[2])
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a container may run as a user without a name
        return Path("?")


def _global_settings() -> Path:
    mvn = Path(shutil.which("mvn") or "/usr/bin/mvn").resolve()
    return mvn.parent.parent / "conf" / "settings.xml"
