"""Starts the scheduler processes of an installed SGLang for Portico.

SGLang's own front end (TokenizerManager, DetokenizerManager, HTTP server) is
left out: Portico takes its place on the scheduler's sockets. This process only
starts the schedulers, says what they are, and stays as their idle parent. Its
exit is the notice that the engine has died.

    python sglang_launch.py --ipc-dir DIR [--facts FILE] [--detached] [--transport tcp] -- SGLANG ARGUMENTS

It speaks JSON lines on file descriptor 3 where Portico started it, and on
standard output else:

    {"event": "progress", "stage": TEXT}
    {"event": "manifest", "manifest": {...}}     sglang_manifest.py's
    {"event": "proved"}                          Portico's frames are right
    {"event": "ready", ...}                      addresses and facts of the model
    {"event": "failed", "message": TEXT, "wire": true where its messages are not those that Portico speaks}

After the manifest Portico sends one line on standard input, {"prove": [{"frame":
HEX, "fields": {...}}, ...]}: frames that its encoder made and what they mean. They
are read with the package's own decoder before any scheduler runs, since one
wrong byte would end the engine. The end of standard input ends everything,
unless --detached. --facts FILE writes the manifest and the ready facts to a file
that `portico serve --engine sglang --attach FILE` reads.
"""
from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# Both before the first import of sglang, here and in its children.
os.environ["SGLANG_USE_PICKLE_IPC"] = "0"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import sglang_sockets  # noqa: E402
from sglang_proof import prove  # noqa: E402

SOCKETS = ("scheduler_input", "tokenizer", "detokenizer", "rpc", "metrics")


class Reports:
    def __init__(self, to_portico: bool):
        self.out = os.fdopen(3, "w") if to_portico else sys.stdout
        self.lock = threading.Lock()

    def __call__(self, event: str, **facts):
        with self.lock:
            try:
                self.out.write(json.dumps({"event": event, **facts}) + "\n")
                self.out.flush()
            except BrokenPipeError:
                pass


def numbers(value) -> list:
    if value is None:
        return []
    return sorted(value) if isinstance(value, (list, tuple, set)) else [value]


def resolved(server_args):
    """The arguments with SGLang's own choices filled in."""
    try:
        from sglang.srt.arg_groups.model_override_base import resolving_view
    except ImportError:  # older releases fill them in in place
        return server_args
    return resolving_view(server_args)


def load_snapshot(instance_id: str) -> str:
    """The file in which the schedulers of this instance publish their load."""
    if not instance_id:
        return ""
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in instance_id)
    digest = hashlib.blake2s(instance_id.encode(), digest_size=4).hexdigest()
    return f"/dev/shm/sglang_loads_{name}_{digest}.shm"


def kv_event_addresses(config: str | None, ranks: int) -> list:
    """Where each rank publishes its KV cache events, as one that connects says it; empty: nowhere."""
    config = json.loads(config) if config else {}
    if config.get("publisher", "null") != "zmq":
        return []

    def of_rank(endpoint, rank):
        for wildcard, host in (("//*:", "//127.0.0.1:"), ("//0.0.0.0:", "//127.0.0.1:"), ("//[::]:", "//[::1]:")):
            endpoint = endpoint.replace(wildcard, host)
        if ranks > 1 and endpoint.startswith("tcp://"):  # SGLang's own rule
            base, port = endpoint.rsplit(":", 1)
            endpoint = f"{base}:{int(port) + rank}"
        return endpoint

    events, replay = config.get("endpoint", "tcp://*:5557"), config.get("replay_endpoint") or ""
    count = ranks if events.startswith("tcp://") else 1
    return [{"endpoint": of_rank(events, rank), "topic": config.get("topic", ""), "replay": of_rank(replay, rank)}
            for rank in range(count)]


def addresses_of(port_args) -> dict:
    return {name: getattr(port_args, f"{name}_ipc_name") for name in SOCKETS}


