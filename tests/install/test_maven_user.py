"""Tests that of the user's configuration of Maven only what concerns downloads is used."""

from pathlib import Path

from racetrack.install import maven_user

SETTINGS = "<settings><offline> true </offline><mirrors><mirror/></mirrors></settings>"


def test_of_java_options_those_for_the_network_are_kept() -> None:
    environ = {
        "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Djavax.net.ssl.trustStore=/ca.jks",
        "MAVEN_OPTS": "-Xmx2m -Dhttps.proxyHost=proxy.example -Dmaven.repo.local=/mine",
        "_JAVA_OPTIONS": "-Dhttp.proxyPort=1",
    }
    assert maven_user.jvm_options(environ) == [
        "-Djavax.net.ssl.trustStore=/ca.jks",
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttp.proxyPort=1",
    ]


def test_settings_files_are_kept_but_not_the_offline_mode(tmp_path: Path) -> None:
    settings = tmp_path / "mine.xml"
    settings.write_text(SETTINGS)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = f"-o -s {settings} --bogus -Dhttp.proxyHost=proxy.example -T 4"
    found = maven_user.arguments({"MAVEN_ARGS": words}, scratch)
    assert found[0] == "-Dhttp.proxyHost=proxy.example"
    assert not {"-o", "--bogus", "-T"} & set(found)
    copy = Path(found[found.index("--settings") + 1])
    assert copy.parent == scratch
    assert "offline" not in copy.read_text()
    assert "<mirrors><mirror/></mirrors>" in copy.read_text()
    own = tmp_path / ".m2/settings.xml"
    own.parent.mkdir()
    own.write_text("<settings/>")
    found = maven_user.arguments({"MAVEN_OPTS": f"-Duser.home={tmp_path}"}, scratch)
    assert found[found.index("--settings") + 1] == str(own)
