// What the sinks of answers with prompts have in common (TextSink::LongPromptEncoder).
#pragma once

#include <utility>

#include "message/text_delta.h"

namespace portico::api {

// For a sink whose `answer` keeps the prompts:
//   Form prompt_form() const;             // a copy of what encoding needs
//   Encoded Form::operator()(PromptEcho) const;                  // pure
//   void TakePrompt(Encoded encoded);
template <typename Answer>
PromptEncoder LongPromptEncoderOf(Answer* answer) {
  return [answer, form = answer->prompt_form()](PromptEcho echo) -> PromptTaken {
    return [answer, encoded = form(std::move(echo))]() mutable {
      answer->TakePrompt(std::move(encoded));
    };
  };
}

}  // namespace portico::api