def facts_of(server_args, port_args, infos, version: str) -> dict:
    from sglang.srt.configs.model_config import ModelConfig

    config = ModelConfig.from_server_args(server_args)
    hf = config.hf_config
    first = infos[0] if infos else {}
    args = resolved(server_args)

    def arg(name, default=None):
        value = getattr(args, name, default)
        return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

    labels = getattr(hf, "id2label", None) or {}
    return {
        "sglang_version": version,
        "pid": os.getpid(),
        "addresses": addresses_of(port_args),
        "load_snapshot": load_snapshot(getattr(port_args, "instance_id", "")),
        "model": {
            "path": arg("model_path"),
            "tokenizer_path": arg("tokenizer_path"),
            "served_name": arg("served_model_name"),
            "architecture": getattr(hf, "model_type", ""),
            "architectures": list(getattr(hf, "architectures", None) or []),
            "dtype": str(config.dtype).removeprefix("torch."),
            "vocab_size": int(config.vocab_size),
            "context_length": int(config.context_len),
            "hidden_size": int(getattr(config, "hidden_size", 0) or 0),
            "is_generation": bool(config.is_generation),
            "is_multimodal": bool(getattr(config, "is_multimodal", False)),
            "eos_token_ids": numbers(getattr(config, "hf_eos_token_id", None)),
            "labels": [str(labels[k]) for k in sorted(labels)],
            "problem_type": getattr(hf, "problem_type", None),
        },
        "limits": {
            "max_total_num_tokens": int(first.get("max_total_num_tokens") or 0),
            "max_req_input_len": int(first.get("max_req_input_len") or 0),
            "max_running_requests": int(arg("max_running_requests") or 0),
        },
        "dp_size": int(arg("dp_size", 1) or 1),
        "tp_size": int(arg("tp_size", 1) or 1),
        "kv_events": kv_event_addresses(arg("kv_events_config"), int(arg("dp_size", 1) or 1)),
        "skip_tokenizer_init": bool(arg("skip_tokenizer_init", False)),
        "disable_radix_cache": bool(arg("disable_radix_cache", False)),
        "page_size": int(arg("page_size", 1) or 1),
        "enable_lora": bool(arg("enable_lora", False)),
        "max_loaded_loras": int(arg("max_loaded_loras") or 0),
        "lora_paths": [
            {"lora_id": r.lora_id, "lora_name": r.lora_name, "lora_path": r.lora_path, "pinned": bool(getattr(r, "pinned", False))}
            for r in (getattr(args, "lora_paths", None) or []) if hasattr(r, "lora_id")
        ],
        "device": arg("device", ""),
        "profile_v2": os.environ.get("SGLANG_PROFILE_V2", "").lower() in ("1", "true", "yes", "y"),
        "records_experts": arg("expert_distribution_recorder_mode") is not None,
        "return_hidden_states_mode": arg("return_hidden_states_mode"),
        "enable_return_hidden_states": bool(arg("enable_return_hidden_states", False)),
        "enable_custom_logit_processor": bool(arg("enable_custom_logit_processor", False)),
        "enable_priority_scheduling": bool(arg("enable_priority_scheduling", False)),
        "disaggregation_mode": arg("disaggregation_mode"),
        "speculative_num_draft_tokens": int(arg("speculative_num_draft_tokens") or 0) if arg("speculative_algorithm") else 0,
        "grammar_backend": arg("grammar_backend"),
        "reasoning_parser": arg("reasoning_parser"),
        "load_format": arg("load_format", "auto"),
        "custom_weight_loaders": list(getattr(args, "custom_weight_loader", None) or []),
        "weight_version": arg("weight_version", "default"),
    }


def end_children() -> None:
    import psutil

    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.Error:
            pass


stopping = False


def stop(code: int) -> None:
    global stopping
    stopping = True  # nothing that ends is started again
    try:
        end_children()
    finally:
        os._exit(code)


def start_media_helpers(server_args, ipc_dir, count: int):
    """The helpers of a model that sees, or None and why there are none (empty: its media are not wanted)."""
    from sglang.srt.configs.model_config import ModelConfig

    config = ModelConfig.from_server_args(server_args)
    if count <= 0 or not config.is_generation or not getattr(config, "is_multimodal", False):
        return None, ""
    try:
        from sglang.srt.managers.schedule_batch import MultimodalProcessorOutput  # noqa: F401
    except ImportError:
        return None, "this release of SGLang sends media as pickles"
    import sglang_media

    return sglang_media.Helpers(ipc_dir, count, server_args), ""


