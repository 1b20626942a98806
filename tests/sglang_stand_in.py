"""SGLang without SGLang: the launcher's events and the scheduler's wire, so that tests need no 6 GB package.

It reads the layouts of a real release from tests/sglang/manifest-*.json and decodes every frame as strictly as SGLang
does, with msgspec; like SGLang it dies of a frame that it cannot read. The model repeats its prompt.

    portico serve --engine sglang --sglang-launcher tests/sglang_stand_in.py --model-path DIR -- [flags below]
"""
import argparse
import array
import collections
import json
import math
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time
import types

import msgspec
import zmq

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/portico"))
import sglang_attach  # noqa: E402
import sglang_media  # noqa: E402
import sglang_sockets  # noqa: E402
from sglang_stand_in_controls import Controls  # noqa: E402 - beside this file, wherever it is started
from sglang_stand_in_ranks import Controller, Loads  # noqa: E402
from sglang_wire import Wire  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PICKLE_OF_NONE = b"\x80\x04N."


class Processor:
    """An image is b"IMAGE 3": so many places of its own before the prompt, 601 for the first, 602 for the second. Likewise a
    video, b"VIDEO 3" and 701, and audio, b"AUDIO 3" and 801, with the beginning of a container; b"WAIT /file" is one place, and
    there once the file is. Others are faults on purpose."""

    BEGINNING = b"fLaC"

    def __init__(self, argument):
        manifest, deaf = argument
        self.wire = Wire(json.loads((HERE / f"sglang/{manifest}").read_text()))
        self.kinds = {"image": "", "video": deaf, "audio": deaf}

    def __call__(self, head, files):
        text, kinds = head["text"], [item["kind"] for item in head["media"]]
        for kind in self.kinds:
            assert not (self.kinds[kind] and kind in kinds), f"{kind} has been refused"
            if text is not None and text.count(f"<{kind}>") != kinds.count(kind):
                raise ValueError(f"the prompt has {text.count(f'<{kind}>')} marks for {kinds.count(kind)} {kind}s")
        ids, items, seen = [], [], collections.Counter()
        for about, file in zip(head["media"], files):
            word, _, count = file.removeprefix(self.BEGINNING).partition(b" ")
            kind = about["kind"]
            if word == b"DIE":
                os._exit(1)
            if word == b"BROKEN":
                raise RuntimeError("a frame cannot be decoded")
            if word == b"FULL":
                raise MemoryError("no memory is left")
            if word == b"WAIT":
                while not os.path.exists(count):
                    time.sleep(0.02)
                count = b"1"
            elif word != kind.upper().encode():
                raise ValueError(f"this is no {kind}")
            modality = sglang_media.KINDS.index(kind) + 1
            seen[kind] += 1
            items.append(self.wire.structs["MultimodalDataItem"](
                modality=modality, offsets=[(len(ids), len(ids) + int(count) - 1)], model_specific_data={"detail": about["detail"]}))
            ids += [500 + 100 * modality + seen[kind]] * int(count)
        ids += head["ids"]
        media = self.wire.structs["MultimodalProcessorOutput"](mm_items=items, input_ids=ids)
        return array.array("q", ids).tobytes(), self.wire.encoder.encode(media)


def places_of(mm_inputs, kind):
    """How many tokens of the prompt are that kind's."""
    modality = sglang_media.KINDS.index(kind) + 1
    items = [item for item in (mm_inputs.mm_items if mm_inputs else ()) if item.modality == modality]
    return sum(last - first + 1 for item in items for first, last in item.offsets)


class Request:
    def __init__(self, message, arrival):
        self.message = message
        self.rid = message.rid
        self.ids = list(message.input_ids)
        self.params = message.sampling_params
        self.arrival = arrival
        self.output = []
        self.sent = 0
        self.finish = None


