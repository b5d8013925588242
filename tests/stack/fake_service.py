"""A fake native service for tests of what starts services: a process that does nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from racetrack.config import Settings
from racetrack.stack.service import Context, Launch, NotReady


@dataclass
class FakeService:
    """A native service that runs a shell script; it is ready once the file `up` exists."""

    name: str
    script: str = 'echo "$0 has begun"; touch up; exec sleep 1000'
    parts: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    ready_within_s: float = 20.0
    launched: list[str] = field(default_factory=list)

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        assert context.parts.keys() >= {*self.parts}
        self.launched.append(self.name)
        (context.work / "up").unlink(missing_ok=True)
        argv = ["sh", "-c", self.script, self.name]
        return Launch(argv, cwd=context.work)

    def check(self, context: Context) -> None:
        if not (context.work / "up").exists():
            raise NotReady("not up")

    def versions(self, _context: Context) -> Mapping[str, str]:
        return {self.name: "1"}
