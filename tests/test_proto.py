"""The protos under proto/: buf's lint, and names and numbers as in the committed image."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def buf(*arguments):
    program = pathlib.Path(sys.prefix) / "bin/buf"
    if not program.exists():
        pytest.skip("buf is not in the test environment")
    return subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_lint_finds_nothing():
    result = buf("lint", "proto")
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_name_or_number_has_changed():
    result = buf("breaking", "proto", "--against", "proto/image.binpb")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_image_is_up_to_date(tmp_path):
    """An addition that is not in the image could be changed again without anybody noticing."""
    fresh = tmp_path / "image.binpb"
    assert buf("build", "proto", "-o", str(fresh)).returncode == 0
    image = str(ROOT / "proto/image.binpb")
    result = buf("breaking", image, "--against", str(fresh), "--config", "proto/buf.yaml")
    assert result.returncode == 0, "buf build proto -o proto/image.binpb: " + result.stdout + result.stderr


def test_the_checker_notices_another_number(tmp_path):
    copy = tmp_path / "proto"
    for path in (ROOT / "proto").rglob("*.*"):
        target = copy / path.relative_to(ROOT / "proto")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    proto = copy / "sglang/runtime/v1/sglang.proto"
    proto.write_text(proto.read_text().replace("optional int64 seed = 16;", "optional int64 seed = 18;"))
    result = buf("breaking", str(copy), "--against", "proto/image.binpb")
    assert result.returncode != 0 and "seed" in result.stdout
