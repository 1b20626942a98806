"""The official openai package for JavaScript, under Node."""
import json
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["mock", "demo"])
def test_it_completes_streams_and_reads_errors(kind, node, request):
    server = request.getfixturevalue(kind)
    script = pathlib.Path(__file__).parent / "js/client.mjs"
    result = subprocess.run([node, str(script), str(pathlib.Path(sys.prefix) / "js"), server.url],
                            capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    got = json.loads(result.stdout)
    assert got["whole"] and got["streamed"] == got["whole"]
    assert got["finish"] in ("stop", "length")
    assert got["usage"]["completion_tokens"] > 0
    assert got["completion"]
    assert got["refused"] == {"status": 400, "param": "top_p"}
