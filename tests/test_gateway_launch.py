"""`portico launch`: workers that it starts, restarts and ends."""
import os
import pathlib
import re
import signal
import socket
import sys

import pytest
import requests
from conftest import BINARY, free_port, wait_until
from gateway_fleet import Process

OUT = r" is unhealthy: "  # whichever part of the gateway marks it first


def test_launch_starts_workers_restarts_them_and_ends_them():
    launch = Process("launch", "--engine", "mock", "--dp-size", "2", "--router-prometheus-port", "0",
                     "--router-dp-worker-base-port", str(free_port()), "--router-policy", "round_robin")

    def workers():
        return requests.get(launch.url + "/workers", timeout=60).json()["workers"]

    try:
        launch.wait_ready("/readiness")
        wait_until(lambda: all(worker["is_healthy"] for worker in workers()), launch.output)
        assert len(workers()) == 2
        # They were unhealthy in the log before they had been started.
        assert " is unhealthy" not in launch.output()
        pid = int(re.search(r"worker 0 \(w1\) on port \d+ started: process (\d+)", launch.output())[1])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "it starts again" in launch.output(), launch.output)
        # Without requests it counted as healthy until its next probe, a minute later.
        assert re.search(OUT, launch.output())
        wait_until(lambda: all(worker["is_healthy"] for worker in workers()), launch.output)
        urls = [worker["url"] for worker in workers()]
        assert launch.end() == 0, launch.output()
    finally:
        launch.kill()
    for url in urls:
        with pytest.raises(requests.ConnectionError):
            requests.get(url + "/health", timeout=60)


def test_without_probes_a_worker_that_has_ended_is_down_until_its_process_runs_again():
    """It counted as healthy a moment after its end."""
    launch = Process("launch", "--engine", "mock", "--dp-size", "2", "--router-prometheus-port", "0", "--router-disable-health-check",
                     "--router-dp-worker-base-port", str(free_port()))

    def healthy():
        return [worker["is_healthy"] for worker in requests.get(launch.url + "/workers", timeout=60).json()["workers"]]

    def after_its_end():
        after = re.split(OUT, launch.output(), maxsplit=1)[1:]
        return re.findall(r"worker 0 \(w1\) on port \d+ (started)|worker w1 \S+ is (healthy)", "".join(after))

    try:
        launch.wait_ready("/readiness")
        wait_until(lambda: healthy() == [True, True] and "worker 0 (w1) on port" in launch.output(), launch.output)
        os.kill(int(re.search(r"worker 0 \(w1\) on port \d+ started: process (\d+)", launch.output())[1]), signal.SIGKILL)
        wait_until(lambda: ("", "healthy") in after_its_end(), launch.output)
        assert after_its_end()[0] == ("started", ""), launch.output()
        wait_until(lambda: healthy() == [True, True], launch.output)
        assert launch.end() == 0, launch.output()
    finally:
        launch.kill()


@pytest.mark.parametrize("flags,words", [
    (["--engine", "mock", "--nonsense", "3"], "--nonsense"),
    (["--kv-cache-dtype", "int3"], "--kv-cache-dtype: `int3`"),
    (["--model-path", "/no/such/model"], "/no/such/model: there is no such model"),
])
def test_a_worker_that_refuses_its_flags_ends_the_launch(flags, words):
    """It was started again and again, with the same end."""
    launch = Process("launch", *flags, "--router-prometheus-port", "0", "--router-dp-worker-base-port", str(free_port()))
    try:
        assert launch.process.wait(120) == 2, launch.output()
    finally:
        launch.kill()
    output = launch.output()
    assert words in output and "refuses its command line" in output and "it starts again" not in output
    assert output.index(words) < output.index("refuses its command line")


