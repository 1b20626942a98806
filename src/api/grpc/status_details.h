// What goes into grpc-status-details-bin: google.rpc.Status with BadRequest (the field at fault),
// RetryInfo (the queue is full) and ErrorInfo (a machine-readable reason).
#pragma once

#include <string>

#include "base/status.h"

namespace portico::api::rpc {

// Serialized; empty where the status has nothing to add to its code and message.
std::string StatusDetails(const Status& status);

}  // namespace portico::api::rpc
