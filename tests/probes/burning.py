"""Programs that use CPU time, and a fake account of it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BURNT_S = 0.3
BURN = f"import time\nwhile time.process_time() < {BURNT_S}: pass"
LEAST_S = 0.28  # rounded to ticks


def burn() -> None:
    """Run a program that uses BURNT_S, to its end."""
    subprocess.run([sys.executable, "-c", BURN], check=True)


@contextmanager
def burnt() -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a program that lives on after it has used BURNT_S; kill it at the end."""
    script = f"{BURN}\nprint(flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as program:
        assert program.stdout
        program.stdout.readline()
        yield program
        program.kill()


class Account:
    """A fake account of a service's CPU time and memory. It is away while `used_s` is None."""

    def __init__(self, used_s: float | None = 0.0, grows_s: float = 0.0) -> None:
        self.used_s, self._grows_s = used_s, grows_s

    def cpu_s(self) -> float:
        if self.used_s is None:
            raise FileNotFoundError("cpuacct.usage")
        self.used_s += self._grows_s
        return self.used_s

    def memory_bytes(self) -> int:
        return 3 << 29
