#include "template/template_facts.h"

namespace portico {
namespace {

const char* ShownText(Shown shown) {
  switch (shown) {
    case Shown::kUnknown:
      return "unknown";
    case Shown::kYes:
      return "shown";
    case Shown::kNo:
      return "left out";
    case Shown::kRefused:
      return "refused";
    case Shown::kHidesAnother:
      return "hides another";
  }
  return "";
}

Shown ShownAt(const TemplateFacts& facts, MessageKind kind, Speaker before, bool user_follows,
              bool system_before = false) {
  return facts
      .places[static_cast<size_t>(kind)][static_cast<size_t>(before)][user_follows][system_before];
}

const char* ContentText(const ContentForm& form) {
  if (form.takes_parts) return form.text_is_part ? "parts only" : "text or parts";
  return form.text_is_part ? "one part" : "text";
}

}  // namespace

Json DescribeFacts(const TemplateFacts& facts) {
  const Shown(&leading)[2][kSpeakers] = facts.leading;
  constexpr auto kUser = static_cast<size_t>(Speaker::kUser);
  JsonObject roles = {
      {"system", ShownText(leading[0][kUser])},
      {"developer", ShownText(leading[1][kUser])},
      {"user", ShownText(ShownAt(facts, MessageKind::kUser, Speaker::kNobody, false))},
      {"assistant", ShownText(ShownAt(facts, MessageKind::kAssistant, Speaker::kUser, true))},
      {"tool", ShownText(ShownAt(facts, MessageKind::kTool, Speaker::kCall, false))},
      {"function", ShownText(ShownAt(facts, MessageKind::kFunction, Speaker::kCall, false))},
      {"latest_reminder",
       ShownText(ShownAt(facts, MessageKind::kReminder, Speaker::kAssistant, true))},
  };
  const auto later = [&facts](MessageKind kind) {
    return ShownText(ShownAt(facts, kind, Speaker::kAssistant, true, /*system_before=*/true));
  };
  const auto repeated = [&facts](MessageKind kind, Speaker before) {
    return ShownText(ShownAt(facts, kind, before, false));
  };
  JsonObject sequences = {
      {"system, system", ShownText(facts.leading_pairs[0][0])},
      {"system, developer", ShownText(facts.leading_pairs[0][1])},
      {"developer, system", ShownText(facts.leading_pairs[1][0])},
      {"developer, developer", ShownText(facts.leading_pairs[1][1])},
      {"user, user", repeated(MessageKind::kUser, Speaker::kUser)},
      {"assistant, assistant", repeated(MessageKind::kAssistant, Speaker::kAssistant)},
      {"tool, tool", repeated(MessageKind::kTool, Speaker::kTool)},
      {"later system", later(MessageKind::kSystem)},
      {"later developer", later(MessageKind::kDeveloper)},
  };
  JsonObject content;
  JsonArray images, videos, audio;
  for (MessageKind kind : {MessageKind::kSystem, MessageKind::kDeveloper, MessageKind::kUser,
                           MessageKind::kAssistant, MessageKind::kTool}) {
    const ContentForm& form = facts.content[static_cast<size_t>(kind)];
    content.emplace_back(RoleOf(kind), ContentText(form));
    if (form.takes_images) images.push_back(RoleOf(kind));
    if (form.takes_videos) videos.push_back(RoleOf(kind));
    if (form.takes_audio) audio.push_back(RoleOf(kind));
  }
  constexpr const char* kEmpty[] = {"empty", "null", "absent"};
  const auto with_calls = [&facts](bool again, bool answered) {
    constexpr const char* kWithCalls[] = {"together", "apart", "left out"};
    return kWithCalls[static_cast<size_t>(facts.text_with_calls[again][answered])];
  };
  JsonObject with_text = {
      {"first", with_calls(false, false)},
      {"first, answered", with_calls(false, true)},
      {"again", with_calls(true, false)},
      {"again, answered", with_calls(true, true)},
  };
  JsonObject calls = {
      {"one", ShownText(ShownAt(facts, MessageKind::kCall, Speaker::kUser, false))},
      {"several", ShownText(facts.parallel_calls)},
      {"content", kEmpty[static_cast<size_t>(facts.empty_content)]},
      {"with_text", std::move(with_text)},
      {"arguments", facts.arguments_are_text ? "text" : "object"},
      {"form", facts.calls_are_functions ? "function" : "tool call"},
      {"function_call", ShownText(facts.function_call)},
  };
  JsonObject told = {
      {"roles", std::move(roles)},
      {"sequences", std::move(sequences)},
      {"content", std::move(content)},
      {"images", std::move(images)},
      {"videos", std::move(videos)},
      {"audio", std::move(audio)},
      {"tool_calls", std::move(calls)},
      {"tool_name", facts.tool_needs_name ? "needed" : "not needed"},
  };
  if (facts.no_tools_are_a_list) told.emplace_back("no_tools", "empty list");
  if (facts.tools == Shown::kYes) {
    told.emplace_back("tools", facts.tools_are_functions ? "as functions" : "as tools");
  } else if (facts.tools != Shown::kUnknown) {
    told.emplace_back("tools", ShownText(facts.tools));
  }
  return told;
}

}  // namespace portico
