#!/usr/bin/env python3
"""From the moment when the server learns that a client has left to the last step of each stage of its request.

    portico serve --engine mock --pipeline PIPELINE &     # with a stage in the server, one in a process, one of Python …
    python3 bench/omni/aborts.py http://localhost:8000 --clients 100

Each client asks for speech, reads for a moment, and closes. A profile of the server tells when the coordinator ended the request and
when each stage sent its last part; the time between is printed, and how many parts came behind the end. Runs on the server's
machine. Only the standard library is needed.
"""
import argparse
import collections
import json
import pathlib
import random
import socket
import time
import urllib.parse
import urllib.request


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def leave(url, text, chance):
    where = urllib.parse.urlsplit(url)
    body = json.dumps({"input": text, "response_format": "pcm"})
    with socket.create_connection((where.hostname, where.port), timeout=60) as client:
        client.sendall(f"POST /v1/audio/speech HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(chance.uniform(0.05, 0.2))


def wait_ended(folder):
    for _ in range(600):
        facts = [json.loads(file.read_text()) for file in folder.glob("run_*.json")]
        if facts and all(fact["ended"] for fact in facts):
            return
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--text", default="The train to London leaves at seven in the morning, and nobody knows why. " * 100)
    options = parser.parse_args()
    chance = random.Random(1)
    run = f"aborts-{time.time_ns()}"
    folder = pathlib.Path(post(options.url, "/start_request_profile", {"run_id": run})["event_dir"])
    for _ in range(options.clients):
        leave(options.url, options.text, chance)
    time.sleep(1)
    post(options.url, "/stop_request_profile", {"run_id": run})
    wait_ended(folder)
    ended, sent = {}, collections.defaultdict(lambda: collections.defaultdict(list))
    for file in folder.glob("events_*.jsonl"):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            at = event["metadata"].get("monotonic_ns")
            if event["event_name"] == "terminal_response":
                ended[event["request_id"]] = at
            elif event["event_name"] == "stage_stream_chunk_sent":
                sent[event["stage"]][event["request_id"]].append(at)
    print(f"{len(ended)} requests ended\n{'stage':20} {'requests':>8} {'late':>5} {'steps behind':>12} {'p50 ms':>8} {'max ms':>8}")
    for stage, requests in sorted(sent.items()):
        late = [max(0, (max(times) - ended[request]) / 1e6) for request, times in requests.items() if request in ended]
        behind = [sum(at > ended[request] for at in times) for request, times in requests.items() if request in ended]
        if late:
            late.sort()
            print(f"{stage:20} {len(late):8} {sum(n > 0 for n in behind):5} {max(behind):12} {late[len(late) // 2]:8.3f} {late[-1]:8.3f}")


if __name__ == "__main__":
    main()
