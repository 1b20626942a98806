"""A process that has imported pytest and what most tests import, and forks one that runs pytest for each part of a suite: a part that
starts by itself takes a second or two for that alone.

Its argument is the descriptor of a socket of datagrams (scripts/suites.py has the other end, and ends this by closing it): each is JSON
{"arguments", "environment", "folder"} and brings one end of a connection, which gets lines: the pid of the pytest (it leads a session of
its own); "ended"; and, when the other side has answered a line, its exit status and its seconds of CPU, with those of all that it has
waited for. Output goes where this process writes.
"""
import contextlib
import gc
import importlib
import json
import os
import socket
import sys

# None of them starts a thread when it is imported, which a fork would lose.
MODULES = ("pytest _pytest.assertion.rewrite _pytest.python _pytest.fixtures _pytest.junitxml _pytest.pastebin _pytest.doctest asyncio "
           "concurrent.futures.thread http.server requests openai grpc grpc.aio google.protobuf.descriptor_pb2 google.protobuf.json_format "
           "jsonschema msgspec websockets.sync.client zmq wave ssl subprocess")


def run_pytest(request):
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path.insert(1, "")
    import pytest
    # anyio has a plugin of pytest, and has been imported without it.
    status = pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *request["arguments"]])
    sys.exit(status)  # as a program ends: with its atexit functions


def watch(request, connection):
    """Starts pytest and tells what becomes of it."""
    pid = os.fork()
    if pid == 0:
        connection.close()
        run_pytest(request)
    with connection, connection.makefile("r") as answers:
        connection.sendall(f"{pid}\n".encode())
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its number stays its own until the other side has answered
        connection.sendall(b"ended\n")
        answers.readline()
        _, status, used = os.wait4(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}\n".encode())


def main():
    for module in MODULES.split():
        with contextlib.suppress(ImportError):  # whoever needs it says so
            importlib.import_module(module)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        while True:
            data, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 1)
            if not data:
                break
            connection = socket.socket(fileno=descriptors[0])
            if os.fork() == 0:
                requests.close()
                watch(json.loads(data), connection)
                os._exit(0)
            connection.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()  # so that their time is counted


if __name__ == "__main__":
    main()
