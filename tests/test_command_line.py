"""What the commands say to who types them: statuses, hints, help and warnings; and fields of other servers' APIs."""
import json
import subprocess

import pytest
import requests

from conftest import BINARY, ROOT, free_port

DEMO = ROOT / "models/demo"


def run(*words, **keywords):
    return subprocess.run([str(BINARY), *map(str, words)], capture_output=True, text=True, timeout=120, **keywords)


@pytest.mark.parametrize("words", [["serve", "--nonsense"], ["serve", "--port", "x"], ["tokenize"],
                                   ["tokenize", "--nonsense"], ["detokenize", "--tokenizer-path", DEMO, "x"],
                                   ["render"], ["render", "--nonsense"], ["parse"], ["parse", "--nonsense"], ["top"],
                                   ["route", "--nonsense"], ["nonsense"], [], ["serve", "--log-level", "loud"],
                                   ["serve", "--model-path", "/no/such/model", "--port", "0"], ["route", "--log-level", "loud"],
                                   ["launch", "--dp-size", "x"], ["launch", "--router-nonsense", "1"], ["check"],
                                   ["launch", "--engine", "sglang"], ["launch", "--engine", "vllm"],
                                   ["serve", "--port", "0", "--quantization", "awq"], ["serve", "--port", "0", "--dtype", "half"],
                                   ["serve", "--port", "0", "--ssl-certfile", "/no/such.pem", "--ssl-keyfile", "/no/such.pem"],
                                   ["serve", "--port", "0", "--engine", "mock", "--host", "no such host"],
                                   ["route", "--worker-urls", "http://127.0.0.1:1", "--port", "0", "--prometheus-port", "0",
                                    "--tls-cert-path", "/no/such.pem", "--tls-key-path", "/no/such.pem"],
                                   ["check", "--nonsense"], ["top", "ftp://127.0.0.1:1"],
                                   ["top", "https://127.0.0.1:1", "--ca-cert", "/no/such/file"], ["profile"],
                                   ["profile", "--nonsense"], ["profile", "ftp://127.0.0.1:1"],
                                   ["profile", "http://127.0.0.1:1", "http://127.0.0.1:2"],
                                   ["tokenize", "--tokenizer-path", "/no/such/model", "a"],
                                   ["detokenize", "--tokenizer-path", "/no/such/model", "1"],
                                   ["render", "--tokenizer-path", DEMO, "/no/such/conversation"],
                                   ["parse", "--jsonl", "--tool-call-parser", "nosuch"], ["omni"], ["omni", "frob"],
                                   ["omni", "serve", "--nonsense"], ["omni", "check", "--nonsense"],
                                   ["omni", "explain", "no.such.value"], ["omni", "stage"],
                                   ["omni", "stage", "--listen", "here"], ["omni", "stage", "--nonsense", "x"],
                                   ["omni-stage"]])
def test_a_wrong_command_line_is_said_by_name_with_status_2(words):
    """It was 1, 2, 104 or 109."""
    wrong = run(*words)
    assert wrong.returncode == 2, wrong.stderr
    assert wrong.stderr.startswith(("portico", "usage: portico")), wrong.stderr


@pytest.mark.parametrize("words, given", [
    (["check", "BROKEN"], ""), (["route", "--worker-urls", "http://127.0.0.1:1", "--host", "192.0.2.1"], ""),
    (["serve", "--engine", "mock", "--host", "192.0.2.1"], ""), (["top", "http://127.0.0.1:1", "--count", "1"], ""),
    (["profile", "http://127.0.0.1:1"], ""), (["profile", "EMPTY"], ""), (["tokenize", "--tokenizer-path", "BROKEN", "a"], ""),
    (["detokenize", "--tokenizer-path", DEMO], "x"), (["render", "--tokenizer-path", DEMO], "{"),
    (["omni", "check", "BROKEN"], ""),
    (["omni", "serve", "BROKEN", "--port", "0"], ""), (["omni", "stage", "BROKEN", "--listen", "127.0.0.1:0"], "")])
def test_what_fails_at_run_time_is_said_by_name_with_status_1(tmp_path, words, given):
    """A wrong URL of `profile` and a flag that `omni stage` has not were 1, too."""
    places = {"BROKEN": tmp_path / "broken.yaml", "EMPTY": tmp_path / "empty"}
    places["BROKEN"].write_text("nonsense: [")
    places["EMPTY"].mkdir()
    failed = run(*[places.get(word, word) for word in words], input=given)
    assert failed.returncode == 1, failed.stderr
    assert f"portico {words[0]}" in failed.stderr or "broken.yaml" in failed.stderr, failed.stderr