def reasoning_flags(server_flags, name: str, engine_module) -> list:
    """Which reasoning SGLang's grammars come after: that of Portico's parser, if this release has it and the flags name none."""
    if name in ("", "none") or any(flag.replace("_", "-").split("=")[0] == "--reasoning-parser" for flag in server_flags):
        return []
    if name == "auto":  # older releases do not detect it
        return ["--reasoning-parser", "auto"] if hasattr(engine_module, "resolve_auto_parsers") else []
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    known = [each for each in (name, name.replace("_", "-")) if each in ReasoningParser.DetectorMap]
    return ["--reasoning-parser", known[0]] if known else []


OF_FRONT_END = ("api_key", "admin_api_key", "ssl_keyfile", "ssl_certfile", "ssl_ca_certs", "ssl_keyfile_password",  # open without
                "chat_template", "tool_call_parser", "preferred_sampling_params", "allow_auto_truncate", "limit_mm_data_per_request")


NOT_OF_PORTICO = ("completion_template", "hf_chat_template_name", "default_chat_template_kwargs", "tool_server",  # change answers
                  "stream_response_default_include_usage", "return_input_ids", "return_output_ids", "fastapi_root_path")


def check_front_end(server_args, known=()) -> None:
    """RuntimeError: what the front end would have to know, be it from a --config file or a flag cut short. SGLang's own does not
    run: without its keys the server would be open, and the others would have no effect. `known`: Portico has read these."""
    for name in OF_FRONT_END + NOT_OF_PORTICO:
        if name not in known and getattr(server_args, name, None) not in (None, False, "" if name in NOT_OF_PORTICO else None):
            flag = "--" + name.replace("_", "-")
            if name in NOT_OF_PORTICO:
                raise RuntimeError(f"its arguments or its --config file have {flag}, which Portico, the front end, does not have")
            raise RuntimeError(f"its arguments or its --config file have {flag}, but Portico is the front end: give {flag} to `portico serve`, not to SGLang")


def choose_addresses(port_args, ipc_dir, transport: str):
    """Gives the sockets of a front end their addresses, and hands them over to it."""
    for name in SOCKETS:
        if getattr(port_args, f"{name}_ipc_name", "").startswith("ipc://"):
            setattr(port_args, f"{name}_ipc_name", f"ipc://{ipc_dir}/{name}")
    listeners = sglang_sockets.listeners_for(ipc_dir, transport, addresses_of(port_args))
    for name, address in listeners.addresses.items():
        setattr(port_args, f"{name}_ipc_name", address)
    return listeners


def start_schedulers(args, report):
    from sglang.srt.entrypoints import engine as engine_module
    from sglang.srt.managers.scheduler import run_scheduler_process
    from sglang.srt.server_args import PortArgs, prepare_server_args
    from sglang.srt.utils import configure_logger

    # What SGLang's own Engine does before it starts schedulers, in its order. Steps that a release lacks are left out.
    flags = [*reasoning_flags(args.server_flags, args.reasoning_parser, engine_module), *args.server_flags]
    server_args = prepare_server_args(flags)
    check_front_end(server_args, args.front_end_has.replace("-", "_").split(","))
    configure_logger(server_args)
    if hasattr(server_args, "resolve_once"):
        server_args.resolve_once()
    engine_module._set_envs_and_config(server_args)
    if hasattr(engine_module, "load_plugins"):
        engine_module.load_plugins()
    server_args.check_server_args()
    if hasattr(engine_module, "resolve_auto_parsers"):
        engine_module.resolve_auto_parsers(server_args)
    if hasattr(engine_module, "publish"):
        engine_module.publish(server_args, role="tokenizer")
    if getattr(server_args, "tokenizer_worker_num", 1) != 1:
        raise RuntimeError("--tokenizer-worker-num is of SGLang's own front end; Portico has --shards")

    port_args = PortArgs.init_new(server_args)
    listeners = choose_addresses(port_args, args.ipc_dir, args.transport)
    report("progress", stage="loading the model")
    helpers, no_media = start_media_helpers(server_args, args.ipc_dir, args.media_helpers)
    result, processes = engine_module.Engine._launch_scheduler_processes(
        server_args, port_args, run_scheduler_process)
    pairs = start_pair_service(server_args)
    result.wait_for_ready()
    if helpers is not None:
        no_media = helpers.wait_ready() or ""
        if no_media:
            helpers.stop()
            helpers = None
    media = {"address": helpers.address if helpers else "", "helpers": args.media_helpers, "reason": no_media,
             "kinds": helpers.kinds if helpers else {}}
    return server_args, port_args, result, processes, helpers, media, pairs, listeners


