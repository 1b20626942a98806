"""`sglang serve --model-type portico`: which words are Portico's and which SGLang's."""
import importlib.util
import os
import subprocess
import sys
import types

import pytest
import requests
from conftest import BINARY, ROOT, free_port, wait_until

from test_sglang import DEMO, STAND_IN


@pytest.fixture(scope="module")
def plugin():
    spec = importlib.util.spec_from_file_location("sglang_backend", ROOT / "python/portico/sglang_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def own(plugin):
    text = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    return plugin.flags_of(text)


def request(*argv, model_path=None, positional=False):
    return types.SimpleNamespace(argv=argv, model_path=model_path, model_path_is_positional=positional)


def test_the_help_says_which_flags_take_a_value(own):
    assert own["--port"] and own["--model-path"] and own["--api-key"]
    assert not own["--restart-engine"] and not own["--is-embedding"]
    assert "--tp" not in own


def test_flags_that_portico_lacks_go_to_sglang_in_their_order(plugin, own):
    mine, theirs = plugin.split(["--port", "1", "--tp", "2", "--is-embedding", "--enable-lora", "--lora-paths", "a=b", "c=d",
                                 "--host=::", "--", "--dtype", "half"], own)
    assert mine == ["--port", "1", "--is-embedding", "--host=::"]
    assert theirs == ["--tp", "2", "--enable-lora", "--lora-paths", "a=b", "c=d", "--dtype", "half"]


def test_a_file_of_options_is_sglangs(plugin, own):
    # It went to Portico, which knows none of SGLang's own options.
    line = plugin.command_line(request("--config", "s.yaml", "--port", "1", model_path="m"), own, "portico")
    assert line[line.index("--"):] == ["--", "--config", "s.yaml"] and line[-6:-3] == ["m", "--port", "1"]


def test_a_model_that_is_named_without_a_flag_is_portico_s(plugin, own):
    line = plugin.command_line(request("some/model", "--tp", "2", model_path="some/model", positional=True), own, "portico")
    assert line[line.index("--model-path") + 1] == "some/model"
    assert line[line.index("--"):] == ["--", "--tp", "2"]
    line = plugin.command_line(request("--model-path", "x", model_path="x"), own, "portico")
    assert line.count("--model-path") == 1


def test_the_backend_serves_and_ends_with_its_signal():
    port = free_port()
    # The stand-in plays SGLang; --sglang-launcher comes later and wins.
    script = (f"import importlib.util, types; spec = importlib.util.spec_from_file_location('b', "
              f"{str(ROOT / 'python/portico/sglang_backend.py')!r}); b = importlib.util.module_from_spec(spec); "
              f"spec.loader.exec_module(b); b.run(types.SimpleNamespace(argv=('--model-path', {str(DEMO)!r}, '--port', "
              f"'{port}', '--sglang-launcher', {str(STAND_IN)!r}, '--stand-in-itl-ms', '2'), model_path={str(DEMO)!r}, "
              f"model_path_is_positional=False))")
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PORTICO_BINARY": str(BINARY)})

    def serves():
        try:
            return requests.get(f"http://127.0.0.1:{port}/health", timeout=60).status_code == 200
        except requests.ConnectionError:
            return False

    try:
        wait_until(serves, "it does not serve")
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
