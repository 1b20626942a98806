"""The flags of `portico route`: what it takes, abbreviates and refuses."""
import re
import subprocess

import pytest

from conftest import BINARY, ROOT


def run(*words):
    done = subprocess.run([str(BINARY), *words], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_flag_that_portico_does_not_have_is_named():
    status, said = run("route", "--worker-urls", "http://a:1", "--redis-url", "redis://a")
    assert status == 2 and "--redis-url" in said
    status, said = run("route", "--nonsense")
    assert status == 2 and "--nonsense" in said


def test_the_defaults_of_sglang_routers_backends_are_taken():
    """They were refused as flags that Portico does not have."""
    for flag, value, good, why in (("--backend", "sglang", True, "only"), ("--history-backend", "memory", True, "`"),
                                   ("--history-backend", "none", True, "`"),
                                   ("--backend", "openai", False, "only sglang is accepted; workers of all engines are recognized"),
                                   ("--history-backend", "redis", False, "`redis` is not one of memory, none; the gateway keeps no conversations")):
        # The last flag is wrong in any case: nothing starts.
        status, said = run("route", "--worker-urls", "http://a:1", flag, value, "--port", "many")
        assert status == 2 and (f"{flag}: {why}\n" in said) is not good, said


def test_the_manual_names_what_is_refused():
    manual = (ROOT / "docs/gateway.md").read_text()
    refused = re.findall(r"`(--[\w-]+)`", manual.split("are rejected by name at the start: ")[1].split("\n\n")[0])
    for flag in refused:
        status, said = run("route", flag, "1")
        assert status == 2 and f"unknown flag {flag}: " in said, said
    hints = (ROOT / "src/app/options/route_flag_hints.cc").read_text()
    known, of_smg = [re.findall(r'\.name = "([\w-]+)"', part) for part in hints.split("kSglangRouter[] =")[1].split("kSmg[] =")]
    assert refused == ["--" + flag for flag in known]
    # Those of smg that have another name here.
    renamed = re.findall(r"^\| (`--.*) \| `(--[\w-]+)` \|", manual.split("| smg 1.13 | Portico |")[1].split("\n\n")[0], re.MULTILINE)
    assert len(of_smg) > 60
    for flags, here in renamed:
        for flag in re.findall(r"`(--[\w-]+)`", flags):
            status, said = run("route", flag, "1")
            assert status == 2 and f"unknown flag {flag}; here it is {here}" in said, said
    assert len(re.findall("--", "".join(flags for flags, _ in renamed))) == hints.count(".flag = ")


def test_flags_of_smg_get_a_reason():
    """--enable-rl was taken for --enable-igw, and --header-read-timeout-secs for --health-check-timeout-secs."""
    for flag, why in (("--enable-rl", "no /v1/rl"), ("--epd-disaggregation", "EPD"), ("--mesh-port", "no mesh"),
                      ("--header-read-timeout-secs", "has no flag"), ("--tenant-api-key", "no tenants"), ("--enable-wasm", "no WASM")):
        for command in (("route",), ("route", "--worker-urls", "grpc://a:1")):
            status, said = run(*command, flag, "1")
            assert status == 2 and f"unknown flag {flag}: " in said and why in said, said
    status, said = run("launch", "--engine", "mock", "--router-sticky-sessions")
    assert status == 2 and "unknown flag --router-sticky-sessions: --router-policy manual" in said, said
    # A name that is shortened is one of Portico's own first.
    status, said = run("route", "--worker-urls", "grpc://a:1", "--model", "/nowhere")
    assert status == 2 and "--model-path: /nowhere" in said, said


def test_an_abbreviation_must_be_unambiguous():
    status, said = run("route", "--health-check", "5")
    assert status == 2 and "--health-check-timeout-secs" in said and "--health-check-interval-secs" in said
    status, said = run("route", "--eviction-interval", "nonsense")
    assert status == 2 and "--eviction-interval-secs: `nonsense` is not a number" in said


def test_values_are_checked():
    for words, wanted in ((("--port", "70000"), "--port"), (("--policy", "fastest"), "--policy"),
                          (("--worker-urls", "ftp://a:1"), "ftp://a:1"), (("--cache-threshold",), "needs a value"),
                          (("--worker-urls", "http://a:1", "http://a:1"), "twice"), (("stray",), "stray")):
        status, said = run("route", *words)
        assert status == 2 and wanted in said, said


def test_sizes_may_have_units(tmp_path):
    """serve took 8MiB, route did not."""
    for flag in ("--max-payload-size", "--max-buffered-body-bytes", "--max-unsent-bytes", "--index-bytes", "--profile-max-bytes"):
        # The last flag is wrong in any case: nothing starts.
        status, said = run("route", "--worker-urls", "http://a:1", flag, "8MiB", "--port", "many")
        assert status == 2 and "--port: `many`" in said, said
        status, said = run("route", flag, "8MB")
        assert status == 2 and f"{flag}: `8MB` is not a number of bytes (1048576, 1024KiB, 1MiB)" in said, said
    # The unit counts.
    status, said = run("route", "--max-unsent-bytes", "1KiB")
    assert status == 2 and "--max-unsent-bytes: 1KiB is not in 65536.." in said, said
    file = tmp_path / "fleet.yaml"
    file.write_text("max-payload-size: 8MiB\n")
    assert run("check", str(file))[0] == 0


def test_a_limit_that_admits_nothing_is_refused(tmp_path):
    """Every request waited for the queue's timeout. sglang-router has no limit then."""
    status, said = run("route", "--worker-urls", "http://a:1", "--max-concurrent-requests", "0")
    assert status == 2 and "--max-concurrent-requests: 0 would admit no request; -1 sets no limit" in said, said
    file = tmp_path / "fleet.yaml"
    file.write_text("workers: [http://a:1]\nmax-concurrent-requests: 0\n")
    status, said = run("check", str(file))
    assert status == 1 and f"{file}:2: max-concurrent-requests: 0 would admit no request" in said, said


def test_log_levels_have_the_names_of_other_servers_too():
    """serve refused warn, which route took."""
    for command in (("serve", "--engine", "mock"), ("route", "--worker-urls", "http://a:1"), ("launch", "--engine", "mock")):
        prefix = "router-" if command[0] == "launch" else ""
        for level in ("trace", "debug", "info", "warn", "warning", "error", "critical"):
            # The last flag is wrong in any case: nothing starts.
            status, said = run(*command, f"--{prefix}log-level", level, "--port", "many")
            assert status == 2 and "log-level" not in said and "many" in said, said


def test_a_list_without_a_value_is_refused():
    """--worker-urls before an empty $WORKERS started a gateway without workers, and empty keys one without keys."""
    for flag in ("--worker-urls", "--control-plane-api-keys", "--aliases", "--ca-cert-paths", "--selector"):
        for rest in ((), ("--port", "0")):
            status, said = run("route", flag, *rest)
            assert status == 2 and f"{flag} needs a value" in said, said
    status, said = run("launch", "--engine", "mock", "--router-control-plane-api-keys")
    assert status == 2 and "--router-control-plane-api-keys needs a value" in said, said


def test_a_time_that_the_clock_cannot_hold_is_refused():
    """Every request was answered 504 at once, and every probe failed."""
    for flag in ("--request-timeout-secs", "--queue-timeout-secs", "--health-check-timeout-secs", "--worker-connect-timeout-secs"):
        status, said = run("route", flag, "10000000000")
        assert status == 2 and f"{flag}: 10000000000 is not in" in said, said
    status, said = run("route", "--hedge-after-ms", "9007199254740992")
    assert status == 2 and "--hedge-after-ms: 9007199254740992 is not in" in said, said


def test_a_wrong_value_is_that_of_route_before_workers_that_take_tokens_too():
    """It was told that `portico serve` does not know the flag."""
    status, said = run("route", "--worker-urls", "grpc://a:1", "--max-buffered-body-bytes", "5")
    assert status == 2 and "portico route: --max-buffered-body-bytes is 0 or at least 65536" in said, said
    status, said = run("route", "--worker-urls", "grpc://a:1", "--pd-disaggregation")
    assert status == 2 and said.startswith("portico route:"), said


def test_a_tokenizer_that_is_not_there_is_said_before_the_workers_that_need_it():
    """The gateway started, and waited for them."""
    for flags in (("--worker-urls", "grpc://a:1"), ("--worker-urls", "http://a:1", "grpcs://b:1"),
                  ("--pd-disaggregation", "--prefill", "grpc://a:1", "--decode", "grpc://b:1")):
        for flag in ("--tokenizer-path", "--model-path"):
            status, said = run("route", *flags, flag, "/nowhere")
            assert status == 2 and f"{flag}: /nowhere: there is no such file or folder" in said, said
    # Workers of HTTP do not need it: sglang-router's users name the hub's model.
    status, said = run("route", "--worker-urls", "http://a:1", "--model-path", "Qwen/Qwen3-8B", "--worker-urls", "http://a:1")
    assert status == 2 and "is named twice" in said, said


def test_check_tells_what_is_wrong_with_a_file(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text("policy: round_robin\nworkers:\n  - url: http://a:1\n    api-key: k\n  - http://b:2\n")
    assert run("check", str(file)) == (0, f"{file}: good; 2 workers, policy round_robin\n")
    file.write_text("policy: round_robin\nport: many\n")
    status, said = run("check", str(file))
    assert status == 1 and f"{file}:2: port" in said


def test_a_key_that_is_there_twice_is_refused(tmp_path):
    """The last of two lists of workers counted, in silence."""
    file = tmp_path / "fleet.yaml"
    for text in ("workers: [http://a:1]\npolicy: cost\nworkers: [http://b:1]\n", "queue-size: 1\nqueue_size: 2\n",
                 "workers:\n  - {url: http://a:1, max-requests: 1, max_requests: 2}\n"):
        file.write_text(text)
        status, said = run("check", str(file))
        assert status == 1 and "twice" in said, (text, said)


def test_a_second_document_of_a_file_is_refused(tmp_path):
    """It was left out in silence."""
    file = tmp_path / "fleet.yaml"
    file.write_text("workers: [http://a:1]\n---\npolicy: cost\n")
    status, said = run("check", str(file))
    assert status == 1 and f"{file}:3: a second document begins here" in said


@pytest.mark.parametrize("text, wanted", [(b"policy: 'cost\n", "illegal EOF in scalar"),
                                          (b"workers: [http://a:1]\npolicy: \"cost\n\n", "illegal EOF in scalar"),
                                          (b"\xff\xfe\0\0", "not UTF-8"), ("policy: cost\n".encode("utf-16"), "not UTF-8")])
def test_a_file_that_is_cut_or_encoded_otherwise_is_refused(tmp_path, text, wanted):
    """It was taken, as an empty one or with a quote that nothing closed."""
    file = tmp_path / "fleet.yaml"
    file.write_bytes(text)
    status, said = run("check", str(file))
    assert status == 1 and f"{file}:" in said and wanted in said, said


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "---\n", "null\n"])
def test_an_empty_file_is_refused(tmp_path, text):
    """It was good, and a reload of it removed all workers."""
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    status, said = run("check", str(file))
    assert status == 1 and f"{file}: it is empty" in said, said


