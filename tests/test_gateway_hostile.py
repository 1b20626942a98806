"""Requests that somebody made to harm: the gateway goes on, and what it refuses has reached no worker."""
import pytest
import requests
from gateway_fleet import Process, RawWorker


def ok(connection, head, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (b"" if head.startswith(b"HEAD ") else b"ok"))


@pytest.fixture(scope="module")
def gateway():
    """(worker, gateway): one gateway for all, which must end well."""
    worker = RawWorker(ok)
    made = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--worker-urls", worker.url)
    made.wait_ready("/readiness")
    yield worker, made
    assert made.end() == 0, made.output()[-3000:]
    worker.stop()


@pytest.mark.parametrize("depth", [1_000, 50_000, 500_000])
@pytest.mark.parametrize("field", ["prompt", "input"])
def test_a_prompt_of_nothing_but_brackets_does_not_end_the_gateway(gateway, field, depth):
    _, made = gateway
    body = '{"%s":%s%s,"model":"m"}' % (field, "[" * depth, "]" * depth)
    answer = requests.post(made.url + "/v1/completions", data=body, headers={"Content-Type": "application/json"}, timeout=60)
    assert (answer.status_code, answer.text) == (200, "ok")
    assert made.process.poll() is None, made.output()[-3000:]
