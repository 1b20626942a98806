// Controls that the workers' protocols say alike, by smg.grpc.common's messages.
#pragma once

#include <string>
#include <string_view>

#include "engine/grpc/token_wire.h"
#include "message/protobuf.h"
#include "smg/grpc/common/common.pb.h"

namespace portico {

inline std::string StartProfileBytes(const StartProfileControl& control) {
  ::smg::grpc::common::StartProfileRequest message;
  if (!control.output_dir.empty()) message.set_output_dir(control.output_dir);
  if (control.start_step) message.set_start_step(static_cast<int32_t>(*control.start_step));
  if (control.num_steps) message.set_num_steps(static_cast<int32_t>(*control.num_steps));
  for (const std::string& activity : control.activities) message.add_activities(activity);
  if (control.with_stack) message.set_with_stack(*control.with_stack);
  if (control.record_shapes) message.set_record_shapes(*control.record_shapes);
  message.set_profile_by_stage(control.by_stage);
  return message.SerializeAsString();
}

// The field that those messages lack; empty: there is none.
inline std::string_view MissingOfProfile(const StartProfileControl& control) {
  if (control.merge) return "merge_profiles";
  return control.prefix.empty() ? std::string_view() : "profile_prefix";
}

// Of protocols that have controls of the cache and of profiles, and no others.
inline StatusOr<TokenWireCall> CommonCall(const EngineControl& control) {
  if (std::holds_alternative<FlushCacheControl>(control)) return TokenWireCall{"FlushCache", ""};
  if (const auto* start = std::get_if<StartProfileControl>(&control)) {
    const std::string_view missing = MissingOfProfile(*start);
    if (!missing.empty()) return CannotControlField("of this model's workers", missing);
    return TokenWireCall{"StartProfile", StartProfileBytes(*start)};
  }
  if (std::holds_alternative<StopProfileControl>(control)) return TokenWireCall{"StopProfile", ""};
  return CannotControl("of this model's workers", control);
}

// Of a message with `success` and `message`.
template <typename Message>
Status OutcomeIn(std::string_view bytes) {
  Message response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ControlOutcome(response.success(), response.message());
}

// What came of such a call.
inline Status CommonOutcome(const EngineControl& control, std::string_view bytes) {
  namespace pb = ::smg::grpc::common;
  if (std::holds_alternative<FlushCacheControl>(control)) {
    return OutcomeIn<pb::FlushCacheResponse>(bytes);
  }
  return OutcomeIn<pb::ProfileResponse>(bytes);
}

}  // namespace portico
