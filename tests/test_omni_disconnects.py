"""bench/omni/disconnects.py: what it counts of a process."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import threading

FILE = pathlib.Path(__file__).resolve().parent.parent / "bench/omni/disconnects.py"


def module():
    spec = importlib.util.spec_from_file_location("disconnects", FILE)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_children_of_every_thread_are_counted():
    """Those of the main thread were, and a server starts its helpers from others."""
    bench = module()
    before = bench.children(os.getpid())
    started = []
    go = threading.Event()

    def work():
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL))
        go.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while not started and thread.is_alive():
            thread.join(0.01)
        assert bench.children(os.getpid()) == before + 1
    finally:
        go.set()
        thread.join()
        started[0].kill()
        started[0].communicate()


def test_a_file_that_is_closed_meanwhile_is_left_out(monkeypatch):
    """The list was made before the links were read, and the program ended with FileNotFoundError."""
    bench = module()
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listed(path), "999999"])
    assert bench.open_files(os.getpid())
