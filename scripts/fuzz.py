#!/usr/bin/env python3
"""Runs every fuzzer of build/fuzz for a few seconds and prints the total: `N passed, M failed, K skipped`.

Each starts from the string literals of its room's tests and from what build/fuzz-corpus has kept of earlier runs, with
a seed of its own that is printed (--seed repeats a run's choices). What crashes a fuzzer stays in build/fuzz-crashes.
    ./dev build fuzz fuzzers && scripts/fuzz.py [--seconds 6 | --runs N] [--seed N] [--build build/fuzz] [NAME...]
PORTICO_FUZZ_RUNS=10000000 in the environment is --runs: so many inputs to each, however long that takes. PORTICO_SEED is --seed.
"""
import argparse
import concurrent.futures
import gzip
import hashlib
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "build/fuzz-corpus"
CRASHES = ROOT / "build/fuzz-crashes"

# Fuzzer: the sources whose string literals are its seeds, and a prefix for those inputs that begin with choices.
SEEDS = {
    "json_fuzz": (["src/text/*_test.cc", "src/api/**/*_test.cc"], b""),
    "parser_output_fuzz": (["src/parser/**/*_test.cc"], b"\x00\x01\x00\x03"),
    "http_parser_fuzz": (["src/net/**/*_test.cc"], b"\x05"),
    "grpc_wire_fuzz": (["src/net/grpc/grpc_wire_test.cc", "src/net/grpc/grpc_message_test.cc"], b"\x05\x07"),
    "http2_session_fuzz": (["src/net/**/*_test.cc"], b"\xff"),
    "decode_chat_fuzz": (["src/api/**/*_test.cc"], b""),
    "grammar_rewrite_fuzz": (["src/grammar/**/*_test.cc", "tests/test_json_schema.py"], b"\x00"),
    "template_render_fuzz": (["src/template/**/*_test.cc", "models/demo/chat_template.jinja"], b""),
    "template_source_fuzz": (["src/template/**/*_test.cc", "models/demo/chat_template.jinja"], b""),
    "media_url_fuzz": (["src/service/upstream/media_rules_test.cc"], b""),
    "tokenizer_load_fuzz": (["src/tokenizer/**/*_test.cc"], b"\x00"),
    "tokenizer_encode_fuzz": (["src/tokenizer/**/*_test.cc"], b""),
    "tokenizer_regex_fuzz": (["src/tokenizer/split/scanners*.cc", "src/tokenizer/**/*_test.cc"], b"\x40\x01"),
}


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def grpc_message(text, packed=False):
    text = gzip.compress(text, mtime=0) if packed else text
    return bytes([packed]) + len(text).to_bytes(4, "big") + text


def grpc_call(stream, path, more=b"", body=grpc_message(b"some")):
    """A call of one of the methods that http2_session_fuzz has."""
    head = (b"\x83\x86\x44\x02/%c\x41\x01x\x5f\x10application/grpc\x40\x02te\x08trailers"
            b"\x40\x14grpc-accept-encoding\x04gzip" % path)
    return frame(1, 4, stream, head + more) + frame(0, 0, stream, body) + frame(0, 1, stream, b"")


def http2_seeds():
    """Frames of RFC 9113, made as a client makes them; HPACK blocks from the static table and literals."""
    settings = frame(4, 0, 0, b"") + frame(4, 1, 0, b"")
    get = b"\x82\x86\x44\x02/%c\x41\x01x"
    post = b"\x83\x86\x44\x02/%c\x41\x01x"
    yield settings + b"".join(frame(1, 5, 2 * i + 1, get % (97 + i)) for i in range(8))
    yield settings + frame(1, 4, 1, post % 97) + frame(0, 0, 1, b"a body") + frame(0, 9, 1, b"\x02end\0\0")
    yield settings + frame(1, 1, 1, (get % 98)[:5]) + frame(9, 0, 1, b"") + frame(9, 4, 1, (get % 98)[5:])
    yield settings + frame(1, 4, 1, post % 99 + b"\x0f\x0d\x016\x40\x01k\x01v") + frame(3, 0, 1, bytes(3) + b"\x08")
    yield frame(4, 0, 0, b"\0\x04\0\0\0\x01\0\x01\0\0\0\0") + frame(1, 0x25, 1, bytes(4) + b"\x10" + get % 99)
    yield settings + frame(6, 0, 0, bytes(8)) + frame(2, 0, 3, bytes(5)) + frame(8, 0, 0, b"\0\0\xff\0")
    yield settings + frame(1, 5, 1, get % 101) + frame(8, 0, 1, b"\x7f\xff\xff\xff") * 2 + frame(7, 0, 0, bytes(8))
    yield settings + frame(1, 4, 1, post % 100) + frame(1, 5, 1, b"\x40\x01t\x01v") + frame(1, 5, 1, get % 97)
    for path in b"abcde":
        yield settings + b"".join(grpc_call(number, path) for number in (1, 3))
    one, packed = grpc_message(b"one"), grpc_message(b"packed" * 9, True)
    yield settings + grpc_call(1, 97, b"\x40\x0dgrpc-encoding\x04gzip", packed) + grpc_call(3, 97, b"", b"\2" + packed)
    yield settings + grpc_call(1, 100, b"\x40\x0cgrpc-timeout\x021n\x40\x05k-bin\x04AAEC", one + packed)
    yield settings + grpc_call(1, 101, b"", one * 3)[:-9] + frame(3, 0, 1, bytes(3) + b"\x08")


