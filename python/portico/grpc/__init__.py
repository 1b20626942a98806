"""Stubs of Portico's gRPC service, generated from its .proto file when the package is built (pip install 'portico[grpc]').

    import grpc
    from portico.grpc import SglangServiceStub, sglang_pb2

    channel = grpc.insecure_channel("127.0.0.1:30000", options=[("grpc.max_receive_message_length", 64 << 20)])
    reply = SglangServiceStub(channel).Tokenize(sglang_pb2.TokenizeRequest(text="Hello there"))

`sglang_pb2` has the messages; the stub serves grpc channels and grpc.aio channels alike.
"""
try:
    from . import sglang_pb2, sglang_pb2_grpc
except ImportError as error:
    raise ImportError(f"portico.grpc needs grpcio and protobuf: pip install 'portico[grpc]' ({error})") from error

SglangServiceStub = sglang_pb2_grpc.SglangServiceStub

__all__ = ["SglangServiceStub", "sglang_pb2", "sglang_pb2_grpc"]
