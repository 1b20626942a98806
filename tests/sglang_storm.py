"""Random requests with random disconnects against a running server, and whether it has survived them.

    python3 tests/sglang_storm.py --url http://127.0.0.1:30000 --count 100000 [--concurrency 32] [--seed 1] [--pid PID]

Requests of every kind that the SGLang engine takes, some of them wrong, most of them short; a share of the clients leave:
before the answer, within it, or right after an abort call. At the end nothing may run or wait, the cache must be free to
be flushed, and one more request is answered as one before the storm. With --pid the resident memory of that process is
compared with what it was after the first tenth. Exits with 1 and says what is wrong.
"""
import argparse
import asyncio
import collections
import json
import pathlib
import random
import sys
import time
import urllib.parse

from sglang_requests import chat, completion, generate

WRONG = [
    {"input_ids": []}, {"input_ids": [99999999]}, {"input_ids": [-1]}, {"text": "x", "sampling_params": {"temperature": -1}},
    {"text": "x", "sampling_params": {"top_p": 2}}, {"text": "x", "sampling_params": {"stop_regex": "("}},
    {"text": "x", "sampling_params": {"regex": "BROKEN("}}, {"text": "x", "lora_path": "nowhere"},
    {"text": "x", "session_params": {"id": "nowhere"}}, {"text": "x", "sampling_params": {"max_new_tokens": 10**9}},
    {"text": "word " * 5000}, {"text": "x", "return_logprob": True, "logprob_start_len": 10**6},
]
PROBE = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 8, "temperature": 0}}


def pick(rng):
    kind = rng.random()
    if kind < 0.1:
        return "/generate", dict(rng.choice(WRONG))
    path, body = rng.choices([generate, completion, chat], [4, 1, 1])[0](rng)
    if kind < 0.4:
        body["stream"] = True
        for name in ("logprobs", "top_logprobs"):
            body.pop(name, None)
    if path == "/generate" and rng.random() < 0.2:
        body["sampling_params"].update(max_new_tokens=400, ignore_eos=True)
    if path == "/generate" and rng.random() < 0.1:
        texts = [body.pop("text", "One fox"), "Two owls"]
        body.pop("input_ids", None)
        body["text"] = texts
    return path, body


class Storm:
    def __init__(self, args):
        self.args = args
        self.rng = random.Random(args.seed)
        where = urllib.parse.urlsplit(args.url)
        self.host, self.port = where.hostname, where.port
        self.seen = collections.Counter()

    async def connect(self, path, body, method="POST"):
        reader, writer = await asyncio.open_connection(self.host, self.port)
        data = json.dumps(body).encode()
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
                     f"content-length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        return reader, writer

    async def call(self, path, body, method="POST"):
        """The status and the whole answer."""
        reader, writer = await self.connect(path, body, method)
        answer = await asyncio.wait_for(reader.read(), self.args.patience)
        writer.close()
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, rest

    async def one(self, number):
        path, body = pick(self.rng)
        leaves = self.rng.random()
        if leaves > 0.35:
            status, _ = await self.call(path, body)
            self.seen[status] += 1
            return
        self.seen["left"] += 1
        rid = f"storm-{number}"
        if path == "/generate" and not isinstance(body.get("text"), list) and leaves < 0.05:
            body["rid"] = rid
        reader, writer = await self.connect(path, body)
        if leaves < 0.05:
            await self.call("/abort_request", {"rid": rid})
            await asyncio.wait_for(reader.read(), self.args.patience)
        elif leaves < 0.2:
            await asyncio.sleep(self.rng.random() * 0.05)
        else:
            await asyncio.wait_for(reader.read(self.rng.randint(1, 3000)), self.args.patience)
        writer.transport.abort() if leaves < 0.12 else writer.close()

    async def run(self):
        before = await self.call("/generate", PROBE)
        if before[0] != 200:
            return [f"the server does not answer before the storm: {before}"]
        numbers = iter(range(self.args.count))
        wrong = []
        memory = []
        began = last = time.monotonic()

        async def client():
            nonlocal last
            for number in numbers:
                try:
                    await self.one(number)
                except Exception as error:  # a client's view: what it is stands in the report
                    wrong.append(f"request {number}: {error!r}")
                    if len(wrong) > 20:
                        return
                if number == self.args.count // 10:
                    memory.append(self.resident())
                if time.monotonic() - last > 30:
                    last = time.monotonic()
                    print(f"{number} requests, {number / (last - began):.0f} a second, {dict(self.seen)}", flush=True)

        await asyncio.gather(*(client() for _ in range(self.args.concurrency)))
        took = time.monotonic() - began
        print(f"{self.args.count} requests in {took:.0f} s: {dict(self.seen)}", flush=True)
        wrong += [f"{count} answers with status {status}" for status, count in self.seen.items()
                  if isinstance(status, int) and (status >= 500 or status == 0)]
        return wrong + await self.settle(before, memory)

    async def settle(self, before, memory):
        wrong = []
        deadline = time.monotonic() + self.args.patience
        while (await self.call("/flush_cache", {}))[0] != 200:
            if time.monotonic() > deadline:
                wrong.append("the cache stays in use")
                break
            await asyncio.sleep(0.2)
        text = (await self.call("/metrics", {}, "GET"))[1].decode(errors="replace")
        for name in ("portico_requests_running", "portico_requests_waiting"):
            values = [float(line.split()[-1]) for line in text.splitlines() if line.startswith(name)]
            if sum(values) != 0:
                wrong.append(f"{name} is {sum(values)}")
        after = await self.call("/generate", PROBE)
        texts = [json.loads(a[1])["output_ids"] if a[0] == 200 else a for a in (before, after)]
        if texts[0] != texts[1]:
            wrong.append(f"the probe is answered differently: {texts}")
        memory.append(self.resident())
        if all(memory):
            print(f"resident memory: {memory[0] >> 20} MB after a tenth, {memory[-1] >> 20} MB at the end")
            if memory[-1] > memory[0] * 1.5 + (64 << 20):
                wrong.append("memory has grown")
        return wrong

    def resident(self):
        if not self.args.pid:
            return 0
        return int(pathlib.Path(f"/proc/{self.args.pid}/statm").read_text().split()[1]) * 4096


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--pid", type=int, help="the server's")
    wrong = asyncio.run(Storm(parser.parse_args()).run())
    for line in wrong:
        print(line)
    print("wrong" if wrong else "all well")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
