"""Who serves SGLang's sockets: one front end at a time, and over TCP with listeners that are held for as long as SGLang runs.

SGLang's schedulers connect to all of their sockets, and go on trying while nobody answers. A port that nobody holds in the
meantime could be taken by any process of this machine, which would then get the requests, or call the scheduler. So the
launcher binds them, on the loopback and with a port that the kernel gives where SGLang names none, and hands those that a
front end serves to it, as descriptors over a Unix socket. The port is free for nobody before the schedulers have ended.
"""
from __future__ import annotations

import json
import os
import socket
import threading
import time

HANDED = ("scheduler_input", "tokenizer", "detokenizer")  # the others are only held: SGLang's own front end serves them
BACKLOG = 1024
DRAIN_SECONDS = 20
HOST = "127.0.0.1"


def is_loopback(address: str) -> bool:
    return address.startswith(("tcp://127.", "tcp://[::1]:", "tcp://localhost:"))


class Listeners:
    """Answers a connection with a line: {"event": "sockets"} with the listeners of HANDED, in that order, if they are TCP; or
    {"event": "failed", "message": TEXT, "busy": true while another front end has them}. The sockets are the front end's until it closes the connection or ends."""

    def __init__(self, folder: str, wanted: dict[str, str]):
        """`wanted`: addresses by name; `tcp://127.0.0.1:0` takes a port that is free. OSError: one is taken."""
        self.listeners = {name: self.bind(address) for name, address in wanted.items()}
        self.addresses = {name: self.address_of(listener) for name, listener in self.listeners.items()}
        self.lock = threading.Lock()
        self.holder = None
        self.drained = time.monotonic()
        self.path = os.path.join(folder, "sockets.sock")
        if os.path.exists(self.path):  # of a launcher that was killed
            os.unlink(self.path)
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.door.bind(self.path)
        self.door.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    @staticmethod
    def bind(address: str) -> socket.socket:
        host, port = address.removeprefix("tcp://").rsplit(":", 1)
        listener = socket.socket(socket.AF_INET6 if host.startswith("[") else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # only past connections: a listener still excludes others
        try:
            listener.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise RuntimeError(f"{address} cannot be bound: {error.strerror}") from None
        listener.listen(BACKLOG)
        listener.setblocking(False)  # libzmq accepts without waiting, and so does drain()
        return listener

    @staticmethod
    def address_of(listener: socket.socket) -> str:
        host, port = listener.getsockname()[:2]
        return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"

    def serve(self) -> None:
        while True:
            connection, _ = self.door.accept()
            try:
                with self.lock:
                    self.answer(connection)
            except OSError:
                connection.close()

    def answer(self, connection: socket.socket) -> None:
        if self.held():
            why = "another front end serves its sockets"
            connection.sendall(json.dumps({"event": "failed", "message": why, "busy": True}).encode() + b"\n")
            connection.close()
            return
        line = json.dumps({"event": "sockets"}).encode() + b"\n"
        handed = [self.listeners[name].fileno() for name in HANDED if name in self.listeners]
        if handed:
            socket.send_fds(connection, [line], handed)
        else:
            connection.sendall(line)
        self.holder = connection

    def held(self) -> bool:
        """Whether a front end has the sockets. Under the lock."""
        if self.holder is None:
            return False
        try:
            if self.holder.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        self.holder.close()
        self.holder = None
        self.drained = time.monotonic()
        return False

    def keep(self) -> None:
        """From time to time. Schedulers that find no front end give a connection up and make another, every 30 seconds: those
        that they have given up would fill the queue, and they could no longer reach the next front end."""
        if time.monotonic() - self.drained < DRAIN_SECONDS:
            return
        with self.lock:
            self.drained = time.monotonic()
            if self.held():
                return
            for name in HANDED:
                if name in self.listeners:
                    self.drain(self.listeners[name])

    @staticmethod
    def drain(listener: socket.socket) -> None:
        for _ in range(BACKLOG):
            try:
                listener.accept()[0].close()
            except OSError:
                return


def listeners_for(folder: str, transport: str, addresses: dict[str, str]) -> Listeners:
    """For an engine with these addresses: with listeners where SGLang itself is on the loopback (attention split by data), and
    with the transport tcp also for a front end. Addresses of other machines are the front end's to bind."""
    wanted = {name: address for name, address in addresses.items() if is_loopback(address)}
    if transport == "tcp":
        wanted |= {name: f"tcp://{HOST}:0" for name in HANDED if addresses.get(name, "ipc://").startswith("ipc://")}
    return Listeners(folder, wanted)