@pytest.mark.parametrize("command", ["serve", "route", "launch", "check", "top", "omni", "profile", "tokenize", "detokenize", "render", "parse"])
def test_helps_have_one_form(command):
    """Some began with the description or `Usage:`, and showed `INT:INT in [0 - 9]=0`."""
    text = run(command, "--help").stdout
    assert text.startswith(f"usage: portico {command} ") and "Usage:" not in text, text
    assert "INT:" not in text and "REQUIRED" not in text, text


def test_a_file_of_serve_is_checked_without_a_start(tmp_path):
    """Only the gateway's could be."""
    file = tmp_path / "serve.yaml"
    for text, status, told in (("model-path: /no/such\n", 2, "/no/such"), ("prot: 1\n", 2, f"{file}:1: unknown key `prot`"),
                               ("quantization: awq\n", 2, "--quantization: "), ("engine: mock\nport: 1\n", 0, "good; 1 model: `demo`\n"),
                               ("ssl-keyfile: /no/k\nssl-certfile: /no/c\n", 2, "/no/c")):
        file.write_text(text)
        done = run("serve", "--config", file, "--check")
        assert done.returncode == status and told in done.stdout + done.stderr, done
        assert text.startswith("engine") or done.stdout == "", done


def test_check_tells_of_a_file_without_workers_that_it_may_be_one_of_serve(tmp_path):
    """It was good, with no word of that."""
    file = tmp_path / "serve.yaml"
    file.write_text("model-path: /no/such\nport: 1\n")
    done = run("check", file)
    assert done.returncode == 0 and f"portico serve --config {file} --check\n" in done.stdout, done


def test_check_names_the_line_of_lists(tmp_path):
    """Neither file nor line were named."""
    file = tmp_path / "fleet.yaml"
    for text, told in (("policy: cost\nworker-urls:\n  - http://a:1\n  - http://b c:1\n", ":4: worker-urls: "), ("\nworker-urls: 'http://b c:1'\n", ":2: worker-urls: "),
                       ("aliases: [nothing]\n", ":1: aliases: "), ("prometheus-duration-buckets: [1, x]\n", ":1: prometheus-duration-buckets: `x`"),
                       ("tls-cert-path: a\n", ":1: --tls-cert-path and --tls-key-path need each other"),
                       ("workers: [http://a:1, http://a:1]\n", ": worker http://a:1 is named twice")):
        file.write_text(text)
        done = run("check", file)
        assert done.returncode == 1 and done.stderr.startswith(f"{file}{told}"), done


def test_help_lists_the_exit_statuses():
    assert "Exit status: 0 done; 1 failed at run time; 2 wrong command line; 130 " in run("--help").stdout


@pytest.mark.parametrize("command", ["serve", "route", "launch", "top", "omni", "profile", "check", "tokenize",
                                     "detokenize", "render", "parse"])
def test_help_of_a_command_is_its_help(command):
    helped = run("help", command)
    assert helped.returncode == 0 and helped.stdout == run(command, "--help").stdout


def test_help_of_a_command_that_is_not_there_says_so():
    """It showed the list of commands, with status 0."""
    for words in (["help", "frobnicate"], ["frobnicate"]):
        wrong = run(*words)
        assert wrong.returncode == 2 and "`frobnicate`" in wrong.stderr and wrong.stdout == "", words


@pytest.mark.parametrize("verb", ["check", "resolve", "explain", "stage"])
def test_help_of_a_verb_of_omni_is_that_of_the_command(verb):
    """`explain --help` looked for a value of that name, and others failed with status 2."""
    helped = run("omni", verb, "--help")
    assert helped.returncode == 0 and helped.stdout == run("omni", "--help").stdout


@pytest.mark.parametrize("words, why", [(["frob"], "no verb `frob`"), (["check", "--frob"], "unknown flag --frob"), (["explain"], "the path of a value")])
def test_a_wrong_command_line_of_omni_says_why(words, why):
    """The usage was all."""
    wrong = run("omni", *words)
    assert wrong.returncode == 2 and why in wrong.stderr.splitlines()[0] and "usage: portico omni" in wrong.stderr


