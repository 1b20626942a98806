"""Asks servers for vectors, classes and relevance, and leaves them."""
import json
import socket

import requests

# Flags of a mock engine whose texts are still there whenever a test looks.
SLOW = ("--mock-ttft-ms", "600000")


def post(server, path, body, **keywords):
    return requests.post(server.url + path, json=body, timeout=120, **keywords)


def refused(answer, status=400):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def leave(server, path, body):
    data = json.dumps(body).encode()
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    return s
