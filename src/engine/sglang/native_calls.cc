// Sessions, and what operators ask of SGLang alone.
#include <fmt/format.h>

#include <utility>

#include "engine/sglang/engine_state.h"
#include "engine/sglang/native_rules.h"
#include "engine/sglang/wire/json_values.h"

namespace portico::sglang {
namespace {

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
  const auto json = Json::Parse(call.fields);
  if (!json.ok()) return done(json.status());
  auto read = FieldsOfJson(*layout, *json);
  if (!read.ok()) return done(read.status());
  Value fields(*std::move(read));
  // Before anything is aborted.
  for (const Field& field : layout->fields) {
    if (field.required && fields.Find(field.name) == nullptr) {
      return done(InvalidArgument(field.name, fmt::format("{} is required", field.name)));
    }
  }
  if (Status bad = CheckNativeCall(call.message, fields, (*life)->facts); !bad.ok()) {
    return done(std::move(bad));
  }
  auto answer = [to = call.replies,
                 done = std::move(done)](StatusOr<SchedulerLink::Replies> got) mutable {
    if (!got.ok()) return done(got.status());
    for (const Message& reply : *got) to->Add(JsonOfReply(reply));
    done(OkStatus());
  };
  if (call.message == "ReleaseMemoryOccupationReqInput" ||
      call.message == "ResumeMemoryOccupationReqInput") {
    return MoveMemory(*life, *layout, std::move(fields), deadline, std::move(answer));
  }
  if (AbortsRequests(*layout, fields)) (*life)->AbortStreams();
  const size_t replies = call.replies_expected ? static_cast<size_t>((*life)->facts.ranks) : 0;
  const SchedulerLink::Terms terms = TermsOfNativeCall(*layout, fields);
  (*life)->link->Call(call.message, std::move(fields), replies, deadline, std::move(answer), terms);
}

void SglangEngine::MoveMemory(const LifePtr& life, const StructLayout& layout, Value fields,
                              TimePoint deadline, SchedulerLink::ControlAnswer done) {
  ReleasedMemory::Tags tags;
  const Value* named = fields.Find("tags");
  if (const List* list = named == nullptr ? nullptr : named->As<List>(); list != nullptr) {
    for (const Value& each : *list) {
      if (const auto* text = each.As<std::string>(); text != nullptr) tags.push_back(*text);
    }
  }
  tags = ReleasedMemory::AllIfEmpty(std::move(tags));
  const bool releases = layout.name == "ReleaseMemoryOccupationReqInput";
  const Status noted = releases ? released_.Release(tags) : released_.Resume(tags);
  if (!noted.ok()) return done(noted);
  if (releases) life->link->SetUsable(false);
  const SchedulerLink::Terms terms = TermsOfNativeCall(layout, fields);
  life->link->Call(
      layout.name, std::move(fields), static_cast<size_t>(life->facts.ranks), deadline,
      [this, life, releases, tags = std::move(tags),
       done = std::move(done)](StatusOr<SchedulerLink::Replies> got) mutable {
        // A release that has come too late for its answer may have been done.
        if (releases && !got.ok() && got.status().code() != StatusCode::kDeadlineExceeded) {
          released_.Resume(tags).IgnoreError();
        }
        life->link->SetUsable(!released_.Any());
        done(std::move(got));
      },
      terms);
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

}  // namespace portico::sglang
