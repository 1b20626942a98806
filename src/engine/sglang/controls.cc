// What is asked of SGLang beside requests (engine/control.h), as its own front end asks it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/sglang/engine_state.h"
#include "engine/sglang/wire/json_values.h"

namespace portico::sglang {
namespace {

// Adds fields of the message, as its layout types them. INVALID_ARGUMENT for one that this release lacks.
Status AddFields(const StructLayout* layout,
                 const std::vector<std::pair<std::string, std::string>>& named, Map* fields) {
  for (const auto& [name, text] : named) {
    const Field* field = layout == nullptr ? nullptr : layout->Find(name);
    if (field == nullptr) {
      return InvalidArgument(name, fmt::format("the installed SGLang has no field {}", name));
    }
    PORTICO_ASSIGN_OR_RETURN(const Json json, Json::Parse(text));
    PORTICO_ASSIGN_OR_RETURN(Value value, ValueOfJson(field->type, json, name));
    fields->emplace_back(name, std::move(value));
  }
  return OkStatus();
}

Status EndsItself() {
  return Error(StatusCode::kFailedPrecondition,
               "SGLang's new profiler (SGLANG_PROFILE_V2) ends by itself, after num_steps");
}

// The scheduler dies of what its profiler does not support.
Status CheckProfile(const StartProfileControl& control, const Facts& facts) {
  const bool counts = control.num_steps.value_or(0) > 0;
  if (control.by_stage && !counts) {
    return InvalidArgument("num_steps", "profile_by_stage needs num_steps, the steps of a stage");
  }
  if (!facts.new_profiler) return OkStatus();
  if (!control.by_stage) {
    return InvalidArgument("profile_by_stage",
                           "SGLang's new profiler (SGLANG_PROFILE_V2) needs profile_by_stage");
  }
  const std::string_view field = control.merge        ? "merge_profiles"
                                 : control.start_step ? "start_step"
                                                      : std::string_view();
  if (field.empty()) return OkStatus();
  return InvalidArgument(field,
                         fmt::format("SGLang's new profiler (SGLANG_PROFILE_V2) has no {}", field));
}

// The first rank's refusal, if any: success=false with a message.
Status StatusOf(const SchedulerLink::Replies& replies, StatusCode failure) {
  for (const Message& reply : replies) {
    const Value* success = reply.fields.Find("success");
    const bool* said = success == nullptr ? nullptr : success->As<bool>();
    if (said == nullptr || *said) continue;
    const Value* message = reply.fields.Find("message");
    const auto* text = message == nullptr ? nullptr : message->As<std::string>();
    return Error(failure, text == nullptr || text->empty() ? "SGLang refused it" : *text);
  }
  return OkStatus();
}

}  // namespace

void SglangEngine::Control(EngineControl control, TimePoint deadline, ControlDone done) {
  std::visit([&](const auto& one) { Do(one, deadline, std::move(done)); }, control);
}

void SglangEngine::Ask(std::string_view message, Value fields, TimePoint deadline,
                       StatusCode failure, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  (*life)->link->Call(
      message, std::move(fields), static_cast<size_t>((*life)->facts.ranks), deadline,
      [failure, done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
        done(replies.ok() ? StatusOf(*replies, failure) : replies.status());
      });
}

void SglangEngine::Do(const FlushCacheControl&, TimePoint deadline, ControlDone done) {
  Ask("FlushCacheReqInput", Map{}, deadline, StatusCode::kFailedPrecondition, std::move(done));
}

void SglangEngine::Do(const PauseControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  // The scheduler dies of mode "abort". SGLang's front end ends the requests itself; those that come later wait in a
  // scheduler that is paused and empty.
  if (control.mode == PauseMode::kAbort) (*life)->AbortStreams();
  const bool in_place = control.mode == PauseMode::kInPlace;
  (*life)->link->Call("PauseGenerationReqInput", Map{{"mode", in_place ? "in_place" : "retract"}},
                      0, deadline,
                      [this, in_place, life = *life,
                       done = std::move(done)](StatusOr<SchedulerLink::Replies> sent) mutable {
                        if (sent.ok()) {
                          paused_.store(true, std::memory_order_relaxed);
                          life->link->OnPaused(in_place);
                        }
                        done(sent.status());
                      },
                      {.no_aborted = true});
}

void SglangEngine::Do(const ContinueControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if (released_.Any()) {
    return done(
        Error(StatusCode::kFailedPrecondition,
              "the engine has released its memory; /resume_memory_occupation gives it back"));
  }
  constexpr std::string_view kMessage = "ContinueGenerationReqInput";
  Map fields;
  if (!control.torch_empty_cache) {
    const Status added = AddFields((*life)->codec->schema->Find(kMessage),
                                   {{"torch_empty_cache", "false"}}, &fields);
    if (!added.ok()) return done(added);
  }
  (*life)->link->Call(
      kMessage, std::move(fields), 0, deadline,
      [this, life = *life, done = std::move(done)](StatusOr<SchedulerLink::Replies> sent) mutable {
        if (sent.ok()) {
          paused_.store(false, std::memory_order_relaxed);
          life->link->OnContinued();
        }
        done(sent.status());
      });
}

void SglangEngine::Do(const UpdateWeightsControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  // Without a load_format the scheduler says "Unknown load_format".
  Map fields{{"model_path", control.path},
             {"load_format",
              control.load_format.empty() ? (*life)->facts.load_format : control.load_format},
             {"abort_all_requests", control.abort_requests}};
  if (!control.weight_version.empty()) {
    fields.emplace_back("weight_version", control.weight_version);
  }
  constexpr std::string_view kMessage = "UpdateWeightFromDiskReqInput";
  auto others = control.others;
  if (!control.flush_cache) others.emplace_back("flush_cache", "false");
  const Status added = AddFields((*life)->codec->schema->Find(kMessage), others, &fields);
  if (!added.ok()) return done(added);
  // SGLang's front end ends the requests, and waits for those that run: its scheduler makes nothing of abort_all_requests,
  // and flushes no cache that is in use.
  if (control.abort_requests) (*life)->AbortStreams();
  (*life)->link->Call(
      kMessage, std::move(fields), static_cast<size_t>((*life)->facts.ranks), deadline,
      [done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
        done(replies.ok() ? StatusOf(*replies, StatusCode::kInvalidArgument) : replies.status());
      },
      {.no_aborted = control.abort_requests,
       .no_running = true,
       .free_cells = control.flush_cache});
}

void SglangEngine::Do(const StartProfileControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if (Status bad = CheckProfile(control, (*life)->facts); !bad.ok()) return done(std::move(bad));
  Map fields{{"req_type", 1},
             {"with_stack", control.with_stack.value_or(true)},
             {"record_shapes", control.record_shapes.value_or(true)},
             {"profile_id", fmt::format("{}", UnixSeconds())}};
  if (!control.output_dir.empty()) fields.emplace_back("output_dir", control.output_dir);
  if (control.start_step) fields.emplace_back("start_step", *control.start_step);
  if (control.num_steps) fields.emplace_back("num_steps", *control.num_steps);
  if (!control.activities.empty()) {
    List activities(control.activities.begin(), control.activities.end());
    fields.emplace_back("activities", std::move(activities));
  }
  std::vector<std::pair<std::string, std::string>> others;
  if (control.by_stage) others.emplace_back("profile_by_stage", "true");
  if (control.merge) others.emplace_back("merge_profiles", "true");
  if (!control.prefix.empty()) {
    others.emplace_back("profile_prefix", Json(control.prefix).Dump());
  }
  const Status added = AddFields((*life)->codec->schema->Find("ProfileReq"), others, &fields);
  if (!added.ok()) return done(added);
  Ask("ProfileReq", std::move(fields), deadline, StatusCode::kFailedPrecondition, std::move(done));
}

void SglangEngine::Do(const StopProfileControl&, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if ((*life)->facts.new_profiler) return done(EndsItself());
  Ask("ProfileReq", Map{{"req_type", 2}}, deadline, StatusCode::kFailedPrecondition,
      std::move(done));
}

}  // namespace portico::sglang
