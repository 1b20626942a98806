"""An empty key opens no server: an unset variable of a shell makes one, on the command line or in the environment."""
import os
import signal
import subprocess

import pytest
import requests
from conftest import BINARY
from gateway_fleet import Process


@pytest.mark.parametrize("flags,environment", [(["--api-key", ""], {}), (["--api-key="], {}),
                                               ([], {"PORTICO_API_KEY": ""})])
def test_an_empty_key_is_refused(flags, environment):
    ended = subprocess.run([str(BINARY), "serve", "--engine", "mock", "--port", "0", *flags], capture_output=True,
                           text=True, timeout=60, env={**os.environ, **environment})
    assert ended.returncode != 0
    assert "without a key" in ended.stderr or "needs a value" in ended.stderr


def test_the_key_may_stand_in_the_environment(start, monkeypatch):
    monkeypatch.setenv("PORTICO_API_KEY", "of-the-environment")
    server = start("--engine", "mock")
    assert requests.get(f"{server.url}/v1/models", timeout=60).status_code == 401
    headers = {"Authorization": "Bearer of-the-environment"}
    assert requests.get(f"{server.url}/v1/models", headers=headers, timeout=60).status_code == 200


def test_the_gateways_key_may_stand_in_the_environment():
    """It was open, though a server with the same variable was not."""
    gateway = Process("route", "--prometheus-port", "0", environment={"PORTICO_API_KEY": "of-the-environment"})
    try:
        gateway.wait_ready()
        assert requests.get(f"{gateway.url}/workers", timeout=60).status_code == 401
        headers = {"Authorization": "Bearer of-the-environment"}
        assert requests.get(f"{gateway.url}/workers", headers=headers, timeout=60).status_code == 200
    finally:
        gateway.kill()


def test_a_key_is_taken_as_anthropics_clients_send_it(start):
    """They were answered 401 by a gateway before workers that have their API."""
    server = start("--engine", "mock", "--api-key", "k", "--admin-api-key", "a")
    gateway = Process("route", "--prometheus-port", "0", "--worker-urls", server.url, "--api-key", "k")
    try:
        gateway.wait_ready("/readiness")
        for url in (server.url, gateway.url):
            def status(path="/v1/models", method="GET", **headers):
                return requests.request(method, url + path, headers={name.replace("_", "-"): key for name, key in headers.items()},
                                        timeout=60).status_code

            assert [status(x_api_key="k"), status(x_api_key="K"), status()] == [200, 401, 401]
            # anthropic sends both where its environment has both: one of them is enough.
            assert status(x_api_key="of-anthropic", Authorization="Bearer k") == 200
            assert status(x_api_key="k", Authorization="Bearer of-anthropic") == 200
        assert requests.post(server.url + "/flush_cache", headers={"x-api-key": "k"}, timeout=60).status_code == 401
        assert requests.post(server.url + "/flush_cache", headers={"x-api-key": "a"}, timeout=60).status_code == 200
        # What the gateway has judged it does not pass on: the worker gets the gateway's own.
        answer = requests.post(gateway.url + "/v1/completions", json={"prompt": "a", "max_tokens": 1}, headers={"x-api-key": "k"}, timeout=60)
        assert answer.status_code == 200, answer.text
    finally:
        gateway.kill()


def test_what_was_refused_is_counted_by_status(start):
    server = start("--engine", "mock", "--api-key", "k")
    # /health answers 503 until the engine is loaded, and that counts.
    loading = server.metric("portico_http_errors_total", status="503")
    assert requests.get(f"{server.url}/v1/models", timeout=60).status_code == 401
    headers = {"Authorization": "Bearer k"}
    assert requests.get(f"{server.url}/nowhere", headers=headers, timeout=60).status_code == 404
    for status in ("401", "404"):
        server.wait_for("portico_http_errors_total", 1, status=status)
    assert server.metric("portico_http_errors_total", status="503") == loading


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="nohup is inherited, and means what it says")
def test_a_hangup_ends_the_server_as_sigterm_does(start):
    server = start("--engine", "mock")
    server.process.send_signal(signal.SIGHUP)
    assert server.process.wait(timeout=60) == 0
    assert "SIGHUP: draining: " in server.output()  # who expects a reload, as of the gateway, finds out why
