"""Workers that die or stop while requests are on them, clients that leave, and gateways without workers."""
import signal
import threading
import time

import requests
from conftest import freeze, wait_until
from gateway_fleet import fleets  # noqa: F401 (a fixture)

# Probes of healthy workers: the death of an idle one is seen by nothing else.
OFTEN = ("--health-check-interval-secs", "2", "--health-check-timeout-secs", "2")


def test_a_client_that_leaves_stops_the_worker(fleets):
    fleet = fleets(1, workers=("--mock-itl-ms", "50"))
    fleet.wait_healthy(1)
    answer = fleet.chat(stream=True, max_tokens=5000)
    lines = answer.iter_lines()
    next(lines)
    assert fleet.loads() == [1]
    answer.close()
    wait_until(lambda: fleet.loads() == [0], "the gateway has not noticed")
    wait_until(lambda: fleet.workers[0].metric("portico_requests_running") == 0, "the worker still runs it")


def test_no_whole_answer_fails_while_one_worker_lives(fleets):
    fleet = fleets(3, workers=("--mock-itl-ms", "5"))
    fleet.wait_healthy(3)
    wrong, done, stop = [], [0], threading.Event()

    def load():
        while not stop.is_set():
            try:
                answer = fleet.chat(max_tokens=10)
                if answer.status_code != 200:
                    wrong.append(answer.text)
            except requests.RequestException as error:
                wrong.append(str(error))
            done[0] += 1

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for worker in fleet.workers[:2]:
            time.sleep(0.5)
            worker.kill()
        time.sleep(1)
        fleet.workers[0].start()
        fleet.workers[0].wait_ready()
        recovered = time.time()
        wait_until(lambda: fleet.healthy() == 2, "the restarted worker is not used")
        assert time.time() - recovered < 2
        time.sleep(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong and done[0] > 50
    assert fleet.loads() == [0, 0, 0]


def test_streams_of_a_killed_worker_end_with_an_error_and_done(fleets):
    fleet = fleets(2, "--policy", "round_robin", workers=("--mock-itl-ms", "20"))
    fleet.wait_healthy(2)
    answers = [fleet.chat(stream=True, max_tokens=100) for _ in range(4)]
    lines = [answer.iter_lines(decode_unicode=True) for answer in answers]
    for line in lines:
        next(line)
    fleet.workers[0].kill()
    cut = 0
    for line in lines:
        said = [text[6:] for text in line if text.startswith("data: ")]
        assert said[-1] == "[DONE]"
        cut += '"worker_lost"' in said[-2]
    assert cut == 2
    assert fleet.loads() == [0, 0]


def test_a_stopped_worker_loses_its_whole_answers_to_others(fleets):
    fleet = fleets(2, "--policy", "round_robin", "--worker-stall-timeout-secs", "2", workers=("--mock-ttft-ms", "1000"))
    fleet.wait_healthy(2)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(fleet.chat().status_code)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    try:
        freeze(fleet.workers[0].process.pid)
        for thread in threads:
            thread.join()
        assert answers == [200] * 4
        assert fleet.healthy() == 1
        assert fleet.chat().status_code == 200
    finally:
        fleet.workers[0].process.send_signal(signal.SIGCONT)
    fleet.wait_healthy(2)


def test_without_workers_the_reason_is_said_and_readiness_tells_the_truth(fleets):
    fleet = fleets(1, *OFTEN)
    fleet.wait_healthy(1)
    assert requests.get(fleet.url + "/readiness", timeout=60).status_code == 200
    assert [requests.post(fleet.url + path, timeout=60).status_code for path in ("/health", "/readiness", "/metrics")] == [405] * 3
    fleet.workers[0].kill()
    wait_until(lambda: requests.get(fleet.url + "/readiness", timeout=60).status_code == 503, "it is still ready")
    answer = fleet.chat()
    assert answer.status_code == 503 and answer.headers["retry-after"]
    assert "127.0.0.1" not in answer.text and "1 down" in requests.get(fleet.url + "/readiness", timeout=60).text
    fleet.workers[0].start()
    fleet.wait_healthy(1)
    assert fleet.chat().status_code == 200
