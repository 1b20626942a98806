// What gRPC writes into HTTP/2's headers and trailers (gRPC's PROTOCOL-HTTP2.md), for server and
// client: timeouts, messages of errors, metadata, and the status that a broken stream stands for.
// The bytes of messages are in grpc_message.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/http/exchange.h"

namespace portico::net {

// The value of grpc-timeout: at most eight digits and a unit. Nothing where it is malformed;
// Duration::max() where it is longer than a Duration can say.
std::optional<Duration> ParseGrpcTimeout(std::string_view value);
// The shortest time that can be said and is not less than `timeout`; what is not positive is 0.
std::string FormatGrpcTimeout(Duration timeout);

// The value of grpc-message. Escapes that are not well formed are kept as they are, since the text
// must not be lost.
std::string EncodeGrpcMessage(std::string_view message);
std::string DecodeGrpcMessage(std::string_view value);

// The value of grpc-status: a number; one that is not known is kUnknown, one that is no number is
// nothing.
std::optional<StatusCode> ParseGrpcStatus(std::string_view value);

// Values of metadata whose name ends in "-bin": base64 without padding. Several values may come
// joined by commas, padded or not; nothing where one is malformed.
std::string EncodeBinaryValue(std::string_view bytes);
std::optional<std::vector<std::string>> DecodeBinaryValues(std::string_view value);
bool IsBinaryName(std::string_view name);

// Whether a header (name in lower case) belongs to HTTP or gRPC and is no metadata of the user.
bool IsReservedHeader(std::string_view name);

// Metadata has names in lower case and the bytes of binary values as they are. Of `headers` those
// that are reserved are left out. INTERNAL where a binary value is malformed.
StatusOr<Headers> DecodeMetadata(const Headers& headers);
// Appends `metadata` as headers. INTERNAL, naming the entry, where a name is malformed or reserved,
// or a value that is not binary has bytes other than printable ASCII. Blanks around a value are
// dropped, since HTTP/2 does not carry them.
Status EncodeMetadata(const Headers& metadata, Headers* headers);

// The status of an answer that has no grpc-status (gRPC's http-grpc-status-mapping.md), and of a
// stream that was reset.
StatusCode GrpcCodeOfHttp(int http_status);
StatusCode GrpcCodeOfReset(uint32_t http2_error);

}  // namespace portico::net
