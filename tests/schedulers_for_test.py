"""Schedulers as sglang-omni has them, for test_omni_schedulers.py: they know nothing of Portico."""
import array
import base64
import queue
import types


def out(request_id, kind, data, target=None, metadata=None):
    return types.SimpleNamespace(request_id=request_id, type=kind, data=data, target=target, metadata=metadata)


class Talk:
    """Answers a request as the mock stage does; a streamed one step by step."""

    def __init__(self, chunks, repeat):
        self.inbox, self.outbox = queue.Queue(), queue.Queue()
        self.chunks, self.repeat, self.on, self.aborted = chunks, repeat, False, []

    def start(self):
        self.on = True
        while self.on:
            message = self.inbox.get()
            if message.type == "new_request":
                self.answer(message)

    def stop(self):
        self.on = False
        self.inbox.put(types.SimpleNamespace(type="wakeup"))

    def abort(self, request_id):
        self.aborted.append(request_id)

    def answer(self, message):
        payload, name = message.data, message.request_id
        prompt = str(payload.request.inputs)
        wanted = payload.request.metadata["output_modalities"]
        if "fail-now" in prompt:
            return self.outbox.put(out(name, "error", RuntimeError("a secret")))
        if "wait" in prompt:
            return None
        if "aborted" in prompt:
            return self.finish(name, payload, {"text": str(len(self.aborted))})
        if "imitate" in prompt:
            return self.imitate(name, payload)
        if "params" in prompt:
            return self.finish(name, payload, {"text": repr(sorted(payload.request.params.items()))})
        texts, sound = [], array.array("f")
        for i in range(self.chunks):
            texts.append(f"w{i} ")
            step = array.array("f", [i / 100]) * 480
            sound.extend(step)
            if "text" in wanted:
                self.outbox.put(out(name, "stream", {"text": texts[-1], "modality": "text"}))
            if "audio" in wanted:
                self.outbox.put(out(name, "stream", {"audio_waveform": step.tobytes(), "audio_waveform_dtype": "float32",
                                                     "audio_waveform_shape": [480], "sample_rate": 24000, "modality": "audio"}))
        data = {"finish_reason": "length", "usage": {"prompt_tokens": 3, "completion_tokens": self.chunks}}
        if self.repeat and "text" in wanted:
            data["text"] = "".join(texts)
        if self.repeat and "audio" in wanted:
            data.update(audio_waveform=sound.tobytes(), audio_waveform_dtype="float32", sample_rate=24000)
        self.finish(name, payload, data)

    def imitate(self, name, payload):
        inputs, sound = payload.request.inputs, array.array("h", [len(payload.request.metadata["tts_params"]["task_type"])] * 480)
        for one in inputs["references"]:
            file = base64.b64decode(one["data"])
            sound.extend([len(file) - 44, len(one["text"])] + [0] * 478)
        self.finish(name, payload, {"audio_waveform": sound.tobytes(), "audio_waveform_dtype": "int16", "sample_rate": 24000})

    def finish(self, name, payload, data):
        payload.data = {"finish_reason": "stop", **data}
        self.outbox.put(out(name, "result", payload))


def talk(chunks: int = 5, repeat: bool = True, **_):
    return Talk(chunks, repeat)


talk.speech_fields = ("ref_audio", "ref_text", "task_type")


class Simple:
    """A function for a scheduler."""

    def __init__(self, work):
        self.inbox, self.outbox, self.work = queue.Queue(), queue.Queue(), work

    def start(self):
        while True:
            message = self.inbox.get()
            if message.type == "stream_chunk":
                self.work.chunks.append(message.data.data)
            if message.type == "new_request":
                result = self.work(message.data)
                if result is not None:
                    self.outbox.put(out(message.request_id, "result", result))

    def stop(self):
        pass

    def abort(self, request_id):
        pass


class Streamer:
    """Streams the words of its request to `last`, each as a chunk, before its result."""

    def __init__(self):
        self.inbox, self.outbox = queue.Queue(), queue.Queue()

    def start(self):
        while True:
            message = self.inbox.get()
            if message.type != "new_request":
                continue
            for word in message.data.request.inputs[-1]["content"].split():
                self.outbox.put(out(message.request_id, "stream", word, "last"))
            message.data.data = {"from": "streamer"}
            self.outbox.put(out(message.request_id, "result", message.data))

    def stop(self):
        pass

    def abort(self, request_id):
        pass


def streamer(**_):
    return Streamer()


class Order:
    """Answers with the order of what has come, once there are a payload and the end of the stream."""

    def __init__(self):
        self.inbox, self.outbox, self.seen = queue.Queue(), queue.Queue(), {}

    def start(self):
        while True:
            message = self.inbox.get()
            request = self.seen.setdefault(message.request_id, types.SimpleNamespace(payload=None, order=[]))
            request.order.append(f"{message.data.chunk_id}{message.data.data}" if message.type == "stream_chunk" else message.type)
            if message.type == "new_request":
                request.payload = message.data
            if request.payload is not None and "stream_done" in request.order:
                request.payload.data = {"text": " ".join(request.order)}
                self.outbox.put(out(message.request_id, "result", request.payload))

    def stop(self):
        pass

    def abort(self, request_id):
        pass


def in_order(**_):
    return Order()


def is_alone(payload):
    return "alone" in str(payload.data["deep"])


def one_or_both(request_id, source, payload):
    return ["two"] if is_alone(payload) else ["one", "two"]


def unless_alone(**_):
    return Simple(lambda payload: None if is_alone(payload) else payload)


def without_blob(payload):
    payload.data = {"deep": payload.data["deep"], "model": payload.data["model"]}
    return payload


def by_words(request_id, payload):
    return ["one", "two"] if len(payload.data["deep"][0]["words"]) > 1 else "two"


def both(payloads):
    merged = next(iter(payloads.values()))
    merged.data = {"text": " ".join(f"{source}={sorted(payload.data)}" for source, payload in sorted(payloads.items()))}
    return merged


def same(**_):
    return Simple(lambda payload: payload)


def prepare(model_path="none", **_):
    def work(payload):
        payload.data = {"blob": b"\0\1\2", "deep": [{"words": str(payload.request.inputs).split()}], "model": model_path, "n": 7, "none": None}
        return payload
    return Simple(work)


def finish(**_):
    def work(payload):
        assert payload.data["blob"] == b"\0\1\2" and payload.data["n"] == 7 and payload.data["none"] is None
        text = "-".join(payload.data["deep"][0]["words"]) + " by " + payload.data["model"]
        payload.data = {"text": text, "modality": "text", "finish_reason": "stop"}
        return payload
    return Simple(work)
