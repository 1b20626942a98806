"""gRPC clients made of proto/image.binpb at run time: any service, sync or aio, by grpcio."""
import pathlib

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

IMAGE = pathlib.Path(__file__).resolve().parent.parent / "proto/image.binpb"
LARGE = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


def _pool():
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(IMAGE.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _pool()


def message(name, **fields):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))(**fields)


class Service:
    """service.Method(request or fields…, metadata=, timeout=); .future() and streams as grpcio has them."""

    def __init__(self, channel, name):
        for method in POOL.FindServiceByName(name).methods:
            kind = "stream_" if method.client_streaming else "unary_"
            kind += "stream" if method.server_streaming else "unary"
            request, response = map(message_factory.GetMessageClass, (method.input_type, method.output_type))
            call = getattr(channel, kind)(f"/{name}/{method.name}", request_serializer=lambda m: m.SerializeToString(),
                                          response_deserializer=response.FromString)
            setattr(self, method.name, self._wrapped(call, request))

    @staticmethod
    def _wrapped(call, request):
        def invoke(given=None, metadata=None, timeout=60, **fields):
            return call(given if given is not None else request(**fields), metadata=metadata, timeout=timeout)

        invoke.raw = call
        invoke.request = request
        return invoke


class Client:
    def __init__(self, address, credentials=None, channel=None, options=()):
        options = [*LARGE, *options]
        if channel is None:
            channel = (grpc.secure_channel(address, credentials, options) if credentials
                       else grpc.insecure_channel(address, options))
        self.channel = channel
        self.sglang = Service(channel, "sglang.runtime.v1.SglangService")
        self.scheduler = Service(channel, "sglang.grpc.scheduler.SglangScheduler")
        self.health = Service(channel, "grpc.health.v1.Health")
        self.reflection = {version: Service(channel, f"grpc.reflection.{version}.ServerReflection")
                           for version in ("v1", "v1alpha")}

    def raw(self, method, data=b"", metadata=None, timeout=60):
        """One call with bytes in and out."""
        return self.channel.unary_unary(method)(data, metadata=metadata, timeout=timeout)


def fields_at_fault(error):
    """What grpc-status-details-bin says of a failed call: names of fields, and the kinds of details."""
    trailers = dict(error.trailing_metadata() or ())
    if "grpc-status-details-bin" not in trailers:
        return [], []
    status = message("google.rpc.Status")
    status.ParseFromString(trailers["grpc-status-details-bin"])
    assert status.code == error.code().value[0] and status.message == error.details()
    names, kinds = [], []
    for detail in status.details:
        kinds.append(detail.type_url.rsplit(".", 1)[1])
        if kinds[-1] == "BadRequest":
            bad = message("google.rpc.BadRequest")
            bad.ParseFromString(detail.value)
            names += [violation.field for violation in bad.field_violations]
    return names, kinds
