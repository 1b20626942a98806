"""Stand-ins for workers that take tokens over gRPC: what vLLM's and SGLang's own servers speak, in a few lines of Python.

Each answers a prompt with ids that a test has given it, in pieces of two, and remembers what it was asked."""
import concurrent.futures
import json
import queue

import grpc
from google.protobuf import message_factory
from grpc_client import POOL, message

VOCABULARY, CONTEXT = 4096, 2048


class StandIn:
    """A gRPC server of `service` whose methods are this object's."""

    service = ""

    def __init__(self, answer, tokenizer, finish="stop"):
        self.answer, self.tokenizer, self.finish = list(answer), str(tokenizer), finish
        self.asked, self.calls, self.healthy = [], [], True
        self.metadata = {}  # of the last call of each method
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        methods = {}
        for method in POOL.FindServiceByName(self.service).methods:
            answer_to = getattr(self, method.name, None)
            if answer_to is None:
                continue
            make = grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
            request = message_factory.GetMessageClass(method.input_type)
            methods[method.name] = make(self.noted(method.name, answer_to), request_deserializer=request.FromString,
                                        response_serializer=lambda reply: reply.SerializeToString())
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(self.service, methods)])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def noted(self, name, answer_to):
        def call(request, context):
            self.calls.append(name)
            self.metadata[name] = dict(context.invocation_metadata())
            return answer_to(request, context)
        return call

    def pieces(self):
        return [self.answer[at:at + 2] for at in range(0, len(self.answer), 2)]

    def stop(self):
        self.server.stop(None)


class VllmStandIn(StandIn):
    service = "vllm.grpc.engine.VllmEngine"
    package = "vllm.grpc.engine."
    generates = True
    flushes = False

    def HealthCheck(self, _request, _context):
        return message(self.package + "HealthCheckResponse", healthy=self.healthy)

    def GetModelInfo(self, _request, _context):
        return message(self.package + "GetModelInfoResponse", model_path="org/model", is_generation=self.generates,
                       max_context_length=CONTEXT, vocab_size=VOCABULARY, served_model_name="vllm-model",
                       tokenizer_path=self.tokenizer, eos_token_ids=[2], architectures=["X"])

    def GetServerInfo(self, _request, _context):
        return message(self.package + "GetServerInfoResponse", server_type="vllm")

    def GetLoads(self, _request, _context):
        reply = message(self.package + "GetLoadsResponse", dp_rank_count=1)
        reply.loads.add(num_running_reqs=3, num_used_tokens=10, max_total_num_tokens=100000, token_usage=0.25)
        return reply

    def FlushCache(self, _request, context):
        if not self.flushes:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        return message("smg.grpc.common.FlushCacheResponse", success=True)

    def Embed(self, request, _context):
        self.asked.append(request)
        ids = request.tokenized.input_ids
        return message(self.package + "EmbedResponse", embedding=[3.0, 4.0, float(len(ids))], prompt_tokens=len(ids),
                       embedding_dim=3)

    def logprobs(self, ids, given):
        given.token_ids.extend(ids)
        given.token_logprobs.extend(-0.5 for _ in ids)
        for one in ids:
            given.top_logprobs.add(values=[-0.5, -1.5], token_ids=[one, 7])

    def Generate(self, request, _context):
        self.asked.append(request)
        prompt = list(request.tokenized.input_ids)
        usage = {"prompt_tokens": len(prompt), "cached_tokens": 1}
        sent = []
        for piece in self.pieces():
            sent += piece
            reply = message(self.package + "GenerateResponse")
            chunk = reply.chunk
            chunk.token_ids.extend(piece)
            chunk.prompt_tokens, chunk.cached_tokens, chunk.completion_tokens = len(prompt), 1, len(sent)
            if request.sampling_params.HasField("logprobs"):
                self.logprobs(piece, chunk.output_logprobs)
            if request.sampling_params.HasField("prompt_logprobs") and sent == piece:
                for place, one in enumerate(prompt):
                    chunk.input_logprobs.token_ids.append(one)
                    value = chunk.input_logprobs.token_logprobs.add()
                    if place > 0:
                        value.value = -float(place)
            yield reply
        reply = message(self.package + "GenerateResponse")
        reply.complete.output_ids.extend(sent)
        reply.complete.finish_reason = self.finish
        reply.complete.completion_tokens = len(sent)
        for name, count in usage.items():
            setattr(reply.complete, name, count)
        yield reply


