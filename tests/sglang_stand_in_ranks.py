"""Several data-parallel ranks of the scheduler that sglang_stand_in.py plays: a process each, behind a controller that sends
requests to one of them and everything else to all, as SGLang's does. Where one ends, all do."""
import ctypes
import os
import signal
import struct
import sys
import traceback

import msgspec
import zmq

SLOT = 256


class Loads:
    """SGLang's file of loads: a slot for each rank, which the rank alone writes."""

    def __init__(self, path, ranks):
        self.path = path
        with open(path, "wb") as file:
            file.write(b"SLNS" + struct.pack("<HHI", 2, ranks, SLOT) + bytes(SLOT * ranks))

    def write(self, rank, running):
        load = msgspec.msgpack.encode({"num_running_reqs": running, "num_waiting_reqs": 0, "num_used_tokens": 10 * running,
                                       "max_total_num_tokens": 1000 + rank, "gen_throughput": 0.0})
        with open(self.path, "r+b") as file:
            file.seek(12 + rank * SLOT)
            file.write((struct.pack("<I", len(load)) + load).ljust(SLOT, b"\0"))


class Controller:
    def __init__(self, wire, args, run_rank):
        self.wire = wire
        self.processes = [self.start(run_rank, rank) for rank in range(args.dp_size)]
        context = zmq.Context()
        self.input = context.socket(zmq.PULL)
        self.input.set_hwm(0)
        self.input.connect(args.addresses["scheduler_input"])
        self.workers = []
        for rank in range(args.dp_size):
            self.workers.append(context.socket(zmq.PUSH))
            self.workers[-1].set_hwm(0)
            self.workers[-1].bind(f"ipc://{args.ipc_dir}/rank-{rank}")
        self.next = 0

    @staticmethod
    def start(run_rank, rank):
        sys.stderr.flush()
        process = os.fork()
        if process:
            return process
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the controller
            run_rank(rank)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def run(self):
        while True:
            if self.input.poll(100):
                self.send(self.input.recv())
            for rank, process in enumerate(self.processes):
                if os.waitpid(process, os.WNOHANG)[0]:
                    raise RuntimeError(f"rank {rank} has ended")

    def send(self, frame):
        message = self.wire.decoder.decode(frame)
        if not hasattr(message, "routed_dp_rank"):
            for worker in self.workers:
                worker.send(frame)
            return
        rank = message.routed_dp_rank
        if rank is None:
            rank, self.next = self.next, (self.next + 1) % len(self.workers)
        self.workers[rank].send(frame)