def test_a_launch_whose_workers_all_fail_at_their_first_start_ends(tmp_path):
    """A python3 without SGLang was started again and again, for a minute."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"$0: No module named $2\" >&2\nexit 1\n")
    python.chmod(0o755)
    launch = Process("launch", "--engine", "sglang", "--model-path", "m", "--dp-size", "2", "--sglang-python", python,
                     "--router-prometheus-port", "0", "--router-dp-worker-base-port", str(free_port()))
    try:
        assert launch.process.wait(120) == 1, launch.output()
    finally:
        launch.kill()
    output = launch.output()
    assert output.count(f"{python}: No module named sglang.launch_server") in (2, 3), output  # one may have been started again
    assert re.search(r"portico launch: worker \d \(w\d\) on port \d+ has ended \(status 1\) at its first start, as have all others; ", output), output


@pytest.mark.parametrize("program,flags", [("vllm", ["--engine", "vllm", "Qwen/Qwen3-8B"]),
                                           ("python3", ["--engine", "sglang", "--model-path", "m"])])
def test_flags_that_vllm_or_sglang_refuse_end_a_launch(tmp_path, program, flags):
    """They were given to it again and again."""
    (tmp_path / program).write_text("#!/bin/sh\necho \"arguments: $*\" >&2\nexit 2\n")
    (tmp_path / program).chmod(0o755)
    launch = Process("launch", *flags, "--router-prometheus-port", "0", "--router-dp-worker-base-port", str(free_port()),
                     environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    try:
        assert launch.process.wait(120) == 2, launch.output()
    finally:
        launch.kill()
    assert "refuses its command line" in launch.output()
    assert program != "vllm" or "arguments: serve Qwen/Qwen3-8B --host" in launch.output()


def test_what_workers_write_is_marked_line_by_line(tmp_path):
    """The lines of two workers mixed, and nothing said whose they were."""
    worker = tmp_path / "worker.py"
    worker.write_text("import sys, time\n"
                      "rank = sys.argv[1]\n"
                      "for _ in range(200):\n"
                      "    sys.stdout.write(rank * 300); sys.stdout.flush(); sys.stdout.write(rank * 300 + '\\n')\n"
                      "sys.stderr.write('no line break at the end of ' + rank)\n"
                      "sys.exit(3)\n")
    launch = Process("launch", "--dp-size", "2", "--worker-command", f"{sys.executable} {worker} {{rank}}",
                     "--router-prometheus-port", "0", "--router-dp-worker-base-port", str(free_port()))
    try:
        wait_until(lambda: len(set(re.findall(r"worker (\d) \(w\d\) on port \d+ has ended", launch.output()))) == 2, launch.output)
    finally:
        launch.kill()
    lines = launch.output().split("\n")
    for rank in "01":
        assert lines.count(f"[worker {rank}] " + rank * 600) >= 200
        last = lines.index(f"[worker {rank}] no line break at the end of {rank}")
        assert last < next(i for i, line in enumerate(lines) if f"worker {rank} (w{int(rank) + 1}) on port" in line and "has ended (status 3)" in line)


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_dead_worker_leaves_behind_is_ended_before_it_starts_again(tmp_path):
    """The schedulers of an engine whose server had died kept its GPUs."""
    script = tmp_path / "engine.sh"
    script.write_text(f"sleep 3600 & echo $! >> {tmp_path}/pids\nexec {BINARY} serve --engine mock --port $1\n")
    launch = Process("launch", "--router-prometheus-port", "0", "--router-dp-worker-base-port", str(free_port()),
                     "--worker-command", f"bash {script} {{port}}")
    try:
        launch.wait_ready("/readiness")
        os.kill(int(re.search(r"started: process (\d+)", launch.output())[1]), signal.SIGKILL)
        wait_until(lambda: len((tmp_path / "pids").read_text().split()) == 2, launch.output)
        first, second = (tmp_path / "pids").read_text().split()
        wait_until(lambda: not runs(first), "it is left behind")
        assert runs(second)
        launch.wait_ready("/readiness")
        assert launch.end() == 0, launch.output()
        wait_until(lambda: not runs(second), "it is left behind")
    finally:
        launch.kill()


def test_a_worker_in_grpc_mode_has_two_ports(tmp_path):
    """The second one, its server of metrics', could be another program's: the worker ended."""
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexec sleep 3600\n")
    python.chmod(0o755)
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        base = taken.getsockname()[1] - 1
        launch = Process("launch", "--engine", "sglang", "--model-path", "m", "--dp-size", "2", "--smg-grpc", "--router-prometheus-port", "0",
                         "--router-dp-worker-base-port", str(base), environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
        try:
            def ports():
                return [int(port) for port in re.findall(r"worker \d \(w\d\) on port (\d+) started", launch.output())]

            wait_until(lambda: len(ports()) == 2, launch.output)
            assert ports()[0] >= base + 2 and ports()[1] >= ports()[0] + 2
            assert launch.end() == 0, launch.output()
        finally:
            launch.kill()


def test_launch_reads_the_gateways_file_again(tmp_path):
    file = tmp_path / "gateway.yaml"
    file.write_text("policy: round_robin\n")
    launch = Process("launch", "--engine", "mock", "--router-prometheus-port", "0", "--router-config", file,
                     "--router-dp-worker-base-port", str(free_port()))
    try:
        launch.wait_ready("/readiness")
        file.write_text("policy: least_load\nrequest-timeout-secs: 77\n")
        launch.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "policy least_load" in launch.output(), launch.output)
        wait_until(lambda: "after a restart only: --router-request-timeout-secs\n" in launch.output(), launch.output)
        workers = requests.get(launch.url + "/workers", timeout=60).json()
        assert workers["stats"]["policy"] == "least_load"
        assert [worker["id"] for worker in workers["workers"]] == ["w1"], "the worker stays"
        assert launch.end() == 0, launch.output()
    finally:
        launch.kill()


def test_clients_and_workers_may_have_different_keys():
    """The gateway sent its own key to workers that wanted theirs: every request was a 401."""
    launch = Process("launch", "--engine", "mock", "--api-key=-w", "--router-api-key", "g", "--router-prometheus-port", "0",
                     "--router-dp-worker-base-port", str(free_port()))

    def status(key):
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
        return requests.post(launch.url + "/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"},
                             timeout=60).status_code

    try:
        launch.wait_ready("/readiness")
        assert [status("g"), status("-w")] == [200, 401]
        launch.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "reload:" in launch.output(), launch.output)
        assert status("g") == 200
    finally:
        launch.kill()
