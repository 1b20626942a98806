"""Streams an answer over gRPC: python generate.py [HOST:PORT] [PROMPT]

Needs the stubs of Portico's package: pip install './python[grpc]'. With a key in PORTICO_API_KEY it is sent along.
"""
import os
import sys

import grpc
from portico.grpc import SglangServiceStub, sglang_pb2

# TextGenerate takes the text as it is, without a chat template; ChatComplete takes messages.
PROMPT = "<|im_start|>user\nWhat is 7 plus 5?<|im_end|>\n<|im_start|>assistant\n"
# grpcio refuses messages above 4 MiB unless it is told otherwise; the server's own limit is 64 MiB.
OPTIONS = [("grpc.max_receive_message_length", 64 << 20)]


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:30000"
    prompt = sys.argv[2] if len(sys.argv) > 2 else PROMPT
    key = os.environ.get("PORTICO_API_KEY")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    with grpc.insecure_channel(target, options=OPTIONS) as channel:
        service = SglangServiceStub(channel)
        request = sglang_pb2.TextGenerateRequest(
            text=prompt,
            sampling_params=sglang_pb2.SamplingParams(temperature=0, max_new_tokens=32),
            stream=True,
        )
        # Each message has the text that is new since the last one; the last has finished=True.
        for message in service.TextGenerate(request, metadata=metadata, timeout=60):
            print(message.text, end="", flush=True)
            if message.finished:
                print("\nfinish_reason:", message.meta_info["finish_reason"])


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
