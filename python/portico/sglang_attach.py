"""What a front end asks of a launcher that runs already, before it joins it (`portico serve --engine sglang --attach FILE`)."""
from __future__ import annotations

import json
import os
import socket
import threading

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
        self.address = os.path.join(folder, "proof.sock")
        if os.path.exists(self.address):  # of a launcher that was killed
            os.unlink(self.address)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.address)
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            with connection:
                try:
                    connection.settimeout(TIME_LIMIT)
                    self.answer(connection)
                except OSError:
                    pass

    def answer(self, connection) -> None:
        line = connection.makefile("rb").readline(LIMIT)
        try:
            self.prove(line.decode())
            reply = {"event": "proved"}
        except Exception as error:
            reply = {"event": "failed", "message": str(error)[:1000] or type(error).__name__}
        connection.sendall(json.dumps(reply).encode() + b"\n")
