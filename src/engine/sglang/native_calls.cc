// Sessions, adapters, and what operators ask of SGLang alone.
#include <fmt/format.h>

#include <random>
#include <utility>

#include "engine/sglang/engine_state.h"
#include "engine/sglang/json_values.h"

namespace portico::sglang {
namespace {

// As long and as random as SGLang's own.
std::string NewAdapterId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// The scheduler's state holds the server's arguments, keys and passwords among them.
bool IsSecret(std::string_view key) {
  for (const std::string_view word : {"api_key", "password", "secret"}) {
    if (key.find(word) != std::string_view::npos) return true;
  }
  return false;
}

void DropSecrets(Json* json) {
  if (json->is_array()) {
    for (Json& each : json->as_array()) DropSecrets(&each);
  } else if (json->is_object()) {
    for (auto& [key, value] : json->as_object()) {
      if (IsSecret(key) && !value.is_null()) {
        value = Json("***");
      } else {
        DropSecrets(&value);
      }
    }
  }
}

std::string JsonOfReply(const Message& reply) {
  Json json(JsonObject{});
  if (const auto* fields = reply.fields.As<Map>()) {
    for (const auto& [key, value] : *fields) {
      const auto* name = key.As<std::string>();
      if (name == nullptr || *name == "rid" || *name == "http_worker_ipc") continue;
      json.Set(*name, JsonOfValue(value));
    }
  }
  DropSecrets(&json);
  return json.Dump();
}

// The fields of a message as its layout types them.
StatusOr<Map> FieldsOf(const StructLayout& layout, const Json& json) {
  Map fields;
  for (const auto& [name, value] : json.as_object()) {
    const Field* field = layout.Find(name);
    if (field == nullptr || name == "rid" || name == "http_worker_ipc") {
      return InvalidArgument(name, fmt::format("{:.64} is no field of this call", name));
    }
    PORTICO_ASSIGN_OR_RETURN(Value typed, ValueOfJson(field->type, value, name));
    fields.emplace_back(name, std::move(typed));
  }
  return fields;
}

Status AsLoraStatus(const SchedulerLink::Replies& replies) {
  for (const Message& reply : replies) {
    const Value* success = reply.fields.Find("success");
    const bool* said = success == nullptr ? nullptr : success->As<bool>();
    if (said != nullptr && *said) continue;
    const Value* words = reply.fields.Find("error_message");
    const auto* text = words == nullptr ? nullptr : words->As<std::string>();
    return Error(StatusCode::kInvalidArgument, text == nullptr ? "SGLang refused it" : *text,
                 "lora_name");
  }
  return OkStatus();
}

}  // namespace

void SglangEngine::Do(const NativeCall& call, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  const Schema& schema = *(*life)->codec->schema;
  const StructLayout* layout = schema.IsMessage(call.message) ? schema.Find(call.message) : nullptr;
  if (layout == nullptr) {
    return done(Error(
        StatusCode::kFailedPrecondition,
        fmt::format("the installed SGLang, {}, has no {}", schema.sglang_version(), call.message)));
  }
  // Of all three the scheduler dies.
  if (call.message == "ExpertDistributionReq" && !(*life)->facts.records_experts) {
    return done(Error(StatusCode::kFailedPrecondition,
                      "SGLang records experts with --expert-distribution-recorder-mode only"));
  }
  if (call.message == "ReleaseMemoryOccupationReqInput") {
    if ((*life)->facts.device == "cpu") {
      return done(Error(StatusCode::kFailedPrecondition, "SGLang releases memory of GPUs only"));
    }
    if ((*life)->link->live() > 0 && !paused_.load(std::memory_order_relaxed)) {
      return done(Error(StatusCode::kFailedPrecondition,
                        "memory is released while nothing runs; pause the generation first"));
    }
  }
  const auto json = Json::Parse(call.fields);
  if (!json.ok()) return done(json.status());
  auto fields = FieldsOf(*layout, *json);
  if (!fields.ok()) return done(fields.status());
  const size_t replies = call.replies_expected ? static_cast<size_t>((*life)->facts.ranks) : 0;
  (*life)->link->Call(
      call.message, *std::move(fields), replies, deadline,
      [to = call.replies, done = std::move(done)](StatusOr<SchedulerLink::Replies> got) mutable {
        if (!got.ok()) return done(got.status());
        for (const Message& reply : *got) to->Add(JsonOfReply(reply));
        done(OkStatus());
      });
}

void SglangEngine::Do(const OpenSessionControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  const Status opened = sessions_.Open(control.id, control.timeout, Clock::now());
  if (!opened.ok()) return done(opened);
  Map fields{{"capacity_of_str_len", control.capacity}, {"session_id", control.id}};
  if (control.streaming) fields.emplace_back("streaming", *control.streaming);
  if (control.timeout) fields.emplace_back("timeout", *control.timeout);
  (*life)->link->Call(
      "OpenSessionReqInput", std::move(fields), static_cast<size_t>((*life)->facts.ranks), deadline,
      [this, id = control.id,
       done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
        Status status = replies.status();
        if (status.ok()) {
          for (const Message& reply : *replies) {
            const Value* success = reply.fields.Find("success");
            const bool* said = success == nullptr ? nullptr : success->As<bool>();
            if (said != nullptr && *said) continue;
            status = InvalidArgument("session_id",
                                     fmt::format("SGLang does not open the session `{:.100}`", id));
          }
        }
        if (!status.ok()) sessions_.Close(id).IgnoreError();
        done(status);
      });
}

void SglangEngine::Do(const CloseSessionControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  const Status closed = sessions_.Close(control.id);
  if (!closed.ok()) return done(closed);
  (*life)->link->Call("CloseSessionReqInput", Map{{"session_id", control.id}}, 0, deadline,
                      [done = std::move(done)](StatusOr<SchedulerLink::Replies> sent) mutable {
                        done(sent.status());
                      });
}

void SglangEngine::Do(const LoadLoraControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if (!(*life)->facts.lora) return done(CannotControl(info_.name, control));
  if ((*life)->facts.ranks > 1) {
    return done(Error(StatusCode::kFailedPrecondition,
                      "SGLang loads adapters at its start only where dp_size is above 1"));
  }
  if (adapters_.Has(control.name)) {
    return done(InvalidArgument(
        "lora_name", fmt::format("the adapter `{:.100}` is loaded already", control.name)));
  }
  std::string id = NewAdapterId();
  Map fields{{"lora_name", control.name},
             {"lora_path", control.path},
             {"pinned", control.pinned},
             {"lora_id", id}};
  (*life)->link->Call("LoadLoRAAdapterReqInput", std::move(fields), 1, deadline,
                      [this, control, id = std::move(id),
                       done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
                        Status status = replies.ok() ? AsLoraStatus(*replies) : replies.status();
                        if (status.ok()) adapters_.Add(control.name, std::move(id), control.path);
                        done(status);
                      });
}

void SglangEngine::Do(const UnloadLoraControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if (!(*life)->facts.lora) return done(CannotControl(info_.name, control));
  if ((*life)->facts.ranks > 1) {
    return done(Error(StatusCode::kFailedPrecondition,
                      "SGLang keeps its adapters where dp_size is above 1"));
  }
  const auto id = adapters_.StartUnload(control.name);
  if (!id.ok()) return done(id.status());
  (*life)->link->Call("UnloadLoRAAdapterReqInput",
                      Map{{"lora_name", control.name}, {"lora_id", *id}}, 1, deadline,
                      [this, name = control.name,
                       done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
                        Status status = replies.ok() ? AsLoraStatus(*replies) : replies.status();
                        if (status.ok()) {
                          adapters_.Remove(name);
                        } else {
                          adapters_.KeepAfterAll(name);
                        }
                        done(status);
                      });
}

}  // namespace portico::sglang
