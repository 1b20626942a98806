// What calls of the scheduler's own protocol need beside fields of the right types. The scheduler dies of what is refused
// here.
#pragma once

#include <string_view>

#include "base/status.h"
#include "engine/sglang/launch/facts.h"
#include "engine/sglang/link/scheduler_link.h"

namespace portico::sglang {

// `fields`: a map of those that the call gives. FAILED_PRECONDITION: SGLang was started in a way in which it cannot do it;
// INVALID_ARGUMENT names a field.
Status CheckNativeCall(std::string_view message, const Value& fields, const Facts& facts);
// Serialized tensors, one entry a tensor-parallel rank. INVALID_ARGUMENT (field "serialized_named_tensors").
Status CheckTensors(const Value& fields, const Facts& facts);

// Whether all requests are aborted before it, as SGLang's front end does.
bool AbortsRequests(const StructLayout& layout, const Value& fields);
// When it may be sent.
SchedulerLink::Terms TermsOfNativeCall(const StructLayout& layout, const Value& fields);

}  // namespace portico::sglang
