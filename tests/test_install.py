"""`./dev install`: a folder that holds all the program needs, wherever it is moved to (docs/deploy.md)."""
import re
import shutil
import subprocess

import pytest
import requests

from conftest import BINARY, ROOT, free_port, wait_until


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install")
    done = subprocess.run(["cmake", "--install", str(BINARY.parent), "--prefix", str(folder / "before")], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "before").rename(folder / "portico")
    return folder / "portico"


def test_an_installed_program_finds_its_files(installed, tmp_path):
    """It looked for share/portico, and nothing put its files there."""
    port = free_port()
    server = subprocess.Popen([str(installed / "bin/portico"), "serve", "--port", str(port)], cwd="/", stderr=subprocess.PIPE, text=True,
                              env={"PATH": "/usr/bin:/bin", "PORTICO_CACHE_DIR": str(tmp_path)})
    try:
        def ready():
            assert server.poll() is None, server.stderr.read()
            try:
                return requests.get(f"http://127.0.0.1:{port}/health", timeout=60).status_code == 200
            except requests.ConnectionError:
                return False

        wait_until(ready, "it is not ready")
        body = {"messages": [{"role": "user", "content": "What is 7 plus 5?"}]}
        answer = requests.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, timeout=60).json()
        assert answer["choices"][0]["message"]["content"] == "7 plus 5 is 12."
        server.terminate()
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()
    resolved = subprocess.run([str(installed / "bin/portico"), "omni", "explain", "say.factory.voice"], capture_output=True, text=True,
                              cwd="/", timeout=60, check=False)
    assert f"{installed}/share/portico/pipelines/demo.yaml" in resolved.stdout, resolved


def test_what_is_installed_of_python_is_whole(installed):
    """A module that a launcher or a stage imports and that is not there ends a server when it is used."""
    def modules(folder):
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.py"))

    assert modules(installed / "share/portico/python/portico") == modules(ROOT / "python/portico")
    assert not list(installed.rglob("__pycache__"))
    helper = BINARY.parent / "portico-media"
    assert helper.exists() == (installed / "libexec/portico/portico-media").exists()


@pytest.mark.skipif(not shutil.which("dpkg-query") or 'VERSION_ID="12"' not in open("/etc/os-release").read(), reason="the page names Debian 12's packages")
def test_the_page_names_the_packages_that_it_needs(installed):
    page = (ROOT / "docs/deploy.md").read_text()
    named = set(re.search(r"apt-get install --no-install-recommends ([^`]*?)\n```", page)[1].replace("\\\n", " ").split())
    linked = subprocess.run(["ldd", str(installed / "bin/portico")], capture_output=True, text=True, timeout=60, check=True).stdout
    # The package may know the file by its place before /lib became a link.
    names = [root + path.removeprefix("/usr") for path in re.findall(r"=> (/\S+)", linked) for root in ("", "/usr")]
    found = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, timeout=60, check=False).stdout
    needed = {line.split(":")[0] for line in found.splitlines()}
    # Those below others, or of every Debian.
    assert needed - named <= {"libc6", "libgcc-s1"}, needed - named
    assert named - needed <= {"ca-certificates"}, named - needed