@pytest.mark.parametrize("flag, hint", [("-m", "--model-path"), ("-c", "--context-length"),
                                        ("--max-model-len", "--context-length"), ("--tp", "follow a final --"),
                                        ("-ngl", "CPU"), ("--modelpath", "--model-path"), ("--jinja", "always"),
                                        ("--alias", "--served-model-name"), ("--hf-repo", "--model-path"),
                                        ("--gpu-memory-utilization", "--max-total-tokens"), ("--temp", "requests")])
def test_flags_of_other_servers_get_a_hint(flag, hint):
    wrong = run("serve", flag, "1")
    assert wrong.returncode == 2 and hint in wrong.stderr, wrong.stderr


def test_the_help_names_the_environment():
    text = run("serve", "--help").stdout
    assert "PORTICO_API_KEY" in text and "PORTICO_CACHE_DIR" in text


def test_unknown_ids_are_named_and_left_out():
    done = run("detokenize", "--tokenizer-path", DEMO, 902, 776, 99999)
    assert done.returncode == 0 and done.stdout == "Hello there\n"
    assert "99999" in done.stderr


def test_what_is_not_an_id_on_standard_input_is_an_error():
    """The ids before it were printed as if they were all, with status 0."""
    done = run("detokenize", "--tokenizer-path", DEMO, input="902 x 776\n")
    assert done.returncode == 1 and done.stdout == "" and "standard input" in done.stderr


def test_a_server_that_cannot_be_reached_is_named():
    """`portico profile` told of a worker, and of none in particular."""
    url = f"http://127.0.0.1:{free_port()}"
    for words in (["top", url, "--count", 1], ["profile", url]):
        done = run(*words)
        assert done.returncode == 1 and done.stderr == f"portico {words[0]}: {url}: it cannot be reached (Connection refused)\n", done.stderr


def test_a_template_that_is_not_there_is_said_before_the_model_is_read():
    done = run("serve", "--chat-template", "/nope", "--port", 0, "--model-path", "/also/nope")
    assert done.returncode == 2 and "--chat-template" in done.stderr and "also" not in done.stderr


@pytest.mark.parametrize("words, told", [([], "--worker-urls"), (["--worker-urls", " , "], "--worker-urls"),
                                         (["--worker-urls", "http://a:1"], "--worker-urls: `http://a:1`"),
                                         (["--worker-urls", "grpc://a:none"], "--worker-urls: ")])
def test_an_engine_of_token_workers_without_any_is_a_wrong_command_line(words, told):
    """The status was 1, after the port had been opened."""
    done = run("serve", "--engine", "grpc", "--port", 0, *words)
    assert done.returncode == 2 and told in done.stderr, done.stderr


@pytest.mark.parametrize("flag, meant", [("--tool-call-parser", "hermes"), ("--reasoning-parser", "deepseek-r1")])
def test_parse_says_at_its_start_that_there_is_no_such_parser(flag, meant):
    """Each line was answered with that error, and the status was 0."""
    done = run("parse", flag, "nosuch", "--jsonl", input='{"id":1,"text":"a"}\n{"id":2,"text":"b"}\n')
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert f"portico parse: {flag}: there is no parser `nosuch`; there are none, " in done.stderr and f" {meant}" in done.stderr
    for known in ("none", meant, "response_template"):
        assert run("parse", flag, known, "--jsonl", input="").returncode == 0, known


def test_parse_writes_one_line_for_each_request():
    """An empty line stood behind each answer."""
    done = run("parse", "--jsonl", input='{"id":1,"text":"a"}\n{"id":2}\n')
    assert done.stdout.count("\n") == 2 and [json.loads(line)["id"] for line in done.stdout.split("\n")[:2]] == [1, 2], done.stdout


@pytest.mark.parametrize("words", [["parse"], ["tokenize", "--tokenizer-path", DEMO], ["detokenize", "--tokenizer-path", DEMO],
                                   ["tokenize", "--component"]])
