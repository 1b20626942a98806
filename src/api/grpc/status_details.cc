#include "api/grpc/status_details.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace portico::api::rpc {
namespace {

// As Retry-After of the HTTP routes.
constexpr int kRetrySeconds = 1;

}  // namespace

std::string StatusDetails(const Status& status) {
  google::rpc::Status details;
  const std::string field = FieldOf(status);
  const std::string reason = ReasonOf(status);
  if (!field.empty()) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(field);
    violation->set_description(std::string(MessageOf(status)));
    details.add_details()->PackFrom(bad);
  }
  if (status.code() == StatusCode::kResourceExhausted) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(kRetrySeconds);
    details.add_details()->PackFrom(retry);
  }
  if (!reason.empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(reason);
    info.set_domain("portico");
    details.add_details()->PackFrom(info);
  }
  if (details.details().empty()) return {};
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(MessageOf(status)));
  return details.SerializeAsString();
}

}  // namespace portico::api::rpc
