// Errors inside Portico: absl::Status with two optional payloads, the request field that was wrong and a
// machine-readable code. Status codes are gRPC's; HttpStatus() is the one table to HTTP.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace portico {

using absl::OkStatus;
using absl::Status;
using absl::StatusCode;
using absl::StatusOr;

// A failed status. `field` names the top-level request field at fault ("messages", "stop"), or is empty;
// `reason` is OpenAI's machine-readable code ("model_not_found"), or is empty.
Status Error(StatusCode code, std::string message, std::string_view field = {},
             std::string_view reason = {});

// INVALID_ARGUMENT naming the field.
Status InvalidArgument(std::string_view field, std::string message);
// The same for a prompt that is too long, alone or with the answer that is asked for: OpenAI's code for that tells
// clients to shorten it.
Status ContextExceeded(std::string_view field, std::string message);

std::string_view MessageOf(const Status& status);
std::string FieldOf(const Status& status);
std::string ReasonOf(const Status& status);

// The HTTP status for a code. RESOURCE_EXHAUSTED is 429 (queue full); a body or head over its limit is answered
// by the transport itself (413, 431).
int HttpStatus(StatusCode code);

}  // namespace portico

// Returns the status of `expression` from the calling function if it is not OK.
#define PORTICO_RETURN_IF_ERROR(expression)                     \
  do {                                                          \
    if (::absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                           \
    }                                                           \
  } while (false)

#define PORTICO_CONCAT_INNER(a, b) a##b
#define PORTICO_CONCAT(a, b) PORTICO_CONCAT_INNER(a, b)

// PORTICO_ASSIGN_OR_RETURN(auto x, F()): x = value of F(), or returns its status.
#define PORTICO_ASSIGN_OR_RETURN(lhs, expression) \
  PORTICO_ASSIGN_OR_RETURN_IMPL(PORTICO_CONCAT(status_or_, __LINE__), lhs, expression)
#define PORTICO_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expression) \
  auto tmp = (expression);                                  \
  if (!tmp.ok()) {                                          \
    return std::move(tmp).status();                         \
  }                                                         \
  lhs = *std::move(tmp)
