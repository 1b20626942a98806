"""The events of requests in a stage, while a profile runs."""
import json
import os
import queue
import socket
import sys
import threading
import time
import traceback


class Profile:
    """Records the events of requests while a profile runs, in the files of Portico's own recorder
    (docs/profiling.md); and PyTorch's trace, where a stage has imported it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.file = self.options = self.torch = self.orders = None
        self.on = False  # also between a run and one that follows it

    def handle(self, options, stage):
        """On a thread of its own, in order: writing a trace takes a while. A start is waited for, though not long, so that
        the profile has the parts that come behind it."""
        if self.orders is None:
            self.orders = queue.SimpleQueue()
            threading.Thread(target=self._obey, daemon=True).start()
        done = threading.Event()
        self.orders.put((options, stage, done))
        if options.get("run_id"):
            done.wait(1)

    def _obey(self):
        while True:
            options, stage, done = self.orders.get()
            self.switch(options, stage)
            done.set()

    def switch(self, options, stage):
        with self.lock:
            if options.get("run_id") and self.options and self.options["run_id"] == options["run_id"]:
                return
            self._end()
            if options.get("run_id"):
                self._begin(options, stage)
            self.on = self.file is not None

    def _begin(self, options, stage):
        self.options, self.stage = options, stage
        self.written = self.cut = self.bytes = 0
        folder = options["event_dir"]
        self.name = "".join(c if c.isalnum() and c.isascii() or c in "-." else "_" for c in stage) + f"_{os.getpid()}"
        try:
            os.makedirs(folder, exist_ok=True)
            self.to_wall = time.time_ns() - time.monotonic_ns()
            self.file = open(os.path.join(folder, f"events_{self.name}.jsonl"), "a", encoding="utf-8")
            self._facts(ended=False)
        except OSError as error:
            print(f"no profile of this stage: {error}", file=sys.stderr)
            self.options = None
            return
        template = options.get("trace_path_template")
        if template and "torch" in sys.modules:
            self._begin_torch(f"{template}_{self.name}.trace.json.gz")

    def _begin_torch(self, path):
        try:
            from torch.profiler import profile
            try:
                from torch._C._profiler import _ExperimentalConfig
                profiler = profile(experimental_config=_ExperimentalConfig(profile_all_threads=True))
            except (ImportError, TypeError):  # an older PyTorch sees this thread and the devices
                profiler = profile()
            profiler.start()
            self.torch = (profiler, path)
        except Exception:
            traceback.print_exc()

    def _facts(self, ended):
        try:
            with open("/proc/sys/kernel/random/boot_id") as file:
                boot = file.read().strip()
        except OSError:
            boot = ""
        now = time.monotonic_ns() + self.to_wall
        facts = {"run_id": self.options["run_id"], "stage": self.stage, "pid": os.getpid(), "host": socket.gethostname(),
                 "boot_id": boot, "started_ns": now, "monotonic_to_wall_ns": self.to_wall, "ended": ended,
                 "ended_ns": now if ended else 0, "written": self.written, "dropped": 0, "cut": self.cut}
        path = os.path.join(self.options["event_dir"], f"run_{self.name}.json")
        with open(path + ".next", "w") as file:
            file.write(json.dumps(facts) + "\n")
        os.replace(path + ".next", path)

    def _end(self):
        if self.file is None:
            return
        try:
            if self.torch:
                profiler, path = self.torch
                profiler.stop()
                os.makedirs(os.path.dirname(path), exist_ok=True)
                profiler.export_chrome_trace(path)
        except Exception:
            traceback.print_exc()
        try:
            self.file.close()
            self._facts(ended=True)
        except OSError as error:
            print(f"the profile of this stage is not whole: {error}", file=sys.stderr)
        self.file = self.options = self.torch = None

    def record(self, request, stage, event, **metadata):
        if not self.on:
            return
        now = time.monotonic_ns()
        with self.lock:
            if self.file is None:
                return
            metadata["monotonic_ns"] = now
            line = json.dumps({"request_id": request, "stage": stage, "event_name": event, "timestamp_ns": now + self.to_wall,
                               "run_id": self.options["run_id"], "pid": os.getpid(), "metadata": metadata}) + "\n"
            self.bytes += len(line)
            if self.bytes > self.options.get("max_bytes", 1 << 28):
                self.cut += 1
                return
            try:
                self.file.write(line)
                self.file.flush()
                self.written += 1
            except OSError:
                self.cut += 1


profile = Profile()
