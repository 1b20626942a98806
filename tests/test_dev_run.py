"""What ./dev run shows of a server that it has started: its address, a first request and an answer (scripts/run_server.sh)."""
import contextlib
import os
import pty
import re
import select
import signal
import socket
import subprocess

import pytest
import requests

from conftest import BINARY, ROOT, WAIT_SECONDS, free_port, wait_until

# As `portico serve`: says on its output whether its log is a terminal, and serves on the last word's port.
STAND_IN = """#!/usr/bin/env python3
import http.server, os, sys
print("terminal" if os.isatty(2) else "no terminal", flush=True)
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def do_POST(self):
        self.do_GET()
        self.wfile.write(b'{"error": {"message": "no key"}}')
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Healthy).serve_forever()
"""


@pytest.fixture
def run(tmp_path):
    """Runs the script; gives (process, a function that tells what it has written)."""
    with contextlib.ExitStack() as ends:
        def started(program, *flags, stderr=subprocess.STDOUT):
            shown = tmp_path / "shown"
            with shown.open("w") as out:
                process = subprocess.Popen([str(ROOT / "scripts/run_server.sh"), str(program), *map(str, flags)],
                                           stdout=out, stderr=stderr, stdin=subprocess.DEVNULL, cwd="/")

            def end():
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                assert process.wait(120) == 0

            ends.callback(end)
            return process, shown.read_text
        yield started


def first_answer(process, shown):
    """The curl command and the address that are shown, once the answer is there."""
    wait_until(lambda: "keeps running at" in shown() or process.poll() is not None, shown)
    [(options, url)] = re.findall(r"\$ curl (\S+) (\S+)/v1/chat/completions", shown())
    assert f"keeps running at {url} " in shown()
    return options, url


def test_the_first_request_goes_to_the_port_that_the_server_has_taken(run):
    """It was sent to port 0, which the command that was shown named too."""
    process, shown = run(BINARY, "--engine", "mock", "--port", "0")
    options, url = first_answer(process, shown)
    assert options == "-N" and re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*", url)
    assert requests.get(url + "/health", timeout=60).status_code == 200
    assert f"ready: {url}/v1" in shown()  # the log is shown too
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0
    assert "stopped" in shown() and "Could not connect" not in shown()


def test_an_address_of_ipv6_is_shown_in_brackets(run):
    """http://::1:30000 was asked, which is no address."""
    with contextlib.closing(socket.socket(socket.AF_INET6)) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    for host in ("::1", "::"):
        process, shown = run(BINARY, "--engine", "mock", f"--host={host}", "--port=0")
        _, url = first_answer(process, shown)
        assert re.fullmatch(r"http://\[::1\]:[1-9]\d*", url)
        assert f"ready: http://[{host}]:" in shown()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_a_config_file_tells_the_address(run, tmp_path):
    config = tmp_path / "portico.yaml"
    config.write_text(f"engine: mock\nhost: 0.0.0.0\nport: {free_port()}\n")
    _, url = first_answer(*run(BINARY, "--config", config))
    assert url == f"http://127.0.0.1:{config.read_text().split()[-1]}"


def test_a_server_with_tls_is_asked_by_https(run, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "1", "-subj", "/CN=localhost"], check=True, capture_output=True)
    port = free_port()
    for given in (port, 0):
        process, shown = run(BINARY, "--engine", "mock", "--ssl-keyfile", key, "--ssl-certfile", certificate, "--port", given)
        options, url = first_answer(process, shown)
        assert options == "-Nk" and url.startswith("https://127.0.0.1:") and not url.endswith(":0")
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_the_log_stays_on_the_terminal_where_the_port_is_known(run, tmp_path):
    """The bar that shows progress needs one."""
    program = tmp_path / "portico"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    ours, theirs = pty.openpty()
    try:
        process, shown = run(program, "--port", free_port(), stderr=theirs)
        wait_until(lambda: "What is 7 plus 5?\033[0m" in shown() or process.poll() is not None, shown)
        assert shown().startswith("terminal\n")
        said = b""
        while b"no key" not in said:  # an answer that is an error is told
            assert select.select([ours], [], [], WAIT_SECONDS)[0], said
            said += os.read(ours, 1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_server_that_does_not_start_ends_the_script_with_its_status(run):
    result = subprocess.run([str(ROOT / "scripts/run_server.sh"), str(BINARY), "--port", "0", "--nonsense"],
                            capture_output=True, text=True, timeout=120)
    assert result.returncode == 2 and "--nonsense" in result.stderr and "curl" not in result.stdout
