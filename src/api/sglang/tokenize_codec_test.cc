#include "api/sglang/tokenize_codec.h"

#include <gtest/gtest.h>

#include "api/openai/chat/decode_chat.h"

namespace portico::api::sglang {
namespace {

StatusOr<TokenizeRequest> Tokenize(const std::string& body) {
  static simdjson::dom::parser parser;
  return DecodeTokenize(body, parser);
}

StatusOr<DetokenizeRequest> Detokenize(const std::string& body) {
  static simdjson::dom::parser parser;
  return DecodeDetokenize(body, parser);
}

TEST(TokenizeCodec, APromptIsATextOrAList) {
  auto one = Tokenize(R"({"prompt":"é","model":"m","add_special_tokens":false,"nobody":1})");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->prompts, std::vector<std::string>{"é"});
  EXPECT_EQ(one->model, "m");
  EXPECT_FALSE(one->is_list || one->is_chat || one->add_special_tokens);
  auto list = Tokenize(R"({"prompt":["a",""]})");
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(list->is_list && list->add_special_tokens);
  EXPECT_EQ(list->prompts.size(), 2u);
}

TEST(TokenizeCodec, MessagesAreAChat) {
  auto chat = Tokenize(R"({"messages":[{"role":"User","content":"Hi"}],
      "tools":[{"type":"function","function":{"name":"f"}}],"chat_template_kwargs":{"x":1}})");
  ASSERT_TRUE(chat.ok());
  EXPECT_TRUE(chat->is_chat && chat->prompts.empty());
  EXPECT_EQ(chat->chat.messages.Dump(), R"([{"role":"user","content":"Hi"}])");
  EXPECT_EQ(chat->chat.tool_choice.mode, ToolChoice::Mode::kAuto);
  EXPECT_EQ(chat->chat.chat_template_kwargs.Dump(), R"({"x":1})");
}

// It took continue_final_message, tool_choice and reasoning_effort, and applied none of them.
TEST(TokenizeCodec, FieldsThatShapeAChatsPromptAreReadAsInAChat) {
  auto chat = Tokenize(R"({"messages":[{"role":"user","content":"Q"},
      {"role":"assistant","content":"A"}],"continue_final_message":true,"tool_choice":"none",
      "tools":[{"type":"function","function":{"name":"f"}}],"documents":[{"text":"d"}],
      "reasoning_effort":"low","chat_template":null,"model":"m","add_special_tokens":false,
      "return_token_strs":true,"temperature":0.5})");
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_TRUE(chat->return_token_strs);
  EXPECT_TRUE(chat->chat.continue_final_message);
  EXPECT_EQ(chat->chat.tool_choice.mode, ToolChoice::Mode::kNone);
  EXPECT_EQ(chat->chat.documents.Dump(), R"([{"text":"d"}])");
  EXPECT_EQ(chat->chat.chat_template_kwargs.Dump(), R"({"reasoning_effort":"low"})");
  EXPECT_EQ(chat->model, "m");
  for (const char* field :
       {R"("tool_choice":"bogus")", R"("reasoning_effort":"bogus")", R"("chat_template":"x")",
        R"("continue_final_message":true)", R"("documents":7)", R"("functions":7)",
        R"("tools":[{"type":"function","function":{"name":"f"}},
           {"type":"function","function":{"name":"f"}}])"}) {
    const std::string body =
        std::string(R"({"messages":[{"role":"user","content":"Q"}],)") + field + "}";
    simdjson::dom::parser parser;
    const auto as_chat = openai::DecodeChat(body, parser);
    auto request = Tokenize(body);
    ASSERT_FALSE(request.ok() || as_chat.ok()) << field;
    EXPECT_EQ(request.status(), as_chat.status()) << field;
  }
}

TEST(TokenizeCodec, WrongFieldsAreNamed) {
  struct Case {
    const char* body;
    const char* param;
  };
  for (const Case& c :
       {Case{"{}", "prompt"}, Case{R"({"prompt":7})", "prompt"}, Case{R"({"prompt":[]})", "prompt"},
        Case{R"({"prompt":["a",7]})", "prompt"}, Case{R"({"prompt":[7]})", "prompt"},
        Case{R"({"prompt":"a","messages":[{"role":"user","content":"x"}]})", "prompt"},
        Case{R"({"messages":[]})", "messages"}, Case{R"({"prompt":"a","model":7})", "model"},
        Case{R"({"prompt":"a","add_special_tokens":1})", "add_special_tokens"},
        Case{R"({"prompt":"a","return_token_strs":1})", "return_token_strs"},
        Case{R"({"messages":[{"role":"user","content":"x"}],"tools":7})", "tools"},
        Case{R"({"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":7})",
             "chat_template_kwargs"},
        Case{"[]", ""}, Case{"{", ""}}) {
    auto request = Tokenize(c.body);
    ASSERT_FALSE(request.ok()) << c.body;
    EXPECT_EQ(FieldOf(request.status()), c.param) << c.body;
  }
  for (const Case& c :
       {Case{"{}", "tokens"}, Case{R"({"tokens":7})", "tokens"},
        Case{R"({"tokens":["a"]})", "tokens"}, Case{R"({"tokens":[-1]})", "tokens"},
        Case{R"({"tokens":[1.5]})", "tokens"}, Case{R"({"tokens":[[1],2]})", "tokens"},
        Case{R"({"tokens":[1,[2]]})", "tokens"},
        Case{R"({"tokens":[1],"skip_special_tokens":1})", "skip_special_tokens"}}) {
    auto request = Detokenize(c.body);
    ASSERT_FALSE(request.ok()) << c.body;
    EXPECT_EQ(FieldOf(request.status()), c.param) << c.body;
  }
}

TEST(TokenizeCodec, TokensAreAListOrListsOfThem) {
  auto one = Detokenize(R"({"tokens":[1,2],"skip_special_tokens":false})");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->tokens, (std::vector<std::vector<TokenId>>{{1, 2}}));
  EXPECT_FALSE(one->is_list || one->skip_special_tokens);
  auto lists = Detokenize(R"({"tokens":[[1],[]]})");
  ASSERT_TRUE(lists.ok());
  EXPECT_EQ(lists->tokens, (std::vector<std::vector<TokenId>>{{1}, {}}));
  EXPECT_TRUE(lists->is_list && lists->skip_special_tokens);
  EXPECT_EQ(Detokenize(R"({"tokens":[]})")->tokens.size(), 1u);
}

TEST(TokenizeCodec, RepliesFollowTheRequestsForm) {
  EXPECT_EQ(TokenizeBody({{1, 2}}, false, 99), R"({"tokens":[1,2],"count":2,"max_model_len":99})");
  EXPECT_EQ(TokenizeBody({{1, 2}, {}}, true, 99),
            R"({"tokens":[[1,2],[]],"count":[2,0],"max_model_len":99})");
  EXPECT_EQ(DetokenizeBody({"a\"é"}, false), R"({"text":"a\"é"})");
  EXPECT_EQ(DetokenizeBody({"a", "b"}, true), R"({"text":["a","b"]})");
}

}  // namespace
}  // namespace portico::api::sglang
