"""Every command in README.md and docs/*.md that needs no network runs as it stands there, but for its ports."""
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import requests

from conftest import BINARY, ROOT, START_SECONDS, Server, WAIT_SECONDS, free_port, wait_until
from go_tools import go_program
from test_omni import MISSING as NO_SPEECH
from test_sglang import STAND_IN, flags as sglang

PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
# What does not run here, and why.
SKIPPED = [
    (r"pip install|-m venv|apt-get", "installs packages"),
    (r"^(\w+=\w+ )?\./dev |^cmake |bench/", "builds, or measures"),
    (r"^export PATH", "the program is the tests' own"),
    (r"openssl|--ssl-certfile|https://|systemctl|docker |useradd", "changes this machine, or wants certificates"),
    (r"--attach|kv-events-config", "wants an SGLang that runs elsewhere: tests/test_sglang_lives.py, test_kv_events_zmq.py"),
    (r"--allowed-media-domain", "wants a model that sees: tests/test_sglang_media.py"),
    (r"sglang serve|sglang_launch|test_sglang\*?_real", "wants an installed SGLang: tests/test_sglang_real.py"),
    (r"portico (launch|route).*--engine sglang", "workers of SGLang: tests/test_gateway_sglang.py"),
    (r"^(?!.*--engine sglang).*(~/models|model\.gguf|/models/(?!tiny-lora)|Qwen/|deepseek-ai/|my/(model|finetune))",
     "a model that is not in the repository"),
    *[(r"\bomni serve|omni check|/v1/audio/", "wants packages for speech (scripts/packages.sh speech)")] * bool(NO_SPEECH),
    *[(r"espeak|Grüß Gott", "wants espeak-ng")] * (shutil.which("espeak-ng") is None),
    (r"my-engine|10\.0\.0|\bKEY\b", "stands for a user's own program, addresses or key"),
    (r"--service-discovery|--discovery-file", "wants a cluster, or a file: tests/test_gateway_discovery.py"),
    (r"Health/Watch", "goes on until the client leaves"),
    (r"^portico top", "wants the page's gateway: tests/test_gateway.py"),
    (r"^portico profile", "records for a while, or reads what was recorded: tests/test_profiler.py"),
]
PROGRAMS = ["curl", "xxd", "base64"]
SERVERS = ("serve", "route", "launch", "omni serve")
# Servers of pages whose commands are for other models than the demo's.
FLAGS = {"/v1/embeddings": ("--is-embedding",), "rerank": ("--mock-labels", "1"),
         "/v1/classify": ("--mock-labels", "3"), "/v1/score": ("--mock-labels", "3")}


def is_whole(command):
    """Whether the shell would not wait for more."""
    if command.rstrip().endswith(("\\", "|")):
        return False
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def commands_of(block):
    """Lines that belong together. Where prompts are shown, the lines without one are answers."""
    prompted = any(line.startswith("$ ") for line in block)
    found = []
    for line in block:
        if found and not is_whole(found[-1]):
            found[-1] += "\n" + line
        elif line.startswith("$ "):
            found.append(line[2:])
        elif not prompted and line.strip() and not line.startswith("#"):
            found.append(line)
    return found


