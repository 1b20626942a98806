"""What signals do to `portico route` in a drain."""
import signal

from conftest import wait_until
from gateway_fleet import Fleet


def test_a_second_sigterm_ends_a_drain_whatever_other_signals_came():
    """After a SIGUSR1 the next SIGTERM was not heard any more, and SIGXFSZ killed."""
    fleet = Fleet(1, workers=("--mock-itl-ms", "50"))
    try:
        fleet.wait_healthy(1)
        with fleet.chat(stream=True, max_tokens=20_000) as answer:
            lines = answer.iter_lines()
            next(lines)
            process = fleet.gateway.process
            process.terminate()
            wait_until(lambda: "draining" in fleet.gateway.output(), fleet.gateway.output)
            for ignored in (signal.SIGUSR1, signal.SIGHUP, signal.SIGXFSZ):
                process.send_signal(ignored)
            process.terminate()
            assert process.wait(60) == 130
    finally:
        for process in (fleet.gateway, *fleet.workers):
            process.kill()
