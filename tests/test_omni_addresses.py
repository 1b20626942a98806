"""Sound that chats name by its address: what is fetched, and what is refused."""
import base64
import contextlib
import http.server
import json
import os
import socket
import subprocess
import threading

import pytest
import requests

from conftest import BINARY
from test_omni_recorded import PIPELINE, WAV


class Files(http.server.BaseHTTPRequestHandler):
    """What a path says is done with it."""
    protocol_version = "HTTP/1.1"
    seen = []
    stopped = threading.Event()

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.seen.append(self.path)
        other = f"http://localhost:{self.server.server_port}"
        kind, _, rest = self.path[1:].partition("/")
        if kind == "to":
            return self.answer(302, "text/plain", b"", location=rest)
        if kind == "loop":
            return self.answer(301, "text/plain", b"", location="/loop")
        if kind == "other":
            return self.answer(307, "text/plain", b"", location=other + "/a.wav")
        if kind == "page":
            return self.answer(200, "text/html; charset=utf-8", b"<p>")
        if kind == "packed":
            return self.answer(200, "audio/wav", WAV, **{"content-encoding": "gzip"})
        if kind == "nothing":
            return self.answer(200, "audio/wav", b"")
        if kind == "large":  # as its head says, or not
            head = {"content-length": str(11 << 20)} if rest else {"transfer-encoding": "chunked"}
            self.send_response(200)
            for name, value in {"content-type": "audio/wav", **head}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(12):
                    self.wfile.write(bytes(1 << 20) if rest else b"100000\r\n" + bytes(1 << 20) + b"\r\n")
            self.close_connection = True
            return None
        if kind == "hang":
            self.stopped.wait(60)
            self.close_connection = True
            return None
        if kind == "half":
            self.close_connection = True
            return self.answer(200, "audio/wav", WAV[:100], **{"content-length": "3244"})
        if kind.endswith(".wav"):
            return self.answer(200, "audio/x-wav", WAV)
        return self.answer(404, "audio/wav", WAV)

    def answer(self, status, kind, data, **headers):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def files():
    """Its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    Files.stopped.set()
    server.shutdown()


@pytest.fixture
def mock_file(tmp_path):
    path = tmp_path / "mock.yaml"
    path.write_text(PIPELINE)
    return str(path)


def chat(server, **fields):
    body = {"messages": [{"role": "user", "content": "listen"}], "modalities": ["text"], **fields}
    return requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)


def part(url):
    return [{"role": "user", "content": [{"type": "audio_url", "audio_url": {"url": url}}]}]


def refused(answer, field, text):
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == field and text in error["message"], error
    assert "127.0.0.1" not in error["message"]


def test_sound_is_fetched_from_where_it_may_be(mock_file, files, start):
    server = start("--allowed-media-domain", "127.0.0.1", "--allowed-media-domain=localhost", command=("omni", "serve", mock_file))
    url = f"http://127.0.0.1:{files}"
    data = "data:audio/wav;base64," + base64.b64encode(WAV).decode()
    wanted = chat(server, audios=[data]).json()["choices"][0]["message"]
    for address in (f"{url}/a.wav", f"{url}/to/{url}/a.wav", f"{url}/to//a.wav", f"{url}/other", f"http://localhost:{files}/a.wav"):
        assert chat(server, audios=[address]).json()["choices"][0]["message"] == wanted, address
    assert Files.seen[0] == "/a.wav"
    heard = chat(server, messages=part(f"{url}/a.wav"))
    assert heard.status_code == 200 and heard.json()["choices"][0]["message"] == wanted
    several = chat(server, audios=[f"{url}/a.wav", data, f"{url}/b.wav"])
    assert several.status_code == 200, several.text
    streamed = chat(server, audios=[f"{url}/a.wav"], stream=True)
    assert streamed.text.endswith("data: [DONE]\n\n")


def test_what_is_there_must_be_sound_of_a_bounded_size(mock_file, files, start):
    server = start("--allowed-media-domain", "127.0.0.1", command=("omni", "serve", mock_file))
    url = f"http://127.0.0.1:{files}"
    for path, why in {"/missing": "404", "/page": "content-type", "/packed": "content-type", "/nothing": "empty",
                      "/large": "10485760", "/large/told": "10485760", "/half": "reached", "/loop": "too often",
                      "/other": "localhost", "/to/file:///etc/passwd": "redirected", "/to/http://[": "redirected"}.items():
        refused(chat(server, audios=["data:audio/wav;base64," + base64.b64encode(WAV).decode(), url + path]), "audios", why)
    refused(chat(server, messages=part(f"{url}/missing")), "messages", "messages[0].content[0].audio_url cannot be fetched")
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        refused(chat(server, audios=[f"http://127.0.0.1:{nobody.getsockname()[1]}/a.wav"]), "audios", "reached")
    server.wait_for("portico_media_fetches", 0)


def test_names_that_lead_into_private_networks_are_refused(mock_file, files, start):
    server = start("--allowed-media-domain", "*", command=("omni", "serve", mock_file))
    before = len(Files.seen)
    for host in (f"127.0.0.1:{files}", f"localhost:{files}", f"[::1]:{files}", f"[::ffff:127.0.0.1]:{files}", f"2130706433:{files}",
                 f"127.1:{files}", f"0x7f.1:{files}", "169.254.169.254", "10.0.0.1", "0.0.0.0"):
        answer = chat(server, audios=[f"http://{host}/a.wav"])
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "audios", (host, answer.text)
    refused(chat(server, audios=[f"http://127.0.0.1:{files}/a.wav"]), "audios", "private network")
    assert len(Files.seen) == before
    for url in ("ftp://example.org/a", "http://user:key@example.org/", "a.wav", "/etc/passwd", "file:///etc/passwd", "", 7):
        assert chat(server, audios=[url]).status_code == 400


def test_without_a_list_nothing_is_fetched(mock_file, files, start):
    server = start(command=("omni", "serve", mock_file))
    before = len(Files.seen)
    refused(chat(server, audios=[f"http://127.0.0.1:{files}/a.wav"]), "audios", "fetches no other addresses")
    refused(chat(server, audios=["/etc/hostname"]), "audios", "--allowed-local-media-path")
    assert len(Files.seen) == before


def test_files_are_read_below_the_allowed_folder(mock_file, tmp_path, start):
    folder = tmp_path / "sounds"
    (folder / "more").mkdir(parents=True)
    (folder / "more" / "a b.wav").write_bytes(WAV)
    (tmp_path / "secret.wav").write_bytes(WAV)
    (folder / "out.wav").symlink_to(tmp_path / "secret.wav")
    (folder / "in.wav").symlink_to(folder / "more" / "a b.wav")
    (folder / "empty.wav").write_bytes(b"")
    (folder / "large.wav").write_bytes(b"")
    os.truncate(folder / "large.wav", 11 << 20)
    os.mkfifo(folder / "pipe.wav")
    server = start("--allowed-local-media-path", str(folder), command=("omni", "serve", mock_file))
    for path in (f"file://{folder}/more/a%20b.wav", f"{folder}/in.wav", f"{folder}/more/../in.wav"):
        assert chat(server, audios=[path]).status_code == 200, path
    for path in (f"{folder}/out.wav", f"{folder}/../secret.wav", f"file://{tmp_path}/secret.wav", f"{folder}s/a.wav", f"{folder}/none.wav",
                 f"{folder}/more", f"{folder}/pipe.wav", str(folder), "/proc/self/environ", "/dev/zero"):
        refused(chat(server, audios=[path]), "audios", "audios[0] is not a file that this server may read")
    refused(chat(server, audios=[f"{folder}/empty.wav"]), "audios", "empty")
    refused(chat(server, audios=[f"{folder}/large.wav"]), "audios", "10485760")


def test_a_client_that_leaves_ends_its_fetch(mock_file, files, start):
    server = start("--allowed-media-domain", "127.0.0.1", command=("omni", "serve", mock_file))
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "modalities": ["text"], "request_id": "slow",
                       "audios": [f"http://127.0.0.1:{files}/hang"]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    for abort in (False, True):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            server.wait_for("portico_media_fetches", 1)
            if abort:
                requests.post(server.url + "/abort_request", json={"rid": "slow"}, timeout=60)
                assert client.recv(100).startswith(b"HTTP/1.1 4")
        server.wait_for("portico_media_fetches", 0)
    assert chat(server).status_code == 200


def test_rules_that_cannot_be_are_refused_at_the_start(mock_file, tmp_path):
    for flags, why in ((["--allowed-media-domain", "https://example.org"], "is none of"),
                       (["--allowed-local-media-path", str(tmp_path / "none")], "is not a folder"),
                       (["--allowed-media-domain"], "needs a value"), (["--allowed-media-domain", "--port", "0"], "needs a value"),
                       (["--allowed-media-domain="], "needs a value")):
        done = subprocess.run([str(BINARY), "omni", "check", mock_file, *flags], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0 and why in done.stderr, done.stderr
    shown = subprocess.run([str(BINARY), "omni", "resolve", mock_file, "--allowed-media-domain", "*.example.org"], capture_output=True,
                           text=True, timeout=60, check=True)
    assert 'allowed_media_domains: ["*.example.org"]  # from the command line' in shown.stdout
