"""What operators see in the log: why requests were refused, and what was asked of the server. Contents of requests are not there."""
import subprocess

import requests
from conftest import BINARY

ADMIN = {"Authorization": "Bearer of-admins"}
USER = {"Authorization": "Bearer of-users"}


def test_refusals_and_controls_leave_lines_without_contents_and_keys(start, tmp_path):
    """A 400 left its status alone in the log, and a pause, behind which requests hang, nothing."""
    server = start("--engine", "mock", "--log-requests", "--api-key", "of-users", "--admin-api-key", "of-admins",
                   "--profile-dir", tmp_path)

    def post(path, body=None, headers=USER):
        return requests.post(server.url + path, json=body, headers=headers, timeout=60).status_code

    chat = {"messages": [{"role": "user", "content": "secret"}]}
    assert post("/v1/chat/completions", {**chat, "top_p": 9}, {**USER, "x-request-id": "mine"}) == 400
    assert post("/v1/chat/completions", {"messages": [{"role": "secret", "content": "a"}]}) == 400
    assert post("/v1/chat/completions", {**chat, "model": "secret"}) == 404
    assert post("/v1/chat/completions", {**chat, "regex": "secret("}) == 400
    assert post("/v1/completions?secret=1", {"prompt": "secret"}, {"x-api-key": "secret"}) == 401
    for path, body in [("/pause_generation", {"mode": "retract"}), ("/continue_generation", {}), ("/flush_cache", None),
                       ("/abort_request", {"abort_all": True}), ("/start_profile", {"run_id": "run_of_log"}), ("/stop_profile", {})]:
        assert post(path, body, ADMIN) == 200, path
    log = server.output()
    for line in ["refused POST /v1/chat/completions 400: top_p must be a number above 0 and at most 1; id mine",
                 "refused POST /v1/chat/completions 400: messages[0].role must be system, developer, user",
                 "refused POST /v1/chat/completions 404: model; code model_not_found; id ",
                 "refused POST /v1/chat/completions 400: regex; id ",
                 "refused POST /v1/completions 401: incorrect or missing API key; send …; code invalid_api_key; id ",
                 "info generation is paused (retract)\n", "info generation continues\n", "info the cached prefixes are dropped\n",
                 "info all requests are aborted: it was asked for\n", "info profile run_of_log: events are recorded in ",
                 "info profile run_of_log: it has been stopped\n"]:
        assert line in log, log
    assert "secret" not in log and "of-users" not in log and "of-admins" not in log


def test_only_servers_that_log_requests_say_why_they_refuse(start):
    server = start("--engine", "mock")
    assert server.chat("a", top_p=9).status_code == 400
    assert "refused" not in server.output()


def test_what_needs_the_admin_key_says_so(start):
    """The right key of clients was called an incorrect one, by `portico profile` with `.;` at its end."""
    server = start("--engine", "mock", "--api-key", "of-users", "--admin-api-key", "of-admins")
    answer = requests.post(server.url + "/flush_cache", headers=USER, timeout=60)
    assert answer.status_code == 401 and answer.json()["error"]["code"] == "invalid_api_key"
    assert answer.json()["error"]["message"].startswith("this needs the server's admin key (--admin-api-key)")
    profile = subprocess.run([str(BINARY), "profile", server.url, "--seconds", "0.1", "--api-key", "of-users"],
                             capture_output=True, text=True, timeout=60)
    assert profile.returncode != 0
    assert "(--admin-api-key); send `Authorization: Bearer KEY`; --api-key or PORTICO_API_KEY takes that key" in profile.stderr


def test_apis_that_are_not_served_are_named(start):
    """A 404 had the path alone, of a client whose base URL lacks /v1 too."""
    server = start("--engine", "mock")

    def said(path):
        answer = requests.post(server.url + path, json={}, timeout=60)
        assert answer.status_code == 404, answer.text
        return answer.json()["error"]["message"]

    assert said("/chat/completions").endswith("; did you mean /v1/chat/completions? (base URLs of OpenAI's clients end with /v1)")
    assert said("/v1/messages").endswith("; this server does not have Anthropic's API: use /v1/chat/completions")
    assert said("/nowhere") == "unknown path: POST /nowhere"
