// What transformers' apply_chat_template does around a chat template: the choice among named
// templates, the variables that a template sees, clean-up of messages, and continue_final_message.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "base/status.h"
#include "template/template.h"
#include "template/template_facts.h"
#include "text/json.h"

namespace portico {

// Name and text. Special tokens: {"bos_token", "<s>"}, …
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Immutable and safe to use from any thread.
class ChatTemplate {
 public:
  struct Request {
    const Json* messages = nullptr;    // array of objects; required
    const Json* tools = nullptr;       // array of objects; nullptr or null: none
    bool no_tools_are_a_list = false;  // where there are none, the template gets an empty list
    const Json* documents = nullptr;   // array of objects; nullptr or null: none
    bool add_generation_prompt = true;
    // Continue the last message instead of closing it: the text ends where its field
    // `continue_field` does.
    bool continue_final_message = false;
    std::string continue_field = "content";
    // A content that is null stays null; else it is as if it were not there, as in transformers.
    bool keep_null_content = false;
    const Json* kwargs =
        nullptr;  // chat_template_kwargs: object of further variables, which win; or nullptr
    // The name of a template, or a template's own text; empty: chosen as transformers does.
    std::string chat_template;
    RenderOptions options;
  };

  // One template, named "default".
  static StatusOr<std::shared_ptr<const ChatTemplate>> FromSource(std::string source,
                                                                  NamedTexts special_tokens);
  // Templates by name ("default", "tool_use", "rag", …), which may be none where every request brings
  // its own. All are parsed now.
  static StatusOr<std::shared_ptr<const ChatTemplate>> FromTemplates(NamedTexts templates,
                                                                     NamedTexts special_tokens);

  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // INVALID_ARGUMENT (field "messages", "tools", "documents", "chat_template" or
  // "continue_final_message") for a request that cannot be rendered; else the errors of
  // Template::Render().
  StatusOr<std::string> Render(const Request& request) const;

  // The template that a request gets: by name, or its own, or "tool_use" where it has tools and there
  // is one, or "default".
  StatusOr<std::shared_ptr<const Template>> Choose(const Request& request) const;

  // What the template that a request gets, with tools or without, does with conversations. Found out by the first
  // call.
  const TemplateFacts& facts(bool with_tools) const;

 private:
  ChatTemplate();

  std::vector<std::pair<std::string, std::shared_ptr<const Template>>> templates_;
  std::vector<std::pair<std::string, Json>> special_tokens_;
  mutable absl::once_flag probed_[2];
  mutable TemplateFacts facts_[2];  // without tools and with them
};

}  // namespace portico
