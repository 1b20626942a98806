"""What the HTTP benches share: building their programs, servers pinned to a core, their CPU, recorded answers."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PORTICO_BUILD", ROOT / "build/release"))
WORK = ROOT / "build/bench/http"
SERVER_CORE, LOAD_CORE = 0, 1
TICK = os.sysconf("SC_CLK_TCK")


def build(*targets):
    WORK.mkdir(parents=True, exist_ok=True)
    if "PORTICO_BUILD" in os.environ:  # a build to be measured as it is
        return
    subprocess.run(["ninja", "-C", BUILD, *targets], check=True, stdout=subprocess.DEVNULL)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A process on the server's core, until it answers on its port."""

    def __init__(self, command, port, health=None, core=SERVER_CORE):
        self.port = port
        self.log = open(WORK / f"server-{port}.log", "wb")
        self.process = subprocess.Popen(["taskset", "-c", str(core), *map(str, command)], stdout=self.log,
                                        stderr=subprocess.STDOUT)
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended: " + pathlib.Path(self.log.name).read_text(errors="replace"))
            if self.answers(health):
                return
            time.sleep(0.1)
        raise SystemExit(f"{command[0]} does not answer on port {port}")

    def answers(self, health):
        try:
            if health:
                return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{health}", timeout=5).status == 200
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def cpu(self):
        """Seconds of CPU so far, user and kernel."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss(self):
        """Bytes."""
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.process.pid}/status").read())[1]) * 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def run_at_once():
    """Gives this process the processor whenever it is ready, where that is allowed: what it times is then not its own waiting."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("without real-time scheduling: what else runs counts, too", flush=True)


def portico(*flags):
    port = free_port()
    command = [BUILD / "portico", "serve", "--engine", "mock", "--shards", "1", "--port", str(port),
               "--model-path", str(ROOT / "models/demo"), "--served-model-name", "demo", *map(str, flags)]
    return Server(command, port, "/health")


def raw_server(whole, frames, itl_ms=0):
    port = free_port()
    return Server([BUILD / "bench/http_raw_server", port, whole, frames, itl_ms], port)


def load(port, **flags):
    """The load generator's figures."""
    command = ["taskset", "-c", str(LOAD_CORE), BUILD / "bench/http_load", "--port", str(port)]
    for name, value in flags.items():
        command.append("--" + name.replace("_", "-"))
        if value is not True:
            command.append(str(value))
    return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)


def measured_load(server, **flags):
    before = server.cpu()
    figures = load(server.port, **flags)
    figures["cpu"] = server.cpu() - before
    if figures["errors"]:
        raise SystemExit(f"{figures['errors']} errors in {figures['requests']} requests of {flags}")
    return figures


def chat_request(tokens, stream, prompt_bytes=2048):
    body = {"model": "demo", "messages": [{"role": "system", "content": "You are a helpful assistant."},
                                          {"role": "user", "content": ("Some words to say. " * 200)[:prompt_bytes]}],
            "temperature": 0.7, "max_tokens": tokens}
    if stream:
        body["stream"] = True
    text = json.dumps(body)
    return (f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(text)}\r\n\r\n{text}").encode()


def record(port, request):
    """The answer's bytes as they come: a list with what each receive brought."""
    pieces = []
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.sendall(request)
        whole = b""
        while True:
            piece = s.recv(1 << 20)
            if not piece:
                raise SystemExit("the server closed while its answer was recorded")
            pieces.append(piece)
            whole += piece
            head, separator, body = whole.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if separator and (len(body) == int(length[1]) if length else whole.endswith(b"\r\n0\r\n\r\n")):
                return pieces


def write_frames(path, pieces):
    path.write_bytes(b"".join(b"%d\n%s" % (len(piece), piece) for piece in pieces))