def test_lines_that_are_no_requests_are_named_by_their_number(words):
    """The error was only the JSON library's, and the status 0."""
    good = '{"id":7,"text":"a","ids":[902],"normalizer":{"type":"Lowercase"}}\n'
    done = run(*words, "--jsonl", input=good + '\nnot json\n[1]\n' + good)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [7, None, None, 7] and "error" not in answers[0], done.stdout
    assert answers[1]["error"].startswith("line 3 is not JSON: ") and answers[2]["error"] == "line 4 is not a JSON object", done.stdout
    assert done.returncode == 1 and done.stderr == f"portico {words[0]}: 2 lines are not JSON objects; the first is line 3\n", done.stderr
    done = run(*words, "--jsonl", input=good + "[")
    assert done.returncode == 1 and done.stderr == f"portico {words[0]}: line 2 is not a JSON object\n", done.stderr
    assert run(*words, "--jsonl", input=good).returncode == 0


def test_what_is_no_token_id_is_named():
    """It was: Could not convert: ids = abc."""
    for word in ("abc", "1.5", "99999999999"):
        wrong = run("detokenize", "--tokenizer-path", DEMO, "902", word)
        assert wrong.returncode == 2 and wrong.stderr == f"portico detokenize: `{word}` is not a token id\n", wrong.stderr


def test_a_text_without_quotes_is_told_that_it_needs_them():
    wrong = run("tokenize", "--tokenizer-path", DEMO, "Hello", "there")
    assert wrong.returncode == 2 and wrong.stderr == "portico tokenize: unexpected argument `there`; a text of several words must be in quotes\n"
    assert run("tokenize", "--tokenizer-path", DEMO, "--ids", "[Hello there]").stdout.count(" ") >= 2


@pytest.mark.parametrize("words, told", [
    (["profile", "x", "--secs", "5"], "portico profile: unknown flag --secs; did you mean --seconds?"),
    (["profile", "x", "--secnods=5"], "portico profile: unknown flag --secnods; did you mean --seconds?"),
    (["profile", "x", "--reqests", "5"], "portico profile: unknown flag --reqests; did you mean --requests?"),
    (["profile", "x", "--qqqqqq"], "portico profile: unknown flag --qqqqqq; --help lists all"),
    (["profile", "x", "-"], "portico profile: "), (["profile", "x", "-s"], "portico profile: unknown flag -s"),
    (["tokenize", "--tokeniser-path", "x"], "portico tokenize: unknown flag --tokeniser-path; did you mean --tokenizer-path?"),
    (["top", "http://127.0.0.1:1", "--cont", "1"], "portico top: unknown flag --cont; did you mean --count?")])
def test_the_flag_that_may_have_been_meant_is_named(words, told):
    """It was so of `serve` only."""
    wrong = run(*words)
    assert wrong.returncode in (1, 2) and wrong.stderr.startswith(told), wrong.stderr


def test_only_errors_are_shown_where_nothing_else_is_wanted(start):
    """The progress of loading was shown whatever the level."""
    assert start("--log-level", "error").output() == ""


@pytest.mark.parametrize("field, value", [("grammar", "root ::= \"a\""), ("mirostat", 2), ("typical_p", 0.5),
                                          ("xtc_probability", 0.1), ("dry_multiplier", 0.8), ("n_predict", 5),
                                          ("n_probs", 3), ("top_a", 0.2), ("tfs_z", 0.9), ("t_max_predict_ms", 50),
                                          ("logits_processors", ["my.Processor"])])
def test_fields_of_llama_server_that_change_the_answer_are_refused(mock, field, value):
    answer = mock.chat("hello", max_tokens=2, **{field: value})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field


def test_a_field_of_another_api_gets_a_hint(mock):
    answer = requests.post(mock.url + "/generate", timeout=60, json={"text": "a", "sampling_params": {"max_tokens": 3}})
    assert answer.status_code == 400 and "max_new_tokens" in answer.json()["error"]["message"]


def test_a_flag_that_sets_a_wrong_value_of_a_pipeline_is_named(tmp_path):
    """The file was, at a line that says something else, and the command `portico serve`."""
    file = tmp_path / "pipeline.yaml"
    file.write_text("stages:\n  - {name: a, factory_path: portico.pass, terminal: true}\n")
    for words, told in [(["check", file, "--a.voice", "x"], "portico omni check: --a.voice: unknown key `voice`; there are name, "),
                        (["serve", file, "--port", "0", "--a.factory.voice", "x"],
                         f"portico omni serve: {file}:2: stage `a`: factory has no `voice`; it takes nothing (with --a.factory.voice)")]:
        wrong = run("omni", *words)
        assert wrong.returncode == 1 and told in wrong.stderr, wrong.stderr