class Scheduler(Controls):
    def __init__(self, wire, args, model, rank=None, loads=None):
        self.wire = wire
        self.args = args
        self.rank = rank  # None: the only one
        self.loads, self.load = loads, None
        self.model = model
        self.running = {}
        self.paused = False
        self.in_cells = False  # paused in place, with requests in their KV cells
        self.released = set()
        self.rooms = set()
        self.loras = {}
        self.storage, self.corpora = None, {}
        self.sessions = {}  # id → rid → ids
        self.weight_version = "default"
        self.taken = []  # of the last requests: tokens of prompt and answer, adapter
        context = zmq.Context()
        connect = lambda kind, name: self.socket(context, kind, name)
        self.input = connect(zmq.PULL, "scheduler_input" if rank is None else f"rank-{rank}")
        self.tokenizer = connect(zmq.PUSH, "tokenizer")
        self.detokenizer = connect(zmq.PUSH, "detokenizer")
        self.events, self.published = None, 0
        if args.kv_events_config:
            self.events = context.socket(zmq.PUB)
            self.events.bind(json.loads(args.kv_events_config)["endpoint"])
        self.outputs = 0

    def publish(self, **event):
        if self.events:
            batch = msgspec.msgpack.encode([time.time(), [event], None])
            self.events.send_multipart([b"", self.published.to_bytes(8, "big"), batch])
            self.published += 1

    def socket(self, context, kind, name):
        socket = context.socket(kind)
        socket.set_hwm(0)
        socket.connect(self.args.addresses.get(name, f"ipc://{self.args.ipc_dir}/{name}"))
        return socket

    def new(self, name, **fields):
        return self.wire.structs[name](**fields)

    def reply(self, request, name, **fields):
        self.tokenizer.send(self.wire.encoder.encode(self.new(name, http_worker_ipc=request.http_worker_ipc, **fields)))

    def take(self, frame):
        message = self.wire.decoder.decode(frame)
        name = type(message).__name__
        if name in ("SlowDownReqInput", "BeginWeightUpdateReqInput"):
            return self.reply(message, name[:-5] + "Output")
        handler = getattr(self, "on_" + name, None)
        assert handler, f"the stand-in has no {name}"
        handler(message)

    def check(self, message):
        """What SGLang does not survive."""
        params = message.sampling_params
        assert params.is_normalized and params.stop_strs is not None, "parameters that are not normalized"
        assert message.input_ids, "no input ids"
        assert all(0 <= i < self.model["vocab_size"] for i in message.input_ids), "an id outside of the vocabulary"
        assert math.isfinite(params.temperature) and params.temperature > 0
        assert re.fullmatch("[0-9a-f]{32}", message.rid), message.rid
        assert message.rid not in self.running, "a rid twice"
        if message.mm_inputs is not None:
            assert message.mm_inputs.input_ids == list(message.input_ids), "media of another prompt"
        assert message.lora_id == self.loras.get(message.lora_name, (None,))[0], "an adapter that is not loaded"

    def on_TokenizedGenerateReqInput(self, message):
        self.check(message)
        assert self.paused or not self.released, "a request without memory for it"
        self.taken = [*self.taken[-63:], [len(message.input_ids), message.sampling_params.max_new_tokens, message.lora_name]]
        session = message.session_params
        if session is not None:
            assert session.id in self.sessions, "a session that is not open"
            assert session.rid is None or session.rid in self.sessions[session.id], "no such request in the session"
            earlier = self.sessions[session.id].get(session.rid, [])
            message.input_ids = array.array("q", [*earlier, *message.input_ids])
            self.sessions[session.id][message.rid] = list(message.input_ids)
        if self.args.disaggregation_mode != "null":
            self.meet(message)
        if message.input_embeds is not None:
            message.input_ids = array.array("q", [len(row) for row in message.input_embeds])
        self.running[message.rid] = Request(message, time.monotonic())
        self.publish(type="BlockStored", block_hashes=[len(message.input_ids)], parent_block_hash=None,
                     token_ids=list(message.input_ids), block_size=len(message.input_ids), lora_id=None, medium="GPU")
        if len(message.input_ids) >= self.model["context_length"]:
            self.running[message.rid].finish = {"type": "abort", "message": "The prompt is too long.",
                                                "status_code": 400, "err_type": "BadRequestError"}
        names = ("json_schema", "regex", "ebnf", "structural_tag")
        grammars = {name: text for name in names if (text := getattr(message.sampling_params, name)) is not None}
        assert len(grammars) <= 1, "SGLang takes one grammar"
        for text in grammars.values():
            if "BROKEN" in text or "SHOW" in text:  # the refusal shows what has come
                sent = {**grammars, "require_reasoning": True} if message.require_reasoning else grammars
                why = "Failed to compile the grammar" if "BROKEN" in text else json.dumps(sent)
                self.running[message.rid].finish = {"type": "abort", "message": why, "status_code": 400,
                                                    "err_type": "BadRequestError"}

    def meet(self, message):
        """The other half of a pair waits in the room; SGLang refuses a request without one."""
        assert message.bootstrap_room not in self.rooms, "a room twice"
        self.rooms.add(message.bootstrap_room)
        print(f"pair {message.bootstrap_host} {message.bootstrap_port} {message.bootstrap_room}", file=sys.stderr)

    def on_TokenizedEmbeddingReqInput(self, message):
        self.check(message)
        self.taken = [*self.taken[-63:], [len(message.input_ids), 0, message.lora_name]]
        assert len(message.input_ids) < self.model["context_length"], "an embedding longer than the context"
        size = self.model["hidden_size"]
        vector = [0.0] * size
        for place, token in enumerate(message.input_ids):
            vector[(token * 31 + place) % size] += 1.0
        norm = math.sqrt(sum(v * v for v in vector))
        output = self.new("BatchEmbeddingOutput", rids=[message.rid], http_worker_ipcs=[None],
                          finished_reasons=[{"type": "length", "length": 0}],
                          embeddings=[self.sparse(message) if self.args.stand_in_sparse else [v / norm for v in vector]], prompt_tokens=[len(message.input_ids)],
                          cached_tokens=[0], placeholder_tokens_idx=None, placeholder_tokens_val=None)
        self.detokenizer.send(self.wire.encoder.encode(output))

    def sparse(self, message):
        return {token: message.input_ids.count(token) / 4 for token in message.input_ids}

    def on_AbortReq(self, message):
        for rid, request in list(self.running.items()):
            if message.abort_all or rid.startswith(message.rid or ""):
                if request.output or self.paused:
                    request.finish = {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
                else:
                    del self.running[rid]
                    self.tokenizer.send(self.wire.encoder.encode(self.new("AbortReq", rid=rid)))

    def step(self):
        rows = []
        for request in list(self.running.values()):
            if request.finish is None:
                self.extend(request)
            every = request.params.stream_interval or 1
            if not request.message.stream:
                every = 50
            if request.finish or len(request.output) == 1 or len(request.output) - request.sent >= every:
                rows.append(request)
            if request.finish:
                del self.running[request.rid]
        if rows:
            self.send(rows)

    def extend(self, request):
        params = request.params
        limit = params.max_new_tokens
        room = self.model["context_length"] - len(request.ids) - 1
        limit = room if limit is None else min(limit, room)
        if len(request.output) < limit:
            token = request.ids[len(request.output) % len(request.ids)]
            request.output.append(token)
            stops = set(params.stop_token_ids or ())
            if not params.ignore_eos:
                stops |= set(self.model["eos_token_ids"])
            if token in stops and len(request.output) > params.min_new_tokens:
                request.finish = {"type": "stop", "matched": token}
                return
        if len(request.output) >= limit:
            request.finish = {"type": "length", "length": len(request.output)}

    def send(self, rows):
        self.outputs += 1
        fault = self.args.stand_in_fault
        if fault and self.outputs % self.args.stand_in_every == 0:
            self.commit(fault, rows)
            return
        frame = self.wire.encoder.encode(self.output(rows))
        self.detokenizer.send(frame)
        for request in rows:
            request.sent = len(request.output)

    def commit(self, fault, rows):
        """A fault on purpose; the requests of the row are lost."""
        frame = self.wire.encoder.encode(self.output(rows))
        if fault == "die":
            os._exit(3)
        if fault == "truncated":
            self.detokenizer.send(frame[:len(frame) // 2])
        if fault == "unknown":
            self.detokenizer.send(msgspec.msgpack.encode(["NoSuchOutput", None, 1]))
        if fault == "garbage":
            self.detokenizer.send(random.randbytes(100))

    def output(self, rows):
        fields = {f["name"]: None for f in self.wire.manifest["structs"]["BatchTokenIDOutput"]["fields"]
                  if f["required"]}
        new = [array.array("q", r.output[r.sent:]) for r in rows]
        first = [r.sent == 0 for r in rows]
        count = len(rows)
        fields.update(
            rids=[r.rid for r in rows], http_worker_ipcs=[None] * count,
            finished_reasons=[r.finish for r in rows], decoded_texts=[""] * count,
            decode_ids=[array.array("q", r.ids[-5:]) + ids if begin else ids for r, ids, begin in zip(rows, new, first)],
            read_offsets=[min(5, len(r.ids)) for r in rows], output_ids=new, skip_special_tokens=[True] * count,
            spaces_between_special_tokens=[True] * count, no_stop_trim=[False] * count,
            prompt_tokens=[len(r.ids) for r in rows], reasoning_tokens=[0] * count,
            completion_tokens=[len(r.output) for r in rows], cached_tokens=[len(r.ids) - 1 for r in rows],
            retraction_counts=[0] * count, dp_ranks=[self.rank] * count, cached_tokens_details=[None] * count,
            time_stats=self.new("PickleWrapper", data=PICKLE_OF_NONE), **{
                f"{kind}_tokens": [places_of(r.message.mm_inputs, kind) for r in rows] for kind in sglang_media.KINDS},
            weight_versions=[[[self.weight_version, 0, len(r.output)]] if r.finish else None for r in rows])
        if self.args.speculative_num_draft_tokens:  # every other token was a draft
            fields.update(spec_verify_ct=[(len(r.output) + 1) // 2 for r in rows], spec_num_correct_drafts=[len(r.output) // 2 for r in rows],
                          spec_num_block_accept_tokens=[0] * count, spec_num_cap_tokens=[0] * count,
                          spec_correct_drafts_histogram=[[len(r.output) % 2, len(r.output) // 2] for r in rows],
                          spec_cap_lens_histogram=[[] for _ in rows])
        if any(r.message.return_hidden_states for r in rows):
            fields["output_hidden_states"] = [self.hidden_states(r) for r in rows]
        if any(r.message.return_logprob for r in rows):
            self.add_logprobs(fields, rows, first)
        return self.new("BatchTokenIDOutput", **fields)

    def hidden_states(self, request):
        """As SGLang has them, each time all so far: of the prompt a list of rows, of each new token a row."""
        rows = [[float(t), 0.5] for t in request.output]
        if request.message.return_hidden_states == "last":
            return rows[-1]
        return [[[float(t), 0.25] for t in request.ids], *rows[1:]] if request.message.return_hidden_states else None

    def add_logprobs(self, fields, rows, first):
        value = lambda token: -0.25 * (token % 8 + 1)
        for name in [f for f in fields if "logprobs" in f and ("val" in f or "idx" in f) and "flat" not in f]:
            fields[name] = [[] for _ in rows]
        for i, r in enumerate(rows):
            message = r.message
            if not message.return_logprob:
                continue
            new = r.output[r.sent:]
            fields["output_token_logprobs_val"][i] = [value(t) for t in new]
            fields["output_token_logprobs_idx"][i] = new
            if message.top_logprobs_num:
                fields["output_top_logprobs_val"][i] = [[value(t) - k for k in range(message.top_logprobs_num)] for t in new]
                fields["output_top_logprobs_idx"][i] = [[t + k for k in range(message.top_logprobs_num)] for t in new]
            asked = message.token_ids_logprob
            if asked:
                fields["output_token_ids_logprobs_val"][i] = [[value(a) for a in asked] for _ in new]
                fields["output_token_ids_logprobs_idx"][i] = [list(asked) for _ in new]
            if first[i] and message.logprob_start_len >= 0:
                prompt = r.ids[message.logprob_start_len:]
                fields["input_token_logprobs_val"][i] = [None] + [value(t) for t in prompt[1:]]
                fields["input_token_logprobs_idx"][i] = prompt
                if message.top_logprobs_num:
                    fields["input_top_logprobs_val"][i] = [None] + [[value(t)] for t in prompt[1:]]
                    fields["input_top_logprobs_idx"][i] = [None] + [[t] for t in prompt[1:]]
                if asked:
                    fields["input_token_ids_logprobs_val"][i] = [None] + [[value(a) for a in asked] for _ in prompt[1:]]
                    fields["input_token_ids_logprobs_idx"][i] = [None] + [list(asked) for _ in prompt[1:]]

    def run(self):
        period = self.args.stand_in_itl_ms / 1000
        due = time.monotonic()
        while True:
            busy = bool(self.running) and not self.paused
            wait = max(0, due - time.monotonic()) * 1000 if busy else None
            if self.input.poll(None if wait is None else int(wait) + (wait % 1 > 0)):
                while self.input.poll(0):
                    self.take(self.input.recv())
                    if not busy:
                        due = time.monotonic()
            if self.running and not self.paused and time.monotonic() >= due:
                self.step()
                due = time.monotonic() + period
            if self.loads and self.load != len(self.running):
                self.load = len(self.running)
                self.loads.write(self.rank, self.load)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--portico", action="store_true")
    parser.add_argument("--ipc-dir", required=True)
    parser.add_argument("--facts")
    parser.add_argument("--transport", choices=("ipc", "tcp"), default="ipc")
    parser.add_argument("--reasoning-parser", default="auto")
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--context-length", type=int, default=0)
    parser.add_argument("--is-embedding", action="store_true")
    for flag in ("enable-lora", "enable-return-hidden-states", "enable-priority-scheduling", "disable-radix-cache",
                 "enable-custom-logit-processor"):
        parser.add_argument("--" + flag, action="store_true")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--kv-events-config")
    parser.add_argument("--disaggregation-mode", default="null")
    parser.add_argument("--speculative-num-draft-tokens", type=int, default=0)
    parser.add_argument("--max-loaded-loras", type=int, default=0)
    parser.add_argument("--dp-size", "--dp", type=int, default=1)
    parser.add_argument("--stand-in-release", default="0.5.23")
    parser.add_argument("--stand-in-itl-ms", type=float, default=1)
    parser.add_argument("--stand-in-fault", choices=("die", "truncated", "unknown", "garbage"))
    parser.add_argument("--stand-in-every", type=int, default=20, help="outputs from one fault to the next")
    parser.add_argument("--stand-in-fail", help="fail to start, with this message")
    parser.add_argument("--stand-in-load-seconds", type=float, default=0)
    parser.add_argument("--stand-in-new-field", action="store_true", help="print a layout that nobody knows")
    parser.add_argument("--media-helpers", type=int, default=1)
    parser.add_argument("--stand-in-reasoning-parser", help="that a grammar comes after")
    parser.add_argument("--stand-in-sparse", action="store_true", help="embeddings weigh the tokens")
    parser.add_argument("--stand-in-sees", action="store_true")
    parser.add_argument("--stand-in-disproves", help="a message that it reads otherwise")
    parser.add_argument("--stand-in-blind", help="why a model that could see does not")
    parser.add_argument("--stand-in-deaf", help="why a model that sees takes neither video nor audio")
    args, unknown = parser.parse_known_args([a for a in sys.argv[1:] if a != "--"])
    events = os.fdopen(3, "w") if args.portico else sys.stdout
    os.set_inheritable(events.fileno(), False)

    def report(event, **facts):
        events.write(json.dumps({"event": event, **facts}) + "\n")
        events.flush()

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("the stand-in starts", *unknown, "original logprob", os.environ.get("SGLANG_RETURN_ORIGINAL_LOGPROB"), file=sys.stderr)
    manifest = json.loads((HERE / f"sglang/manifest-{args.stand_in_release}.json").read_text())
    if args.stand_in_new_field:
        fields = manifest["structs"]["TokenizedGenerateReqInput"]["fields"]
        fields[13] = {**fields[13], "name": "invented_field", "type": "list<int>", "required": True}
    report("progress", stage="importing")
    report("manifest", manifest=manifest)
    wire = Wire(manifest)

    def prove(line):
        for case in json.loads(line)["prove"]:
            message = wire.decoder.decode(bytes.fromhex(case["frame"]))
            assert type(message).__name__ == case["tag"] != args.stand_in_disproves, case["tag"]

    if args.portico:
        prove(sys.stdin.readline())
        report("proved")
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    report("progress", stage="loading the model")
    time.sleep(args.stand_in_load_seconds)
    if args.stand_in_fail:
        report("failed", message=args.stand_in_fail)
        os._exit(1)
    config = json.loads(pathlib.Path(args.model_path, "config.json").read_text())
    eos = config.get("eos_token_id")
    model = {
        "path": args.model_path, "tokenizer_path": args.model_path, "architecture": config["model_type"],
        "architectures": config["architectures"], "dtype": args.dtype, "vocab_size": config["vocab_size"],
        "context_length": args.context_length or config["max_position_embeddings"],
        "hidden_size": config["hidden_size"], "is_generation": not args.is_embedding,
        "eos_token_ids": eos if isinstance(eos, list) else [eos], "labels": [],
    }
    args.addresses = {n: f"ipc://{args.ipc_dir}/{n}" for n in ("scheduler_input", "tokenizer", "detokenizer", "rpc")}
    listeners = sglang_sockets.listeners_for(args.ipc_dir, args.transport, args.addresses)
    args.addresses |= listeners.addresses
    facts = {
        "sglang_version": manifest["sglang_version"], "pid": os.getpid(), "model": model, "dp_size": args.dp_size,
        "addresses": args.addresses, "listeners": listeners.path,
        "limits": {"max_total_num_tokens": 100000, "max_req_input_len": model["context_length"] - 6},
        "kv_events": [{**json.loads(args.kv_events_config), "topic": ""}] if args.kv_events_config else [],
        "disaggregation_mode": args.disaggregation_mode, "speculative_num_draft_tokens": args.speculative_num_draft_tokens,
        "grammar_backend": "xgrammar", "reasoning_parser": args.stand_in_reasoning_parser,
        "load_format": "auto", "enable_lora": args.enable_lora, "max_loaded_loras": args.max_loaded_loras,
        "enable_return_hidden_states": args.enable_return_hidden_states, "disable_radix_cache": args.disable_radix_cache,
        **{name: getattr(args, name) for name in ("enable_priority_scheduling", "enable_custom_logit_processor")},
    }
    media = types.SimpleNamespace(address="", kinds={})
    if args.stand_in_sees and args.media_helpers:
        media = sglang_media.Helpers(args.ipc_dir, args.media_helpers, (f"manifest-{args.stand_in_release}.json", args.stand_in_deaf or ""), Processor)
        assert media.wait_ready() is None
        threading.Thread(target=lambda: [media.keep() or time.sleep(0.1) for _ in iter(int, 1)], daemon=True).start()
    facts["media"] = {"address": media.address, "helpers": args.media_helpers, "reason": args.stand_in_blind or "", "kinds": media.kinds}
    loads = Loads(f"{args.ipc_dir}/loads", args.dp_size) if args.dp_size > 1 else None
    facts["load_snapshot"] = loads.path if loads else ""
    facts["started"] = sglang_attach.started(os.getpid())
    if args.facts:
        facts["proof_socket"] = sglang_attach.Proofs(args.ipc_dir, prove).address
        part = args.facts + ".part"
        with open(part, "w") as file:
            json.dump({"facts": facts, "manifest": manifest}, file)
        os.chmod(part, 0o600)
        os.replace(part, args.facts)  # whole, from the moment it is there
    scheduler = Scheduler(wire, args, model) if args.dp_size == 1 else Controller(
        wire, args, lambda rank: Scheduler(wire, args, model, rank, loads).run())
    report("ready", **facts)
    try:
        scheduler.run()
    except BaseException as error:
        report("failed", message=f"the scheduler died of {type(error).__name__}: {error}")
        print(f"the scheduler died of {error!r}", file=sys.stderr)
        os._exit(1)


if __name__ == "__main__":
    main()