def start_pair_service(server_args):
    """Where the halves of prefill and decode pairs find each other; SGLang's own front end runs it. It ends when it is dropped."""
    if getattr(server_args, "disaggregation_mode", "null") in (None, "null"):
        return None
    from sglang.srt.managers.disagg_service import start_disagg_service

    takes_arguments = bool(inspect.signature(start_disagg_service).parameters)  # of older releases
    return start_disagg_service(server_args) if takes_arguments else start_disagg_service()


def reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "SGLang does not take its arguments"
    if type(error) is RuntimeError:  # a sentence, SGLang's or this file's
        return str(error)
    return f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ipc-dir", required=True, help="an empty folder of this user for the sockets")
    parser.add_argument("--facts", help="where to write what --attach needs")
    parser.add_argument("--detached", action="store_true", help="stay when standard input ends")
    parser.add_argument("--media-helpers", type=int, default=1, help="processes that read media; 0: none is taken")
    parser.add_argument("--transport", choices=("ipc", "tcp"), default="ipc", help="tcp: on the loopback, which every user of this machine can reach")
    parser.add_argument("--reasoning-parser", default="auto", help="of the front end; a grammar begins behind its reasoning")
    parser.add_argument("--front-end-has", default="", help=argparse.SUPPRESS)  # names, with commas between them
    parser.add_argument("--portico", action="store_true", help=argparse.SUPPRESS)  # started by it: file descriptor 3
    parser.add_argument("server_flags", nargs="*", help="after --: SGLang's server arguments")
    args = parser.parse_args()
    report = Reports(args.portico)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop(0))
    # A scheduler that fails sends SIGQUIT to its parent.
    signal.signal(signal.SIGQUIT, lambda *_: stop(1))

    wire = False
    try:
        report("progress", stage="importing SGLang")
        try:
            import sglang
        except ImportError as error:
            what_helps = "--sglang-python names the Python" if args.portico else "run this script with the Python"
            raise RuntimeError(f"{sys.executable} has no SGLang that can be imported ({error}); {what_helps} that has it") from None
        import sglang_attach
        import sglang_manifest

        wire = True
        manifest = sglang_manifest.build()
        report("manifest", manifest=manifest)
        if args.portico:
            line = sys.stdin.readline()
            if not line:
                return 1
            prove(line)
            report("proved")
        wire = False
        if not args.detached:
            threading.Thread(target=lambda: (sys.stdin.read(), stop(0)), daemon=True).start()
        server_args, port_args, result, processes, helpers, media, pairs, listeners = start_schedulers(args, report)
        facts = facts_of(server_args, port_args, list(result.scheduler_infos), sglang.__version__)
        facts["media"] = media
        facts["listeners"] = listeners.path
        facts["started"] = sglang_attach.started(os.getpid())
        if args.facts:
            facts["proof_socket"] = sglang_attach.Proofs(args.ipc_dir, prove).address
    except BaseException as error:  # argparse's exits too: Portico must hear of them
        report("failed", message=reason(error), wire=wire)
        stop(1)
    if args.facts:
        with open(args.facts + ".part", "w") as file:
            json.dump({"facts": facts, "manifest": manifest}, file)
        os.replace(args.facts + ".part", args.facts)
    report("ready", **facts)
    while all(p.is_alive() for p in processes):
        time.sleep(0.1)
        if helpers is not None and not stopping:
            helpers.keep()
        listeners.keep()
    codes = [p.exitcode for p in processes]
    report("failed", message=f"a scheduler process has ended (exit codes {codes})")
    stop(1)
    return 1


if __name__ == "__main__":
    sys.exit(main())