def test_what_is_wrong_with_a_worker_of_the_file_is_named(tmp_path):
    file = tmp_path / "fleet.yaml"
    for field, wanted in (("max-requests: x", "max-requests"), ("max-requests: -1", "max-requests"),
                          ("labels: 5", "labels"), ("models: x", "models"), ("api-key: [k]", "api-key"),
                          ('api-key: "k\\r\\nx: y"', "api-key"), ("role: x", "role"), ("nothing: 1", "nothing")):
        file.write_text(f"workers:\n  - {{url: http://a:1, {field}}}\n")
        status, said = run("check", str(file))
        assert status == 1 and f"{file}:2: workers: " in said and wanted in said, (field, said)


def test_what_is_wrong_below_a_key_has_its_own_line(tmp_path):
    """All of it was told of the line of `workers`, and a template that is not there of none."""
    file = tmp_path / "fleet.yaml"
    for text, wanted in (("workers:\n  - url: http://a:1\n    apikey: k\n", ":3: workers: unknown key `apikey` of a worker"),
                         ("workers:\n  - http://a:1\n  - ftp://b:1\n", ":3: workers: "),
                         ("models:\n  a:\n    chat-template: [1]\n", ":3: models: "),
                         ("policy: cost\nmodels:\n  a:\n    chat-template: /nowhere.jinja\n", ":3: models: `a`: ")):
        file.write_text(text)
        status, said = run("check", str(file))
        assert status == 1 and said.startswith(f"{file}{wanted}"), said