def blocks_of(page):
    text = (ROOT / page).read_text()
    for match in re.finditer(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, commands_of(match[1].splitlines())


BLOCKS = [pytest.param(page, commands, id=f"{page}:{line}") for page in PAGES for line, commands in blocks_of(page)]


def why_not(command):
    for pattern, reason in SKIPPED:
        if re.search(pattern, command):
            return reason
    for program in PROGRAMS:
        if re.search(rf"(^|[|(]\s*){program}\b", command) and not shutil.which(program):
            return f"{program} is not installed"
    return None


def server_of(words):
    """Which of SERVERS it starts; empty where it is something else."""
    name = " ".join(words[1:3]) if words[1:2] == ["omni"] else "".join(words[1:2])
    return name if name in SERVERS else ""


def words_of(command):
    words = shlex.split(command.strip().removesuffix("&").replace("\\\n", " "), comments=True)
    return words if words[:1] and os.path.basename(words[0]) == "portico" else []


class Shell:
    """Runs the commands of a block: servers stay, and the ports that they name are other ones here."""

    def __init__(self, folder, default):
        self.ports, self.servers, self.default = {}, {}, default
        self.tools = tools = folder / "bin"
        tools.mkdir()
        (tools / "portico").symlink_to(BINARY)
        (folder / ".curlrc").write_text("fail-with-body\nmax-time = 60\n")
        # Files and models that pages name.
        self.files = {"my.yaml": folder / "my.yaml", "speech.wav": folder / "speech.wav", "/models/tiny-lora": folder / "lora",
                      "/models/q": ROOT / "models/demo", "Qwen/Qwen3-8B": ROOT / "models/demo"}
        shutil.copy(ROOT / "pipelines/demo.yaml", folder / "my.yaml")
        (folder / "lora").mkdir()
        self.environment = {**os.environ, "CURL_HOME": str(folder), "PATH": f"{tools}:{os.environ['PATH']}"}

    def place(self, text):
        def port(match):
            wanted = int(match[2])
            if wanted not in self.ports:
                self.ports[wanted] = free_port() if self.servers else self.default(text).port
            return f"{match[1]}:{self.ports[wanted]}"

        for name, there in self.files.items():
            text = re.sub(rf"(?<![\w/]){re.escape(name)}\b", str(there), text)
        return re.sub(r"(127\.0\.0\.1|localhost):(\d+)", port, text)

    def serve(self, words):
        words = [str(BINARY), *words[1:]]
        if "sglang" in words:
            if "--sglang-python" in words:
                at = words.index("--sglang-python")
                del words[at:at + 2]
            words[4:4] = ["--sglang-launcher", str(STAND_IN), "--sglang-python", sys.executable]
        if "--port" in words:
            wanted = int(words[words.index("--port") + 1])
            at = words.index("--port")
            del words[at:at + 2]
        else:
            wanted = 30000
        words = [self.place(word) for word in words]
        self.stop(wanted)  # the page shows another way to start it
        self.ports[wanted] = self.ports.get(wanted) or free_port()
        at = words.index("--") if "--" in words else len(words)
        words[at:at] = ["--port", str(self.ports[wanted])]
        if words[1] == "launch":
            words += ["--router-dp-worker-base-port", str(free_port())]
        if words[1] in ("route", "launch"):
            prefix = "--router-" if words[1] == "launch" else "--"
            words += [prefix + "prometheus-port", "0"]
        server = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.servers[wanted] = server
        probe = "/readiness" if words[1] in ("route", "launch") else "/health"

        def ready():
            assert server.poll() is None, server.stderr.read()
            try:
                return requests.get(f"http://127.0.0.1:{self.ports[wanted]}{probe}", timeout=60).status_code == 200
            except requests.ConnectionError:
                return False

        wait_until(ready, f"{words} is not ready")

    def run(self, command):
        words = words_of(command)
        if server_of(words):
            return self.serve(words)
        command = self.place(command).replace("build/release/portico", "portico")
        if "grpcurl" in command and not (self.tools / "grpcurl").exists():
            (self.tools / "grpcurl").symlink_to(go_program("github.com/fullstorydev/grpcurl/cmd/grpcurl", "v1.9.4"))
        done = subprocess.run(["bash", "-o", "pipefail", "-c", self.sources + command], cwd=ROOT, text=True,
                              capture_output=True, timeout=WAIT_SECONDS, env=self.environment)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        output = re.search(r" -o (\S+)", command)
        if re.match(r"\w+=", command):  # what a later command uses
            self.sources += command + "\n"
        elif output:
            assert os.path.getsize(output[1]) > 0, command
        else:
            assert done.stdout.strip(), command
        return done.stdout

    sources = ""

    def stop(self, wanted):
        server = self.servers.pop(wanted, None)
        if server is not None:
            server.terminate()
            server.communicate(timeout=START_SECONDS)

    def close(self):
        for wanted in reversed(list(self.servers)):
            self.stop(wanted)


@pytest.fixture(scope="module")
def adapters():
    server = Server(*sglang("--enable-lora"))
    yield server
    server.stop()


@pytest.fixture
def shell(tmp_path, request, serve):
    def default(command):
        if "docs/embeddings.md" in request.node.name:
            for part, flags in FLAGS.items():
                if part in command:
                    return serve(*flags)
        if "docs/omni.md" in request.node.name:
            return serve("--speech")
        if "docs/sglang.md" in request.node.name:
            return request.getfixturevalue("adapters")
        return request.getfixturevalue("demo")

    made = Shell(tmp_path, default)
    yield made
    made.close()


@pytest.mark.parametrize("page, commands", BLOCKS)
def test_the_commands_of_a_page_run(shell, page, commands):
    ran = 0
    for command in commands:
        reason = why_not(command)
        if reason is None:
            shell.run(command)
            shell.ports = {} if not shell.servers else shell.ports
            ran += 1
        elif server_of(words_of(command)) and "curl" in commands[-1]:
            break  # what follows asks this server
    if ran == 0:
        pytest.skip("; ".join(sorted({why_not(command) or "asks a server of these" for command in commands})))


def test_most_commands_run():
    """A page in another form would be passed over in silence."""
    commands = [command for block in BLOCKS for command in block.values[1]]
    assert len(commands) >= 50
    assert len([command for command in commands if why_not(command) is None]) >= 25


def test_the_first_request_of_the_readme_is_answered_as_it_says(demo):
    for _, commands in blocks_of("README.md"):
        for command in commands:
            if command.startswith("curl") and "7 plus 5" in command:
                answer = subprocess.run(["bash", "-c", command.replace("127.0.0.1:30000", f"127.0.0.1:{demo.port}")],
                                        capture_output=True, text=True, timeout=WAIT_SECONDS)
                assert '"content":"7 plus 5 is 12."' in answer.stdout
                return
    raise AssertionError("the README has no first request")
