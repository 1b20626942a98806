"""Workers that come and go: the pods of a Kubernetes cluster, before a server that speaks its API, and a file that changes."""
import http.server
import json
import queue
import re
import ssl
import subprocess
import threading
import urllib.parse

import pytest
import requests
import yaml
from conftest import ROOT, free_port, wait_until
from gateway_fleet import Process, RawWorker


def ok(connection, head, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


class Cluster:
    """An API server with pods: GET /api/v1[/namespaces/N]/pods with a label selector, in pages, and watches."""

    def __init__(self, folder):
        self.pods, self.asked, self.version, self.watches, self.denied = {}, [], 1, [], False
        self.lock = threading.Lock()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        "key.pem", "-out", "ca.crt", "-days", "2", "-subj", "/CN=api", "-addext",
                        "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
        (folder / "token").write_text("secret-token\n")
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                cluster.answer(self)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "ca.crt", folder / "key.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "PORTICO_SERVICE_ACCOUNT_DIR": str(folder),
                            "KUBERNETES_SERVICE_PORT": str(self.server.server_address[1])}

    def answer(self, handler):
        url = urllib.parse.urlparse(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        self.asked.append((url.path, query, handler.headers["authorization"]))
        if self.denied or handler.headers["authorization"] != "Bearer secret-token":
            return self.send(handler, {"kind": "Status", "code": 403}, 403)
        if query.get("watch") == "true":
            return self.watch(handler, query)
        with self.lock:
            mine = [pod for pod in self.pods.values() if self.selected(pod, query["labelSelector"])]
            version = self.version
        # Pages of one pod, whatever was asked for.
        at = int(query.get("continue", 0))
        more = {"continue": str(at + 1)} if at + 1 < len(mine) else {}
        self.send(handler, {"items": mine[at:at + 1], "metadata": {"resourceVersion": str(version), **more}})

    @staticmethod
    def send(handler, body, status=200):
        data = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    @staticmethod
    def selected(pod, selector):
        labels = dict(word.split("=") for word in selector.split(","))
        return labels.items() <= pod["metadata"]["labels"].items()

    def watch(self, handler, query):
        events = queue.Queue()
        with self.lock:
            self.watches.append((events, query["labelSelector"]))
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while (event := events.get()) is not None:
            line = json.dumps(event).encode() + b"\n"
            cut = len(line) // 2  # an event comes in two pieces
            for piece in (line[:cut], line[cut:]):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")

    def set(self, name, ip, ready=True, labels=None, annotations=None, leaving=False):
        with self.lock:
            self.version += 1
            known = name in self.pods
            metadata = {"uid": "uid-" + name, "name": name, "namespace": "llm", "resourceVersion": str(self.version),
                        "labels": labels or {"app": "sglang"}, "annotations": annotations or {}}
            if leaving:
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.pods[name] = {"metadata": metadata, "status": {
                "phase": "Running", "podIP": ip, "conditions": [{"type": "Ready", "status": str(ready)}]}}
            self.tell("MODIFIED" if known else "ADDED", self.pods[name])

    def delete(self, name):
        with self.lock:
            self.version += 1
            pod = self.pods.pop(name)
            pod["metadata"]["resourceVersion"] = str(self.version)
            self.tell("DELETED", pod)

    def tell(self, kind, pod):
        for events, selector in self.watches:
            if self.selected(pod, selector):
                events.put({"type": kind, "object": pod})

    def end_watches(self, *last):
        with self.lock:
            ended, self.watches = self.watches, []
        for events, _ in ended:
            for event in last:
                events.put(event)
            events.put(None)

    def stop(self):
        self.end_watches()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def pods():
    """Workers at 127.0.0.2 and on, all on one port, as pods have it."""
    port = free_port()
    workers = [RawWorker(ok, f"127.0.0.{2 + i}", port) for i in range(3)]
    yield workers
    for worker in workers:
        worker.stop()


@pytest.fixture
def route():
    made = []

    def start(*flags, environment=None):
        made.append(Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", *flags, environment=environment))
        return made[-1]

    yield start
    for gateway in made:
        assert gateway.end() == 0, gateway.output()[-3000:]


def state(gateway):
    try:
        return {worker["url"]: worker for worker in requests.get(gateway.url + "/workers", timeout=60).json()["workers"]}
    except requests.RequestException:
        return {}


def test_pods_that_are_selected_and_ready_are_workers(cluster, pods, route):
    cluster.set("a", "127.0.0.2")
    cluster.set("b", "127.0.0.3")
    cluster.set("other", "127.0.0.4", labels={"app": "nginx"})
    gateway = route("--service-discovery", "--selector", "app=sglang", "--service-discovery-port", pods[0].port,
                    "--service-discovery-namespace", "llm", environment=cluster.environment)
    wait_until(lambda: set(state(gateway)) == {pods[0].url, pods[1].url}, gateway.output)
    assert state(gateway)[pods[0].url]["labels"]["pod"] == "a"
    path, query, authorization = cluster.asked[0]
    assert path == "/api/v1/namespaces/llm/pods" and query["labelSelector"] == "app=sglang"
    assert authorization == "Bearer secret-token"
    gateway.wait_ready("/readiness")
    assert requests.post(gateway.url + "/v1/completions", json={}, timeout=60).status_code == 200

    wait_until(lambda: cluster.watches, "nothing is watched")
    cluster.set("c", "127.0.0.4", ready=False)
    cluster.set("b", "127.0.0.3", ready=False)
    wait_until(lambda: set(state(gateway)) == {pods[0].url}, "a pod that is not ready is still used")
    cluster.set("c", "127.0.0.4")
    wait_until(lambda: set(state(gateway)) == {pods[0].url, pods[2].url}, "a pod that has become ready is not used")
    cluster.set("a", "127.0.0.2", leaving=True)
    wait_until(lambda: state(gateway)[pods[0].url]["draining"], "a pod that is being deleted does not drain")
    cluster.delete("a")
    wait_until(lambda: set(state(gateway)) == {pods[2].url}, "a deleted pod is still there")
    assert requests.post(gateway.url + "/v1/completions", json={}, timeout=60).status_code == 200


def test_the_manuals_manifest_starts_a_gateway_that_may_do_what_it_does(cluster, pods, route):
    block = re.search(r"^```yaml\n(apiVersion: v1\n.*?)^```$", (ROOT / "docs/gateway.md").read_text(), re.MULTILINE | re.DOTALL)
    made = {part["kind"]: part for part in yaml.safe_load_all(block[1])}
    pod = made["Deployment"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["portico", "route"]
    flags = list(container["args"])
    port = flags.index("--port")
    del flags[port:port + 2]  # the test has its own
    flags[flags.index("--service-discovery-port") + 1] = pods[0].port
    cluster.set("a", "127.0.0.2")
    gateway = route(*flags, environment=cluster.environment)
    gateway.wait_ready(container["readinessProbe"]["httpGet"]["path"])
    assert gateway.answers(container["livenessProbe"]["httpGet"]["path"])
    wait_until(lambda: set(state(gateway)) == {pods[0].url} and cluster.watches, gateway.output)
    rule, = made["Role"]["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    space = made["Role"]["metadata"]["namespace"]
    assert {path for path, _, _ in cluster.asked} == {f"/api/v1/namespaces/{space}/pods"}
    assert made["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert pod["spec"]["terminationGracePeriodSeconds"] > int(flags[flags.index("--shutdown-grace-period-secs") + 1])


def test_a_watch_that_ends_goes_on_and_one_that_is_too_old_lists_anew(cluster, pods, route):
    cluster.set("a", "127.0.0.2")
    gateway = route("--service-discovery", "--selector", "app=sglang", "--service-discovery-port", pods[0].port,
                    environment=cluster.environment)
    wait_until(lambda: set(state(gateway)) == {pods[0].url} and cluster.watches, gateway.output)
    assert cluster.asked[0][0] == "/api/v1/pods"
    version = str(cluster.version)
    cluster.end_watches()
    wait_until(lambda: cluster.watches, "it is not watched again")
    assert cluster.asked[-1][1]["resourceVersion"] == version
    # What happens while nobody watches is found by the list.
    lists = sum("watch" not in query for _, query, _ in cluster.asked)
    with cluster.lock:
        watches, cluster.watches = cluster.watches, []
    cluster.set("b", "127.0.0.3")
    for events, _ in watches:
        events.put({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})
        events.put(None)
    wait_until(lambda: set(state(gateway)) == {pods[0].url, pods[1].url}, gateway.output)
    assert sum("watch" not in query for _, query, _ in cluster.asked) > lists


def test_without_the_api_server_the_workers_stay(cluster, pods, route):
    cluster.set("a", "127.0.0.2")
    gateway = route("--service-discovery", "--selector", "app=sglang", "--service-discovery-port", pods[0].port,
                    environment=cluster.environment)
    wait_until(lambda: set(state(gateway)) == {pods[0].url} and cluster.watches, gateway.output)
    cluster.denied = True
    cluster.end_watches()
    wait_until(lambda: "answers 403" in gateway.output(), gateway.output)
    assert set(state(gateway)) == {pods[0].url}
    assert gateway.metric("portico_gateway_discovery_failures_total") >= 1
    cluster.denied = False
    wait_until(lambda: cluster.watches, "it is not watched again")
    assert gateway.output().count("answers 403") == 1, "it is told once"
    assert "secret-token" not in gateway.output()


def test_prefill_and_decode_pods_have_selectors_of_their_own(cluster, pods, route):
    for pod in pods:
        pod.info = b"{}"
    cluster.set("p", "127.0.0.2", labels={"app": "sglang", "role": "prefill"},
                annotations={"sglang.ai/bootstrap-port": "9000"})
    cluster.set("d", "127.0.0.3", labels={"app": "sglang", "role": "decode"})
    gateway = route("--service-discovery", "--pd-disaggregation", "--prefill-selector", "app=sglang", "role=prefill",
                    "--decode-selector", "app=sglang", "role=decode", "--service-discovery-port", pods[0].port,
                    environment=cluster.environment)
    gateway.wait_ready("/readiness")
    assert requests.post(gateway.url + "/generate", json={"text": "x"}, timeout=60).status_code == 200
    wait_until(lambda: pods[0].requests, "the prefill worker has not got the request")
    prefill, decode = json.loads(pods[0].requests[0][1]), json.loads(pods[1].requests[0][1])
    assert prefill == decode
    assert (prefill["bootstrap_host"], prefill["bootstrap_port"]) == ("127.0.0.2", 9000)


def test_outside_of_a_cluster_the_start_fails_and_says_why(tmp_path):
    gateway = Process("route", "--prometheus-port", "0", "--service-discovery", "--selector", "a=b",
                      environment={"KUBERNETES_SERVICE_HOST": "", "PORTICO_SERVICE_ACCOUNT_DIR": str(tmp_path)})
    assert gateway.process.wait(60) == 2 and "KUBERNETES_SERVICE_HOST" in gateway.output()


def test_workers_follow_a_file_as_it_changes(tmp_path, pods, route):
    file = tmp_path / "workers.json"
    file.write_text(json.dumps([pods[0].url]))
    gateway = route("--discovery-file", file, "--discovery-check-interval-secs", "0.5")
    wait_until(lambda: set(state(gateway)) == {pods[0].url}, gateway.output)
    requests.post(gateway.url + "/workers", json={"url": pods[2].url}, timeout=60)
    file.write_text(json.dumps([{"url": pods[1].url, "api_key": "k", "max_requests": 3}]))
    wait_until(lambda: set(state(gateway)) == {pods[1].url, pods[2].url}, gateway.output)
    file.write_text('[{"url": "ftp://a:1"}]')
    wait_until(lambda: "ftp://a:1" in gateway.output(), gateway.output)
    assert set(state(gateway)) == {pods[1].url, pods[2].url}
    file.write_text("")  # this removed the file's worker
    wait_until(lambda: "it is empty; the workers stay as they are" in gateway.output(), gateway.output)
    assert set(state(gateway)) == {pods[1].url, pods[2].url}
    file.write_text("[]")
    wait_until(lambda: set(state(gateway)) == {pods[2].url}, gateway.output)