def test_a_name_that_is_none_is_answered_with_the_closest_one(tmp_path):
    """serve and omni did so, route and its file did not."""
    for words, wanted in ((("route", "--polcy", "random"), "unknown flag --polcy; did you mean --policy?"),
                          (("launch", "--engine", "mock", "--router-polcy", "random"), "did you mean --router-policy?"),
                          (("serv",), "there is no command `serv`; did you mean `serve`?"),
                          (("nonsense",), "there is no command `nonsense`; portico --help lists them"),
                          (("route", "--nonsense"), "unknown flag --nonsense; portico route --help lists all\n")):
        status, said = run(*words)
        assert status == 2 and wanted in said, said
    file = tmp_path / "fleet.yaml"
    for text, wanted in (("worker: [http://a:1]", ":1: unknown key `worker`; did you mean `workers`?"),
                         ("max_concurent_requests: 1", "did you mean `max-concurrent-requests`?"),
                         ("workers: [{url: http://a:1, apikey: k}]", "did you mean `api-key`?"),
                         ("models: {a: {tokenizer: /t}}", "unknown key `tokenizer` of a model\n"),
                         ("models: {a: {tokeniser-path: /t}}", "did you mean `tokenizer-path`?")):
        file.write_text(text + "\n")
        status, said = run("check", str(file))
        assert status == 1 and wanted in said, said


