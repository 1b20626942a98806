#include "template/chat_template.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>

#include "tokenizer.h"
#include "tokenizer/load/tokenizer_config.h"

namespace portico::python {
namespace {

class PyChatTemplate {
 public:
  PyChatTemplate(NamedTexts templates, NamedTexts special_tokens)
      : templates_(std::move(templates)), special_tokens_(std::move(special_tokens)) {
    chat_ = Take(ChatTemplate::FromTemplates(templates_, special_tokens_));
  }

  const ChatTemplate& chat() const { return *chat_; }
  const NamedTexts& templates() const { return templates_; }
  const NamedTexts& special_tokens() const { return special_tokens_; }

 private:
  NamedTexts templates_;
  NamedTexts special_tokens_;
  std::shared_ptr<const ChatTemplate> chat_;
};

NamedTexts TextsOf(nb::handle dict) {
  NamedTexts out;
  if (dict.is_none()) return out;
  for (auto [name, text] : nb::cast<nb::dict>(dict)) {
    if (text.is_none()) continue;
    out.emplace_back(TextOf(name, "a name"), TextOf(text, "a text"));
  }
  return out;
}

nb::dict DictOf(const NamedTexts& texts) {
  nb::dict out;
  for (const auto& [name, text] : texts) out[ToStr(name)] = ToStr(text);
  return out;
}

// The templates and the special tokens of a folder.
nb::tuple TemplatesOfFolder(const std::string& path) {
  TokenizerConfig config = Take(LoadTokenizerConfig(path));
  if (config.chat_templates.empty()) {
    Raise(Error(StatusCode::kNotFound, "there is no chat template in " + path));
  }
  return nb::make_tuple(DictOf(config.chat_templates), DictOf(config.NamedSpecialTokens()));
}

std::string RenderText(const PyChatTemplate& self, nb::handle conversation, nb::handle tools,
                       nb::handle documents, nb::handle chat_template, bool add_generation_prompt,
                       nb::handle continue_final_message, nb::handle variables,
                       std::vector<std::pair<size_t, size_t>>* spans) {
  Json messages = JsonOf(conversation);
  Json tool_list = JsonOf(tools);
  Json document_list = JsonOf(documents);
  Json kwargs = JsonOf(variables);
  ChatTemplate::Request request;
  request.messages = &messages;
  request.tools = &tool_list;
  request.documents = &document_list;
  request.kwargs = kwargs.is_null() ? nullptr : &kwargs;
  request.add_generation_prompt = add_generation_prompt;
  if (!chat_template.is_none()) request.chat_template = TextOf(chat_template, "chat_template");
  if (PyUnicode_Check(continue_final_message.ptr())) {
    request.continue_final_message = true;
    request.continue_field = TextOf(continue_final_message, "continue_final_message");
  } else {
    request.continue_final_message = nb::cast<bool>(continue_final_message);
  }
  request.options.generation_spans = spans;
  StatusOr<std::string> text = std::string();
  size_t messages_count = messages.is_array() ? messages.as_array().size() : 1;
  Unlocked(messages_count * 64, [&] { text = self.chat().Render(request); });
  return Take(std::move(text));
}

nb::object Render(const PyChatTemplate& self, nb::handle conversation, nb::handle tools,
                  nb::handle documents, nb::handle chat_template, bool add_generation_prompt,
                  nb::handle continue_final_message, nb::handle variables) {
  return ToStr(RenderText(self, conversation, tools, documents, chat_template,
                          add_generation_prompt, continue_final_message, variables, nullptr));
}

nb::tuple RenderSpans(const PyChatTemplate& self, nb::handle conversation, nb::handle tools,
                      nb::handle documents, nb::handle chat_template, bool add_generation_prompt,
                      nb::handle continue_final_message, nb::handle variables) {
  std::vector<std::pair<size_t, size_t>> spans;
  std::string text = RenderText(self, conversation, tools, documents, chat_template,
                                add_generation_prompt, continue_final_message, variables, &spans);
  nb::list list;
  for (auto [from, to] : spans) list.append(nb::make_tuple(from, to));
  return nb::make_tuple(ToStr(text), list);
}

template <typename Function>
void DefineRender(nb::class_<PyChatTemplate>& chat, const char* name, Function function) {
  chat.def(name, function, nb::arg("conversation"), nb::arg("tools") = nb::none(),
           nb::arg("documents") = nb::none(), nb::arg("chat_template") = nb::none(),
           nb::arg("add_generation_prompt") = false, nb::arg("continue_final_message") = false,
           nb::arg("variables") = nb::none());
}

}  // namespace

void BindChatTemplate(nb::module_& module) {
  auto chat = nb::class_<PyChatTemplate>(module, "ChatTemplate");
  chat.def(
          "__init__",
          [](PyChatTemplate* self, nb::handle chat_template, nb::handle special_tokens) {
            NamedTexts templates;
            if (PyUnicode_Check(chat_template.ptr())) {
              templates.emplace_back("default", TextOf(chat_template, "chat_template"));
            } else {
              templates = TextsOf(chat_template);
            }
            new (self) PyChatTemplate(std::move(templates), TextsOf(special_tokens));
          },
          nb::arg("chat_template"), nb::arg("special_tokens") = nb::none())
      .def_prop_ro("templates", [](const PyChatTemplate& self) { return DictOf(self.templates()); })
      .def_prop_ro("special_tokens_map",
                   [](const PyChatTemplate& self) { return DictOf(self.special_tokens()); })
      .def_prop_ro("content_is_list", [](const PyChatTemplate& self) {
        constexpr auto kUser = static_cast<size_t>(MessageKind::kUser);
        return self.chat().facts(/*with_tools=*/false).content[kUser].takes_parts;
      });
  module.def("templates_of_folder", &TemplatesOfFolder, nb::arg("path"));
  DefineRender(chat, "render", &Render);
  DefineRender(chat, "render_with_spans", &RenderSpans);
}

}  // namespace portico::python
