"""Whose key a gateway sends to which worker."""
import contextlib
import http.server
import signal
import threading

import pytest
import requests
from conftest import free_port, wait_until
from gateway_fleet import Process, front


class Listener(http.server.BaseHTTPRequestHandler):
    """A worker that takes all requests, probes too, and notes them with their headers in its server's `heard`."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.heard.append((self.path, str(self.headers)))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def listening():
    """(its URL, what it hears)"""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    server.daemon_threads, server.heard = True, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.heard
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def launched(*flags, environment=None):
    launch = Process("launch", "--engine", "mock", "--router-prometheus-port", "0", "--router-policy", "round_robin",
                     "--router-dp-worker-base-port", str(free_port()), *flags, environment=environment)
    try:
        launch.wait_ready("/readiness")
        yield launch
        assert launch.end() == 0, launch.output()
    finally:
        launch.kill()


def complete(gateway, key, header="authorization"):
    return requests.post(gateway.url + "/v1/completions", json={"prompt": "a", "max_tokens": 1},
                         headers={header: f"Bearer {key}" if header == "authorization" else key}, timeout=60).status_code


@pytest.mark.parametrize("flags, environment, clients, sent", [
    (("--api-key", "k-workers"), None, "k-workers", None),
    ((), {"PORTICO_API_KEY": "k-workers"}, "k-workers", None),
    # As that of `portico route`: the operator has named it.
    (("--api-key", "k-workers", "--router-api-key", "k-clients"), None, "k-clients", "k-clients")])
def test_a_worker_that_is_only_named_does_not_get_the_workers_key(flags, environment, clients, sent):
    """Every probe, control and request brought it."""
    with listening() as (url, heard), launched(*flags, "--router-worker-urls", url, environment=environment) as launch:
        headers = {"authorization": f"Bearer {clients}"}

        def healthy():
            workers = requests.get(launch.url + "/workers", headers=headers, timeout=60).json()["workers"]
            return [worker["is_healthy"] for worker in workers]

        def asked(*paths):
            return set(paths) <= {path for path, _ in list(heard)}

        wait_until(lambda: healthy() == [True, True], launch.output)
        # One of each two goes to the worker that was started, which takes no other key.
        for header in ("authorization", "x-api-key"):
            assert [complete(launch, clients, header) for _ in range(2)] == [200, 200], launch.output()
        assert requests.post(launch.url + "/flush_cache", headers=headers, timeout=60).status_code == 200
        requests.post(launch.url + "/open_session", json={}, headers=headers, timeout=60)  # which the mock engine does not have
        wait_until(lambda: asked("/health", "/v1/models", "/v1/completions", "/flush_cache", "/open_session"), lambda: str(heard))
        launch.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "reload: 0 workers added, 0 removed" in launch.output(), launch.output)
        assert "after a restart only" not in launch.output()
        told = "".join(head.lower() for _, head in heard)
        assert "k-workers" not in told and (sent is None or f"authorization: bearer {sent}\n" in told), heard


@pytest.mark.parametrize("flags", [("--router-config", "{file}"), ("--router-api-k", "k-clients")])
def test_the_clients_key_of_a_launch_may_stand_in_the_file_or_behind_a_shorter_flag(flags, tmp_path):
    """The workers' key took its place."""
    file = tmp_path / "gateway.yaml"
    file.write_text("api-key: k-clients\n")
    with launched("--api-key", "k-workers", *(flag.format(file=file) for flag in flags)) as launch:
        assert [complete(launch, key) for key in ("k-clients", "k-workers")] == [200, 401]


def says(connection, status, body=b"{}"):
    connection.sendall(b"HTTP/1.1 %d Said\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))


def test_an_operators_key_goes_to_no_worker():
    """Workers read it in what asks one of them for its server info or its weights."""
    def worker(connection, head, body):
        says(connection, 200)

    with front([worker], "--control-plane-api-keys", "op:op:admin:k-operator") as (workers, made):
        for shown in ({"authorization": "Bearer k-operator"}, {"authorization": "bearer k-operator"}, {"x-api-key": "k-operator"},
                      {"authorization": "Bearer k-operator", "x-api-key": "k-client"}):
            for method, path in (("GET", "/get_server_info"), ("GET", "/server_info"), ("POST", "/get_weights_by_name"),
                                 ("POST", "/flush_cache"), ("POST", "/start_profile")):
                workers[0].requests.clear()
                answer = requests.request(method, made.url + path, json={} if method == "POST" else None, headers=shown, timeout=60)
                assert answer.status_code == 200, answer.text
                heads = [head.lower() for head, _ in workers[0].requests if head.split(b" ")[1] == path.encode()]
                assert heads and not any(b"k-operator" in head for head in heads), heads
                # Beside it a client's key may be shown, which is for the worker.
                assert any(b"k-client" in head for head in heads) is ("k-client" in shown.values()), heads


def test_a_client_opens_sessions_with_its_own_key_where_operators_have_theirs():
    """Its other requests brought the worker its key, these did not: 401."""
    def worker(connection, head, body):
        says(connection, 200 if b"authorization: bearer k-client\r\n" in head.lower() else 401)

    with front([worker], "--control-plane-api-keys", "op:op:admin:k-operator") as (_, made):
        for path in ("/generate", "/open_session", "/close_session"):
            answer = requests.post(made.url + path, json={"session_id": "s"}, headers={"authorization": "Bearer k-client"}, timeout=60)
            assert answer.status_code == 200, (path, answer.text)
