"""Bytes of resident memory an idle keep-alive connection costs, after its first request.

    python3 bench/http/idle.py [--conns 10000]
"""
import argparse
import resource
import socket
import time

import bench_tools as bench

REQUEST = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: idle\r\naccept: */*\r\n\r\n"


def open_some(port, count):
    opened = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(REQUEST)
        if not s.recv(4096).startswith(b"HTTP/1.1 200"):
            raise SystemExit("not answered with 200")
        opened.append(s)
    return opened


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conns", type=int, default=10000)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    bench.build("portico")
    with bench.portico() as server:
        warm = open_some(server.port, 100)
        before = server.rss()
        connections = open_some(server.port, options.conns)
        time.sleep(1)
        each = (server.rss() - before) / options.conns
        print(f"{options.conns} idle connections: {each:.0f} bytes each  target <= 8192  "
              f"(process {before / 2**20:.1f} MiB before)")
        for s in warm + connections:
            s.close()


if __name__ == "__main__":
    main()
