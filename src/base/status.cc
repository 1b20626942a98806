#include "base/status.h"

#include "absl/strings/cord.h"

namespace portico {
namespace {

constexpr char kFieldUrl[] = "portico/field";
constexpr char kReasonUrl[] = "portico/reason";

std::string Payload(const Status& status, const char* url) {
  auto payload = status.GetPayload(url);
  return payload ? std::string(*payload) : std::string();
}

absl::Cord ToCord(std::string_view text) {
  return absl::Cord(absl::string_view(text.data(), text.size()));
}

}  // namespace

Status Error(StatusCode code, std::string message, std::string_view field,
             std::string_view reason) {
  Status status(code, message);
  if (!field.empty()) status.SetPayload(kFieldUrl, ToCord(field));
  if (!reason.empty()) status.SetPayload(kReasonUrl, ToCord(reason));
  return status;
}

Status InvalidArgument(std::string_view field, std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message), field);
}

Status ContextExceeded(std::string_view field, std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message), field, "context_length_exceeded");
}

std::string_view MessageOf(const Status& status) {
  return {status.message().data(), status.message().size()};
}

std::string FieldOf(const Status& status) { return Payload(status, kFieldUrl); }

std::string ReasonOf(const Status& status) { return Payload(status, kReasonUrl); }

int HttpStatus(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAlreadyExists:  // a duplicate rid: as SGLang answers it
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kAborted:
      return 409;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kUnimplemented:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace portico
