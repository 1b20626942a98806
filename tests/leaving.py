"""Clients that leave before they have their answer."""
import json
import socket
import struct
import time


def request_bytes(path, body):
    data = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def leave(server, path, body):
    """Sends a request; whoever closes the socket leaves."""
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(request_bytes(path, body))
    return s


def vanish(port, rng, data):
    """One client that leaves at a random moment, in a random way."""
    s = socket.create_connection(("127.0.0.1", port))
    how = rng.random()
    if how < 0.1:
        s.sendall(data[:rng.randrange(1, len(data))])
    else:
        s.sendall(data)
        time.sleep(rng.choice([0, 0, 0.001, 0.005, 0.02]))
        if how < 0.5:
            s.settimeout(0.02)
            try:
                s.recv(rng.choice([1, 100, 10000]))
            except (socket.timeout, ConnectionError):
                pass
    if how > 0.9:
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.002)
    if 0.3 < how < 0.6:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
