"""What a front end asks of a launcher that runs already, before it joins it (`portico serve --engine sglang --attach FILE`)."""
from __future__ import annotations

import os

from sglang_sockets import Door, line_of

LIMIT = 1 << 20
TIME_LIMIT = 30


def started(pid: int) -> int:
    """When the process was started, in the kernel's ticks: with the id it names one process, not a later one of that id."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


class Proofs:
    """Reads frames that front ends have encoded, as the schedulers would: a line {"prove": [...]} a connection, answered by
    {"event": "proved"} or {"event": "failed", "message": TEXT}."""

    def __init__(self, folder: str, prove):
        self.prove = prove
        self.address = Door(os.path.join(folder, "proof.sock"), self.answer).path

    def answer(self, connection) -> None:
        connection.settimeout(TIME_LIMIT)
        with connection, connection.makefile("rb") as lines:
            line = lines.readline(LIMIT)
            try:
                self.prove(line.decode())
                reply = line_of(event="proved")
            except Exception as error:
                reply = line_of(event="failed", message=str(error)[:1000] or type(error).__name__)
            connection.sendall(reply)