class NativeStandIn(StandIn):
    """SGLang's own listener: facts in JSON, and all tokens so far in each message unless it was started otherwise."""

    service = "sglang.runtime.v1.SglangService"
    package = "sglang.runtime.v1."

    def __init__(self, *arguments, cumulative=True, **keywords):
        self.cumulative = cumulative
        super().__init__(*arguments, **keywords)

    def HealthCheck(self, _request, _context):
        return message(self.package + "HealthCheckResponse", healthy=self.healthy)

    def GetModelInfo(self, _request, _context):
        # As SGLang's: nothing of the vocabulary and of end tokens, which are in the model's folder.
        return message(self.package + "GetModelInfoResponse", model_path=self.tokenizer, json_info=json.dumps(
            {"model_path": self.tokenizer, "tokenizer_path": self.tokenizer, "is_generation": True,
             "preferred_sampling_params": None, "weight_version": "default", "model_type": "llama"}))

    def GetServerInfo(self, _request, _context):
        return message(self.package + "GetServerInfoResponse", json_info=json.dumps(
            {"served_model_name": "native-model", "max_total_num_tokens": 50000, "context_length": None}))

    def ListModels(self, _request, _context):
        reply = message(self.package + "ListModelsResponse")
        reply.models.add(id="native-model", root="native-model", max_model_len=CONTEXT)
        return reply

    def GetLoad(self, _request, _context):
        return message(self.package + "GetLoadResponse", json_info=json.dumps(
            [{"dp_rank": 0, "num_reqs": 5, "num_waiting_reqs": 2, "num_tokens": 40}]))

    def FlushCache(self, _request, _context):
        return message(self.package + "FlushCacheResponse", success=False, message="requests are running")

    def PauseGeneration(self, request, _context):
        self.asked.append(request)
        return message(self.package + "PauseGenerationResponse", message="paused")

    def Generate(self, request, _context):
        self.asked.append(request)
        sent, pieces = [], self.pieces()
        for number, piece in enumerate(pieces):
            sent += piece
            last = number == len(pieces) - 1
            finish = {"type": "stop", "matched": sent[-1]} if self.finish == "stop" else {"type": self.finish}
            shown = sent if self.cumulative else piece
            reply = message(self.package + "GenerateResponse", output_ids=shown, finished=last)
            reply.meta_info.update({
                "id": json.dumps(request.rid), "finish_reason": json.dumps(finish if last else None),
                "prompt_tokens": str(len(request.input_ids)), "cached_tokens": "1", "completion_tokens": str(len(sent))})
            if request.return_logprob:
                reply.meta_info["output_token_logprobs"] = json.dumps([[-0.25, one, None] for one in shown])
                reply.meta_info["output_top_logprobs"] = json.dumps([[[-0.25, one, None]] for one in shown])
            yield reply


class SchedulerStandIn(StandIn):
    """SGLang's servicer, half of a pair if `mode` says so. `act(worker, request, context)`, if any, answers in place of the ids: it
    gives the messages, or ends the call by its context."""

    service = "sglang.grpc.scheduler.SglangScheduler"
    package = "sglang.grpc.scheduler."

    def __init__(self, *arguments, mode="null", act=None, **keywords):
        self.act = act
        # Made once: python-protobuf has crashed where several threads filled such a map.
        self.server_info = message(self.package + "GetServerInfoResponse", max_total_num_tokens=50000)
        self.server_info.server_args.fields["disaggregation_mode"].string_value = mode
        self.server_info.server_args.fields["dp_size"].number_value = 1
        super().__init__(*arguments, **keywords)

    def HealthCheck(self, _request, _context):
        return message(self.package + "HealthCheckResponse", healthy=self.healthy)

    def GetModelInfo(self, _request, _context):
        return message(self.package + "GetModelInfoResponse", model_path="org/model", is_generation=True,
                       max_context_length=CONTEXT, vocab_size=VOCABULARY, served_model_name="paired-model",
                       tokenizer_path=self.tokenizer, eos_token_ids=[2], architectures=["X"])

    def GetServerInfo(self, _request, _context):
        return self.server_info

    def chunk(self, ids):
        reply = message(self.package + "GenerateResponse")
        reply.chunk.token_ids.extend(ids)
        return reply

    def end(self, ids, reason):
        reply = message(self.package + "GenerateResponse")
        reply.complete.output_ids.extend(ids)
        reply.complete.finish_reason = reason
        reply.complete.completion_tokens = len(ids)
        return reply

    def whole(self):
        for piece in self.pieces():
            yield self.chunk(piece)
        yield self.end(self.answer, self.finish)

    def Generate(self, request, context):
        self.asked.append(request)
        yield from (self.whole() if self.act is None else self.act(self, request, context) or ())

    def rooms(self):
        return [request.disaggregated_params.bootstrap_room for request in self.asked]


class KvVllmStandIn(VllmStandIn):
    """One that tells of its cache: batches are given to tell()."""

    def __init__(self, *arguments, **keywords):
        self.batches, self.number = queue.Queue(), 0
        super().__init__(*arguments, **keywords)

    def tell(self, *events):
        batch = message("smg.grpc.common.KvEventBatch", sequence_number=self.number, timestamp=1.0)
        self.number += 1
        for event in events:
            batch.events.append(message("smg.grpc.common.KvCacheEvent", **event))
        self.batches.put(batch)

    def SubscribeKvEvents(self, _request, context):
        while context.is_active():
            try:
                yield self.batches.get(timeout=0.2)
            except queue.Empty:
                continue