def test_check_says_that_a_file_is_of_serve(tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text("max-body-bytes: 1MiB\n")
    status, said = run("check", str(file))
    assert status == 1 and "unknown key `max-body-bytes`; it is one of `portico serve`" in said, said
    file.write_text("models:\n  - model-path: /m\n")
    status, said = run("check", str(file))
    assert status == 1 and "a list of models is one of `portico serve`" in said, said


def test_check_takes_several_files_and_tells_of_one_without_workers(tmp_path):
    files = [tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml")]
    for file, text in zip(files, ("workers: [http://a:1]\n", "prot: 1\n", "policy: random\n")):
        file.write_text(text)
    status, said = run("check", *map(str, files))
    assert status == 1 and f"{files[0]}: good; 1 worker, policy cost\n" in said and f"{files[1]}:1: unknown key `prot`" in said, said
    assert f"{files[2]}: good; 0 workers (flags or POST /workers have to name some), policy random\n" in said, said
    assert run("check", str(files[0]), "--help")[0] == 2 and run("check")[0] == 2 and run("check", "--help")[0] == 0


def test_a_flag_of_launch_is_named_as_it_was_written():
    status, said = run("launch", "--engine", "mock", "--router-nothing", "3")
    assert status == 2 and "--router-nothing" in said


def test_a_flag_of_the_gateway_without_its_prefix_ends_a_launch():
    """--policy went to the workers, and the gateway chose by the cost."""
    status, said = run("launch", "--engine", "mock", "--dp-size", "2", "--policy", "round_robin")
    assert status == 2 and said == "portico launch: --policy is no flag of the workers; the gateway's is --router-policy\n", said


def test_what_is_wrong_with_a_model_of_the_file_is_named(tmp_path):
    file = tmp_path / "fleet.yaml"
    for text, wanted in (("[a]", "must be a mapping"), ("{a: 1}", "`a` must be a mapping"),
                         ("{a: {nothing: 1}}", "unknown key `nothing`"), ("{a: {chat-template: [1]}}", "chat-template"),
                         ("{a: {tool-call-parser: nothing}}", "`a`: tool-call-parser: there is no parser `nothing`"),
                         ("{a: {chat-template: /nowhere.jinja}}", "/nowhere.jinja"),
                         # A tokenizer that is not there was good.
                         ("{a: {tokenizer-path: /nowhere}}", "`a`: tokenizer-path: /nowhere: there is no such file or folder"),
                         ("{a: {model-path: /nowhere}}", "`a`: model-path: /nowhere: there is no such file or folder")):
        file.write_text(f"models: {text}\n")
        status, said = run("check", str(file))
        assert status == 1 and wanted in said, said
    file.write_text(f"models: {{a: {{tokenizer-path: {tmp_path}, reasoning_parser: qwen3}}}}\n")
    assert run("check", str(file))[0] == 0


def test_every_flag_is_in_the_manual_with_its_default():
    told = {}
    for flag, text in re.findall(r"^  (--\S+).*\n((?:      .*\n)+)", run("route", "--help")[1], re.M):
        default = re.search(r" \[([^\]]*)\]$", " ".join(text.split()))
        told[flag] = default[1] if default else None
    written = dict(re.findall(r"^\| `(--[\w-]+)` \| (?:`([^`]*)`|off|) \|", (ROOT / "docs/gateway.md").read_text()
                              .split("## Flags\n")[1], re.M))
    assert written == {flag: default or "" for flag, default in told.items()}


def test_flags_of_prefill_and_decode_workers_need_each_other():
    for words, wanted in ((("--prefill", "http://a:1"), "--pd-disaggregation"), (("--mini-lb",), "--pd-disaggregation"),
                          (("--pd-disaggregation", "--worker-urls", "http://a:1"), "--prefill"),
                          (("--pd-disaggregation", "--prefill", "9000"), "follows no URL"),
                          (("--pd-disaggregation", "--prefill", "--decode", "http://a:1"), "--prefill needs a value"),
                          (("--pd-disaggregation", "--prefill", "http://a:1", "--decode"), "--decode needs a value"),
                          (("--pd-disaggregation", "--prefill", "http://a:1", "70000"), "70000"),
                          (("--pd-disaggregation", "--decode", "a:1"), "need a scheme"),
                          (("--pd-disaggregation", "--prefill", "http://a:1", "--decode", "grpc://b:1"), "all of HTTP"),
                          (("--pd-disaggregation", "--dp-aware", "--decode", "grpc://a:1"), "--dp-aware is for"),
                          (("--pd-disaggregation", "--prefill-policy", "fastest"), "--prefill-policy"),
                          # It waited, and said that one of one worker was healthy.
                          (("--pd-disaggregation", "--prefill", "http://a:1", "8998"), "no decode worker is named: --decode URL"),
                          (("--pd-disaggregation", "--decode", "http://a:1"), "no prefill worker is named: --prefill URL"),
                          (("--selector", "a=b"), "--service-discovery"), (("--service-discovery",), "--selector"),
                          (("--service-discovery", "--selector", "a"), "KEY=VALUE"),
                          (("--prometheus-duration-buckets", "2", "1"), "--prometheus-duration-buckets")):
        status, said = run("route", *words)
        assert status == 2 and wanted in said, said


@pytest.mark.parametrize("named", [["--worker-u", "http://a:1"], ["--worker-urls=http://a:1"], ["--prefill", "http://a:1"],
                                   ["--decode", "http://a:1"], ["--discovery-file", "a.json"], ["--service-discovery"], []])
def test_the_workers_of_the_environment_are_for_a_start_that_names_none(monkeypatch, named):
    """They were added to prefill and decode workers and to those of a file, and where the flag was abbreviated."""
    monkeypatch.setenv("SGL_GRPC_ENDPOINT", "a:2")
    monkeypatch.setenv("SGL_POLICY_NAME", "of-the-environment")
    # --mini-lb requires a flag that is not there: nothing starts.
    status, said = run("route", "--mini-lb", *named)
    assert status == 2 and ("of-the-environment" in said) is (not named), said
