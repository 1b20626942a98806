"""JSON-Schema-Test-Suite, draft 2020-12, from the source package of PyPI's `jsonschema`, and the probe that holds schemas
against texts."""
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBE = pathlib.Path(os.environ.get("PORTICO_BINARY", ROOT / "build/release/portico")).parent / "grammar_probe"
VERSION = "4.25.1"
SHA256 = "e4a9655ce0da0c0b67a085847e00a3a51449e1157f4f75e9fb5aa545e122eb85"


def package():
    """The source package, fetched once."""
    folder = ROOT / "build/downloads"
    path = folder / f"jsonschema-{VERSION}.tar.gz"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema",
                        "-d", folder, f"jsonschema=={VERSION}"], check=True)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256, f"{path} is not the pinned package"
    return path


def groups():
    """(file, group) of every group that is not optional."""
    found = []
    with tarfile.open(package()) as archive:
        for member in sorted(archive.getnames()):
            parts = pathlib.PurePath(member).parts
            if parts[-3:-1] == ("tests", "draft2020-12") and member.endswith(".json"):
                found += [(parts[-1], group) for group in json.load(archive.extractfile(member))]
    return found


def spellings(value, most=120):
    """JSON texts of a value, with its members in every order (as many as `most`)."""
    if isinstance(value, dict):
        for order in itertools.permutations(value.items()):
            lists = [list(spellings(member, 6)) for _, member in order]
            for members in itertools.product(*lists):
                yield "{" + ",".join(json.dumps(key, ensure_ascii=False) + ":" + text
                                     for (key, _), text in zip(order, members)) + "}"
                most -= 1
                if most == 0:
                    return
    elif isinstance(value, list):
        for items in itertools.islice(itertools.product(*[list(spellings(item, 6)) for item in value]), most):
            yield "[" + ", ".join(items) + "]"
    else:
        yield json.dumps(value, ensure_ascii=False)


class Probe:
    """A running grammar_probe."""

    def __init__(self):
        self.process = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, schema, texts=(), made=0, seed=0):
        question = {"schema": schema, "texts": list(texts), "made": made, "seed": seed}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
