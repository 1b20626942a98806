// What a chat template does with a conversation, found out by rendering small whole ones when it is loaded
// (probe_template.h): what fit_conversation.h goes by.
#pragma once

#include <array>
#include <cstdint>

#include "template/message_kind.h"
#include "text/json.h"

namespace portico {

// What becomes of something in the prompt.
enum class Shown : uint8_t {
  kUnknown,  // not found out
  kYes,
  kNo,            // left out without a word
  kRefused,       // the template fails
  kHidesAnother,  // a system message that is shown, for which an earlier one is left out
};

// How the content of a kind of message has to be.
struct ContentForm {
  bool text_is_part = false;  // a text is shown only as a list of one part
  bool takes_parts = false;   // all parts of a list of texts are shown, and as text
  bool takes_images = false;  // also {"type": "image"} among them
  bool takes_videos = false;  // and {"type": "video"}
  bool takes_audio = false;   // and {"type": "audio"}
};

// The content of an assistant's message that has calls and no text: an empty text, in its form.
enum class EmptyContent : uint8_t { kText, kNull, kAbsent };

// Text and calls in one message.
enum class TextWithCalls : uint8_t {
  kTogether,
  kApart,  // shown as two messages
  kNever,
};

struct TemplateFacts {
  std::array<ContentForm, kMessageKinds> content;

  // A system or developer message that comes first, by who speaks last in the conversation; and where no user speaks.
  Shown leading[2][kSpeakers] = {};
  Shown leading_without_user[2][kSpeakers] = {};
  // Two of them, one after the other.
  Shown leading_pairs[2][2] = {};
  // Any other message: its kind, who spoke before, whether a user speaks after it, whether another system or developer
  // message was before it.
  Shown places[kMessageKinds][kSpeakers][2][2] = {};

  EmptyContent empty_content = EmptyContent::kText;
  // By whether another message with calls came before, and whether a message of the assistant without calls follows.
  TextWithCalls text_with_calls[2][2] = {};
  bool arguments_are_text = false;   // of calls: not an object
  bool calls_are_functions = false;  // name and arguments of a call also beside its "function"
  bool tool_needs_name = false;      // a tool's message says which tool it was
  Shown parallel_calls = Shown::kUnknown;
  Shown function_call = Shown::kUnknown;  // the old form of a call

  bool no_tools_are_a_list = false;  // an empty one, not none
  bool tools_are_functions = false;  // offered without {"type", "function"} around them
  Shown tools = Shown::kUnknown;
};

// For operators.
Json DescribeFacts(const TemplateFacts& facts);

}  // namespace portico