def grpc_client_seeds():
    """What servers say to gRPC clients: heads, messages, trailers, resets, GOAWAY."""
    def field(name, value):
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

    head = b"\x88" + field(b"content-type", b"application/grpc")
    good, bad = field(b"grpc-status", b"0"), field(b"grpc-status", b"5") + field(b"grpc-message", b"no%20such")
    message = b"\0\0\0\0\4some"
    ids = range(1, 13, 2)
    yield b"".join(frame(1, 4, i, head) + frame(0, 0, i, message) + frame(1, 5, i, good) for i in ids)
    yield b"".join(frame(1, 5, i, head + bad) for i in ids)
    yield b"".join(frame(1, 4, i, head) for i in ids) + frame(0, 0, 1, message[:3]) + frame(0, 0, 1, message[3:] * 3)
    yield frame(1, 4, 1, head) + frame(0, 0, 1, b"\1\0\0\0\x0a\x1f\x8b\x08\0\0\0\0\0\0\x03") + frame(3, 0, 1, bytes(3) + b"\x08")
    yield frame(3, 0, 3, bytes(3) + b"\7") + frame(7, 0, 0, bytes(3) + b"\1" + bytes(4)) + frame(1, 5, 1, head + good)
    yield frame(1, 4, 1, b"\x48\x03103") + frame(1, 4, 1, head) + frame(8, 0, 5, b"\0\1\0\0") + frame(8, 0, 0, b"\0\1\0\0")
    yield frame(4, 0, 0, b"\0\3\0\0\0\1\0\4\0\0\0\0") + frame(6, 0, 0, bytes(8)) + frame(4, 1, 0, b"")
    yield frame(7, 0, 0, bytes(7) + b"\x0b" + b"too_many_pings") + frame(1, 4, 9, head) + frame(0, 1, 9, message)


# Inputs that are longer than 4096 bytes, or than this, show nothing new and take their time.
MAX_LEN = {"grpc_wire_fuzz": 1024, "grpc_decode_fuzz": 2048, "grpc_client_fuzz": 2048, "http2_client_fuzz": 2048,
           "http2_session_fuzz": 2048}
# A quarantine that fits into the processor's caches saves a tenth of the time, or more.
SANITIZER = "allocator_may_return_null=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=64"

LITERAL = re.compile(r'R"\((.*?)\)"|"((?:[^"\\\n]|\\.)*)"', re.S)
FRAMES = {"http2_session_fuzz": http2_seeds, "grpc_client_fuzz": grpc_client_seeds,
          "http2_client_fuzz": grpc_client_seeds}
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def literals(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".cc":
        return [text.encode()]
    found = []
    for raw, plain in LITERAL.findall(text):
        plain = re.sub(r"\\(x[0-9a-fA-F]{2}|.)",
                       lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" and len(m[1]) == 3
                       else ESCAPES.get(m[1], m[1]), plain)
        found.append((raw or plain).encode("utf-8", "surrogateescape"))
    return found


def write_seeds(name):
    folder = CORPUS / f"{name}-seeds"
    folder.mkdir(parents=True, exist_ok=True)
    patterns, prefix = SEEDS.get(name, ([], b""))
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            for seed in literals(path):
                (folder / hashlib.sha1(seed).hexdigest()).write_bytes(prefix + seed)
    if name in FRAMES:
        for number, seed in enumerate(FRAMES[name]()):
            (folder / f"frames{number}").write_bytes(b"\xff" + seed)
    return folder


def run(program, options):
    """True where nothing was found."""
    name = program.name
    kept = CORPUS / name
    kept.mkdir(parents=True, exist_ok=True)
    crashes = CRASHES / name
    crashes.mkdir(parents=True, exist_ok=True)
    limit = f"-runs={options.runs}" if options.runs else f"-max_total_time={options.seconds}"
    command = [program, limit, f"-seed={options.seed}", "-timeout=60", "-rss_limit_mb=2048",
               f"-max_len={MAX_LEN.get(name, 4096)}", "-print_final_stats=1", f"-artifact_prefix={crashes}/", kept, write_seeds(name)]
    environment = {**os.environ, "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:{SANITIZER}"}
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace", env=environment)
    runs = re.search(r"number_of_executed_units: (\d+)", result.stdout)
    print(f"  {name:24} seed {options.seed:10}  {runs[1] if runs else '?':>9} runs  "
          f"{'ok' if result.returncode == 0 else 'FAILED'}", flush=True)
    if result.returncode != 0:
        print(result.stdout[-8000:])
        found = re.search(r"SUMMARY: .*|ERROR: .*", result.stdout)
        print(f"failed: {name}: seed {options.seed}\n    {found[0] if found else f'ended with status {result.returncode}'}")
        print(f"  again: {program} {crashes}/FILE", flush=True)
    return result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these fuzzers")
    parser.add_argument("--seconds", type=int, default=6, help="for each")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("PORTICO_FUZZ_RUNS", 0)), help="of each, instead")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PORTICO_SEED") or random.randrange(1, 1 << 31)))
    parser.add_argument("--build", default="build/fuzz", type=pathlib.Path)
    options = parser.parse_args()
    programs = [p for p in sorted((ROOT / options.build).glob("*_fuzz"))
                if not options.names or p.name in options.names]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(lambda program: run(program, options), programs))
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed, 0 skipped")
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
