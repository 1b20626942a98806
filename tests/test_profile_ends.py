"""The ends of profiles: of a server that stops, and of one that does not end them."""
import contextlib
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading

from conftest import BINARY, WAIT_SECONDS, Server, freeze, wait_until
from omni_stages import ENCODE, children, python, say, write
from profiles import all_ended, events_of, folder, post, profile  # noqa: F401


def test_a_server_that_stops_ends_the_profile_everywhere(folder, tmp_path):
    """Stage processes were killed half a second later, whether or not the lines of their events were written."""
    stages = ("name: talk, factory_path: portico.mock, factory: {chunks: 500}, process: p1, stream_to: [same]", python("same", "same"), ENCODE)
    server = Server("--pipeline", str(write(tmp_path / "p.yaml", *stages)), "--engine", "mock")
    try:
        directory = pathlib.Path(post(server, "/start_request_profile", run_id="r").json()["event_dir"])
        for _ in range(5):
            assert say(server, "hello").status_code == 200
    finally:
        server.stop()
    assert len(list(directory.glob("run_*.json"))) == 3 and all_ended(directory)
    assert not list(directory.glob("records_*"))
    assert sum(event["stage"] == "talk" and event["event_name"] == "stage_complete" for event in events_of(directory)) == 5


def test_all_stages_are_told_of_the_end_and_a_second_signal_ends_the_wait_for_them(folder, tmp_path, monkeypatch):
    """A process was told when those before it had ended, up to 10 s each, and nothing ended the server meanwhile."""
    # What ends at once joins no threads.
    monkeypatch.setenv("TSAN_OPTIONS", os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0")
    stages = [f"name: {name}, factory_path: portico.mock, process: {name}, stream_to: [{following}]"
              for name, following in (("a", "b"), ("b", "encode"))]
    server = Server("--pipeline", str(write(tmp_path / "p.yaml", *stages, ENCODE)), "--engine", "mock")
    held, other = children(server)
    try:
        post(server, "/start_request_profile", run_id="r")
        freeze(held)
        server.process.terminate()
        wait_until(lambda: other not in children(server), "the second process goes on")
        assert held in children(server)
        server.process.terminate()
        assert server.process.wait(WAIT_SECONDS) == 130
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(held, signal.SIGKILL)
        server.process.kill()
        server.log.close()


class NeverEnded(http.server.BaseHTTPRequestHandler):
    """A server with a stage whose recording does not end."""
    def do_POST(self):  # noqa: N802
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.dumps({"run_id": "r", "event_dir": str(self.server.folder)}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path.startswith("/stop"):
            self.server.stopped.set()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def never_ended(directory, grows):
    """Its address; and whether it was asked to stop. The file `grows` grows all the time."""
    line = {"request_id": "q", "stage": "s", "event_name": "stage_dispatch", "timestamp_ns": 10**18, "run_id": "r", "pid": 7}
    (directory / "events_s_7.jsonl").write_text(json.dumps(line) + "\n")
    (directory / "run_s_7.json").write_text('{"ended": false}')
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NeverEnded)
    server.folder, server.stopped, over = directory, threading.Event(), threading.Event()

    def grow():
        while not over.is_set():
            with open(directory / grows, "a") as file:
                file.write(json.dumps(line) + "\n")
            over.wait(0.05)

    threads = [threading.Thread(target=one) for one in (server.serve_forever, grow)]
    for thread in threads:
        thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.stopped
    finally:
        over.set()
        server.shutdown()
        for thread in threads:
            thread.join()
        server.server_close()


def test_records_that_grow_for_ever_do_not_hold_up_the_report(tmp_path):
    """They are another run's: the report waited for their end."""
    with never_ended(tmp_path, "records_s_8.1.bin") as (url, _):
        done = profile(url, "--seconds", "0.1")
    assert done.returncode == 0 and "no new line has come for 5 s" in done.stderr, done.stderr
    assert "# Requests: 1" in done.stdout


def test_ctrl_c_ends_the_wait_for_lines(tmp_path):
    with never_ended(tmp_path, "events_s_7.jsonl") as (url, stopped):
        words = [str(BINARY), "profile", url, "--seconds", "0.1"]
        command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert stopped.wait(WAIT_SECONDS)
        command.send_signal(signal.SIGINT)
        out, said = command.communicate(timeout=WAIT_SECONDS)
    assert command.returncode == 0 and "interrupted" in said and "# Requests: 1" in out, said
