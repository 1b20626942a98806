"""SGLang's own server on the CPU, with a Python that has SGLang (docs/sglang.md says how to install one without a GPU)."""
import contextlib
import os
import signal
import subprocess
import time

import requests
from conftest import ROOT, Server, free_port

PYTHON = os.environ.get("PORTICO_SGLANG_PYTHON", "")
DEMO = ROOT / "models/demo"
START_SECONDS = 600
CPU_FLAGS = ("--device", "cpu", "--attention-backend", "torch_native", "--dtype", "float32", "--disable-overlap-schedule",
             "--disable-cuda-graph", "--skip-server-warmup", "--mem-fraction-static", "0.1", "--max-total-tokens", "8192",
             "--context-length", "2048", "--log-level", "warning", "--sleep-on-idle")
# Every name exists and calling one fails: SGLang imports kernels that float32 on a CPU does not call.
KERNEL_STUB = '''import torch

__version__ = "9.9.9"
# Models of vision name it when they are imported.
library = torch.library.Library("sgl_kernel", "FRAGMENT")
for name in ("fused_sigmoid_mul_cpu", "fused_qk_gemma_rmsnorm_cpu", "fused_qk_gemma_rmsnorm_with_gate_cpu",
             "fused_qkvzba_split_reshape_cat_contiguous_cpu", "fused_gdn_gating_cpu"):
    if not hasattr(torch.ops.sgl_kernel, name):
        library.define(name + "(Tensor a) -> Tensor")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError("sgl_kernel." + name)

    return missing
'''


def set_environment(patch, folder):
    """What SGLang needs to run without a GPU, for this process's children."""
    stub = folder / "sgl_kernel"
    stub.mkdir()
    for name in ("__init__", "flash_attn", "mamba", "utils"):
        (stub / f"{name}.py").write_text(KERNEL_STUB)
    # Two schedulers that poll leave no core for more threads of arithmetic.
    more = {"PYTHONPATH": str(folder), "SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    for name, value in more.items():
        patch.setenv(name, value)


def answers(url):
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(url + "/health", timeout=60).status_code == 200
    return False


def start_ready(*arguments):
    """`portico serve` with these arguments, once it and its SGLang are ready."""
    server = Server(*arguments, wait=False)
    deadline = time.time() + START_SECONDS
    while server.process.poll() is None and not answers(server.url) and time.time() < deadline:
        time.sleep(0.5)
    if server.process.poll() is None and time.time() < deadline:
        return server
    server.process.kill()  # nobody else would end it
    raise AssertionError(server.output()[-3000:])


class SglangServer:
    def __init__(self, *engine, name="demo", model=DEMO):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [PYTHON, "-m", "sglang.launch_server", "--model-path", model, "--served-model-name", name,
                   "--port", self.port, *CPU_FLAGS, *engine]
        with open(ROOT / f"build/test-sglang-{self.port}.log", "w") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, "SGLANG_USE_PICKLE_IPC": "0"})

    def wait_ready(self):
        """It imports for half a minute of one core's time."""
        deadline = time.time() + START_SECONDS
        while self.process.poll() is None and not answers(self.url):
            assert time.time() < deadline, "SGLang's own server does not start"
            time.sleep(0.5)
        assert self.process.poll() is None

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def sglang_server(*engine, model=DEMO):
    """SGLang's own server; gives its address."""
    server = SglangServer(*engine, model=model)
    try:
        server.wait_ready()
        yield server.url
    finally:
        server.kill()
