#include "api/common/prompt_field.h"

#include <fmt/format.h>

namespace portico::api {
namespace {

using Prompts = std::vector<CompletionRequest::Prompt>;

std::string_view TextOf(PromptForms forms) {
  switch (forms) {
    case PromptForms::kTexts:
      return "a string or a list of strings";
    case PromptForms::kIds:
      return "a list of token ids or a list of lists of token ids";
    case PromptForms::kAny:
      break;
  }
  return "a string, a list of strings, a list of token ids or a list of lists of token ids";
}

Status ReadItem(std::string_view name, const std::string& place, Element item, Prompts* prompts) {
  CompletionRequest::Prompt prompt;
  std::string_view text;
  if (!item.get(text)) {
    prompt.text = text;
  } else {
    prompt.is_ids = true;
    PORTICO_RETURN_IF_ERROR(ReadTokenIds(name, place, item, &prompt.ids));
  }
  prompts->push_back(std::move(prompt));
  return OkStatus();
}

}  // namespace

size_t CountPrompts(const std::vector<LeftOutMember>& left_out, std::string_view name) {
  size_t prompts = 1;
  for (const LeftOutMember& member : left_out) {
    // The last of doubled ones counts.
    if (member.name != name) continue;
    prompts = member.first == '"' || member.first == '[' ? member.items : 1;
  }
  return prompts;
}

Status ReadPrompts(std::string_view name, Element value, PromptForms forms, Prompts* prompts,
                   bool* is_list, size_t max) {
  const bool texts = forms != PromptForms::kIds;
  const bool ids = forms != PromptForms::kTexts;
  *is_list = false;
  if (texts && value.is_string()) return ReadItem(name, std::string(name), value, prompts);
  simdjson::dom::array items;
  if (value.get(items)) return WrongValue(name, TextOf(forms), value);
  if (items.size() == 0) {
    return InvalidArgument(name, fmt::format("{} must not be an empty list", name));
  }
  const Element first = *items.begin();
  if (ids && first.is_number()) return ReadItem(name, std::string(name), value, prompts);
  const std::string start = fmt::format("{}[0]", name);
  if (!(texts && first.is_string()) && !(ids && first.is_array())) {
    return WrongValueAt(name, start,
                        !ids     ? "a string"
                        : !texts ? "a token id or a list of token ids"
                                 : "a string, a token id or a list of token ids",
                        first);
  }
  *is_list = true;
  for (Element item : items) {
    const std::string place = fmt::format("{}[{}]", name, prompts->size());
    if (item.type() != first.type()) {
      return WrongValueAt(
          name, place,
          fmt::format("{} like {}", first.is_string() ? "a string" : "a list of token ids", start),
          item);
    }
    if (prompts->size() == max) {
      return InvalidArgument(name, fmt::format("{} must hold at most {} prompts", name, max));
    }
    PORTICO_RETURN_IF_ERROR(ReadItem(name, place, item, prompts));
  }
  return OkStatus();
}

}  // namespace portico::api
