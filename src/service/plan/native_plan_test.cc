#include "service/plan/native_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/idle_engine_for_test.h"
#include "service/plan/plan.h"

namespace portico {
namespace {

class PlanNativeTest : public testing::Test {
 protected:
  PlanNativeTest() {
    EngineInfo info;
    info.vocab_size = 8;
    info.context_length = 20;
    info.can.logprobs = info.can.prompt_logprobs = true;
    model_.engine = std::make_unique<IdleEngine>(std::move(info));
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
        R"("decoder":null,"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"u","vocab":{"u":0,"a":1,"b":2,"c":3}}})");
    model_.defaults.temperature = 0.3f;
  }

  static NativeGenerateRequest Texts(std::vector<std::string> texts) {
    NativeGenerateRequest request;
    request.is_batch = true;
    for (std::string& text : texts) request.prompts.emplace_back().text = std::move(text);
    return request;
  }
  static NativeGenerateRequest Text(std::string text) {
    NativeGenerateRequest request = Texts({std::move(text)});
    request.is_batch = false;
    return request;
  }
  StatusOr<NativePlan> Plan(const NativeGenerateRequest& request) {
    return PlanNative(model_, request, [] {
      static int last = 0;
      return "made" + std::to_string(++last);
    });
  }
  std::string FieldAtFault(const NativeGenerateRequest& request) {
    auto plan = Plan(request);
    return plan.ok() ? "nothing" : FieldOf(plan.status());
  }

  ServingModel model_;
};

TEST_F(PlanNativeTest, ATextThatTheTokenizerCannotTakeIsRefusedWithItsReason) {
  model_.tokenizer =
      *Tokenizer::FromJson(R"({"model":{"type":"WordLevel","unk_token":"u","vocab":{"a":0}}})");
  const auto plan = Plan(Text("b"));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(FieldOf(plan.status()), "text");
  EXPECT_NE(MessageOf(plan.status()).find("UNK"), std::string_view::npos) << plan.status();
}

TEST_F(PlanNativeTest, ASinglePromptTakesSglangsDefaultsAndNotTheModels) {
  auto plan = Plan(Text("a b"));
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->is_list);
  EXPECT_EQ(plan->prompts[0].sampling->temperature, 1.0f);
  EXPECT_EQ(*plan->prompts[0].prompts[0].ids, (std::vector<TokenId>{1, 2}));
  // 128, cut to what the context of 20 leaves.
  EXPECT_EQ(plan->prompts[0].prompts[0].max_new_tokens, 18);
}

TEST_F(PlanNativeTest, AGivenMaximumThatDoesNotFitIsRefused) {
  NativeGenerateRequest request = Text("a b");
  NativeSampling& sampling = request.sampling.values.emplace_back();
  sampling.default_limit = false;
  sampling.options.max_tokens = 19;
  EXPECT_FALSE(Plan(request).ok());
  sampling.options.max_tokens = 18;
  EXPECT_TRUE(Plan(request).ok());
}

TEST_F(PlanNativeTest, TheAnswersOfABatchWithNChoicesRunOverTheWholeListNTimes) {
  NativeGenerateRequest request = Texts({"a", "b", "c"});
  request.sampling.values.emplace_back().options.n = 2;
  auto plan = Plan(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->is_list);
  EXPECT_EQ(plan->answers(), 6u);
  EXPECT_EQ(plan->AnswerOf(2, 0), 2u);
  EXPECT_EQ(plan->AnswerOf(0, 1), 3u);
}

TEST_F(PlanNativeTest, ASingleNameForABatchIsNumbered) {
  NativeGenerateRequest request = Texts({"a", "b"});
  request.rid.values = {"r"};
  auto plan = Plan(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->prompts[0].options.rid, "r_0");
  EXPECT_EQ(plan->prompts[1].options.rid, "r_1");
}

TEST_F(PlanNativeTest, ListsMustHaveOneEntryAPrompt) {
  NativeGenerateRequest rid = Texts({"a", "b"});
  rid.rid = {{"r"}, true};
  EXPECT_EQ(FieldAtFault(rid), "rid");
  NativeGenerateRequest sampling = Texts({"a", "b"});
  sampling.sampling.values.resize(3);
  sampling.sampling.is_list = true;
  EXPECT_EQ(FieldAtFault(sampling), "sampling_params");
  NativeGenerateRequest logprob = Texts({"a", "b"});
  logprob.return_logprob = {{true}, true};
  EXPECT_EQ(FieldAtFault(logprob), "return_logprob");
}

TEST_F(PlanNativeTest, NamesMustDiffer) {
  NativeGenerateRequest request = Texts({"a", "b"});
  request.rid = {{"r", "r"}, true};
  EXPECT_EQ(FieldAtFault(request), "rid");
  EXPECT_EQ(Plan(request).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Plan(request).status().message(), "rid r is given to two prompts of this request");
}

TEST_F(PlanNativeTest, AllPromptsOfABatchHaveTheSameN) {
  NativeGenerateRequest request = Texts({"a", "b"});
  request.sampling.values.resize(2);
  request.sampling.is_list = true;
  request.sampling.values[1].options.n = 2;
  EXPECT_EQ(FieldAtFault(request), "sampling_params");
}

TEST_F(PlanNativeTest, ListsOfLogprobValuesDoNotGoWithSeveralChoices) {
  NativeGenerateRequest request = Texts({"a", "b"});
  request.sampling.values.emplace_back().options.n = 2;
  request.return_logprob = {{true, true}, true};
  EXPECT_EQ(FieldAtFault(request), "return_logprob");
}

TEST_F(PlanNativeTest, PromptsTimesChoicesAreBounded) {
  NativeGenerateRequest request = Texts(std::vector<std::string>(64, "a"));
  NativeSampling& sampling = request.sampling.values.emplace_back();
  sampling.options.n = 64;
  EXPECT_TRUE(Plan(request).ok());
  sampling.options.n = 65;
  EXPECT_EQ(FieldAtFault(request), "sampling_params");
}

// All texts were tokenized before.
TEST_F(PlanNativeTest, LogProbabilitiesThatTheEngineLacksAreRefusedBeforeAnyTextIsTokenized) {
  model_.tokenizer =
      *Tokenizer::FromJson(R"({"model":{"type":"WordLevel","unk_token":"u","vocab":{"a":0}}})");
  const auto set_capabilities = [this](bool of_answers, bool of_prompts) {
    EngineInfo info = model_.engine->info();
    info.can.logprobs = of_answers;
    info.can.prompt_logprobs = of_prompts;
    model_.engine = std::make_unique<IdleEngine>(std::move(info));
  };
  NativeGenerateRequest native = Texts({"b", "b"});
  native.return_logprob = {{false, true}, true};
  CompletionRequest completion;
  completion.prompts = native.prompts;
  completion.options.logprobs = true;
  completion.options.max_tokens = 1;
  ChatRequest chat;  // no template takes it
  chat.options.logprobs = true;
  const auto field_of = [](const auto& plan) { return FieldOf(plan.status()); };

  set_capabilities(false, false);
  EXPECT_EQ(FieldAtFault(native), "return_logprob");
  EXPECT_EQ(field_of(PlanCompletion(model_, completion)), "logprobs");
  EXPECT_EQ(field_of(PlanChat(model_, ChatRequest(chat))), "logprobs");
  set_capabilities(true, false);
  EXPECT_EQ(FieldAtFault(native), "text[0]");
  EXPECT_EQ(field_of(PlanCompletion(model_, completion)), "prompt");
  EXPECT_EQ(field_of(PlanChat(model_, ChatRequest(chat))), "messages");
  native.logprob_start_len.values = {0};
  completion.echo = true;
  EXPECT_EQ(FieldAtFault(native), "return_logprob");
  EXPECT_EQ(field_of(PlanCompletion(model_, completion)), "logprobs");
  set_capabilities(true, true);
  EXPECT_EQ(FieldAtFault(native), "text[0]");
  EXPECT_EQ(field_of(PlanCompletion(model_, completion)), "prompt");
}

TEST_F(PlanNativeTest, ALogprobStartBehindThePromptIsRefused) {
  NativeGenerateRequest request = Text("a b");
  request.return_logprob.values = {true};
  request.logprob_start_len.values = {2};
  EXPECT_EQ(FieldAtFault(request), "logprob_start_len");
  request.logprob_start_len.values = {1};
  auto plan = Plan(request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->prompts[0].prompt_logprobs_start, 1);
}

TEST_F(PlanNativeTest, IdsOutsideTheVocabularyAndEmptyTextsNameTheirPlace) {
  NativeGenerateRequest ids = Texts({"a", ""});
  ids.prompt_field = "input_ids";
  ids.prompts[0].is_ids = ids.prompts[1].is_ids = true;
  ids.prompts[0].ids = {1};
  ids.prompts[1].ids = {99};
  EXPECT_EQ(FieldAtFault(ids), "input_ids[1]");
  EXPECT_EQ(FieldAtFault(Text("")), "text");
}

TEST_F(PlanNativeTest, MoreMinimumThanMaximumIsRefused) {
  NativeGenerateRequest request = Text("a");
  NativeSampling& sampling = request.sampling.values.emplace_back();
  sampling.default_limit = false;
  sampling.options.max_tokens = 2;
  sampling.options.min_tokens = 3;
  EXPECT_EQ(FieldAtFault(request), "min_new_tokens");
}

TEST_F(PlanNativeTest, ABatchTakesAllOfItsRidsOrNone) {
  ActiveRids rids;
  const auto batch = [this](std::vector<std::string> names) {
    NativeGenerateRequest request = Texts({"a", "b"});
    request.rid = {std::move(names), true};
    return *Plan(request);
  };
  NativePlan running = batch({"x", "y"});
  ASSERT_TRUE(TakeRids(rids, &running).ok());
  NativePlan refused = batch({"z", "y"});
  EXPECT_EQ(TakeRids(rids, &refused).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(rids.Take("z").ok());
  running.prompts.clear();
  EXPECT_TRUE(TakeRids(rids, &refused).ok());
}

// The work of a body was guessed from its bytes and quotes: thousands of prompts of ids were planned on a shard.
TEST_F(PlanNativeTest, ManyShortPromptsAreTooLongForAShard) {
  const auto too_long = [this](size_t prompts) {
    NativeGenerateRequest request;
    request.is_batch = true;
    request.prompts.resize(prompts, {.text = "", .ids = {1, 2}, .is_ids = true});
    StepGate gate = StepGate::OnShard();
    const auto plan = PlanNative(
        model_, request,
        [] {
          static int last = 0;
          return "one" + std::to_string(++last);
        },
        &gate);
    EXPECT_EQ(plan.ok(), !gate.too_long()) << plan.status();
    EXPECT_TRUE(Plan(request).ok());
    CompletionRequest completion;
    completion.prompts = request.prompts;
    StepGate another = StepGate::OnShard();
    const auto completed = PlanCompletion(model_, completion, &another);
    EXPECT_EQ(completed.ok(), !another.too_long()) << completed.status();
    EXPECT_EQ(another.too_long(), gate.too_long());
    return gate.too_long();
  };
  EXPECT_FALSE(too_long(1));
  EXPECT_FALSE(too_long(kShardWork / kPromptWork));
  EXPECT_TRUE(too_long(kShardWork / kPromptWork + 1));
}

// A template may write much more than it is given.
TEST_F(PlanNativeTest, AChatIsTooLongForAShardByWhatIsRenderedOrByWhatThatGives) {
  model_.chat_template =
      *ChatTemplate::FromSource("{% for m in messages %}{{ m.content * 100 }}{% endfor %}", {});
  const auto too_long = [this](size_t messages, size_t bytes) {
    std::string text = "[";
    for (size_t i = 0; i < messages; ++i) {
      if (i > 0) text += ',';
      text += R"({"role":"user","content":")" + std::string(bytes, 'a') + R"("})";
    }
    ChatRequest request;
    request.messages = *Json::Parse(text + "]");
    StepGate gate = StepGate::OnShard();
    StatusOr<std::string> rendered = RenderChat(model_, &request, &gate);
    if (rendered.ok()) (void)EncodeRendered(model_, *rendered, &gate);
    return gate.too_long();
  };
  EXPECT_FALSE(too_long(1, 1000));
  EXPECT_TRUE(too_long(1, 2000));
  EXPECT_FALSE(too_long(kShardWork / kMessageWork / 4, 1));
  EXPECT_TRUE(too_long(kShardWork / kMessageWork + 1, 0));
}

// A prompt of more than 4 MiB was encoded whole at each turn of its conversation.
TEST_F(PlanNativeTest, ALongConversationIsEncodedOnceToo) {
  model_.tokenizer = *Tokenizer::FromJson(
      R"({"added_tokens":[{"id":1,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,)"
      R"("normalized":false,"special":true}],"pre_tokenizer":{"type":"WhitespaceSplit"},)"
      R"("model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0}}})");
  model_.conversation_cache = std::make_shared<ConversationCache>(model_.tokenizer);
  model_.long_texts = std::make_shared<LongTextEncoder>(model_.tokenizer);
  std::string text;
  for (int i = 0; text.size() < size_t{5} << 20; ++i) {
    text += "<s>" + std::to_string(i) + std::string(2000, 'a');
  }
  const auto client = std::make_shared<char>();
  StepGate gate = StepGate::OnPool(client);
  const auto first = EncodeRendered(model_, text, &gate);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(model_.conversation_cache->reused_tokens(), 0u);
  EXPECT_EQ(*EncodeRendered(model_, text, &gate), *first);
  EXPECT_EQ(model_.conversation_cache->reused_tokens(), first->size() - 2);
  std::vector<TokenId> whole;
  ASSERT_TRUE(model_.tokenizer->TryEncode(text, false, &whole).ok());
  EXPECT_EQ(*first, whole);
}

TEST_F(PlanNativeTest, APlanEndsBeforeTheNextPromptWhenItsClientHasLeft) {
  auto client = std::make_shared<char>();
  StepGate gate = StepGate::OnPool(client);
  CompletionRequest request;
  request.prompts.resize(2, {.text = "a", .ids = {}, .is_ids = false});
  EXPECT_TRUE(PlanCompletion(model_, request, &gate).ok());
  client.reset();
  EXPECT_EQ(PlanCompletion(model_, request, &gate).status().code(), StatusCode::kCancelled);
}

// One text of 30 MB was one step: a client that had left kept a thread of the pool until its end.
TEST_F(PlanNativeTest, ALongTextIsEncodedInStepsOfItsOwn) {
  model_.long_texts = std::make_shared<LongTextEncoder>(model_.tokenizer, 4);
  CompletionRequest request;
  request.prompts.push_back({.text = "a a a a a a a a a a", .ids = {}, .is_ids = false});
  auto client = std::make_shared<char>();
  StepGate gate = StepGate::OnPool(client);
  const auto planned = PlanCompletion(model_, request, &gate);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(*planned->prompts[0].ids, *(*PlanCompletion(model_, request)).prompts[0].ids);
  client.reset();
  std::vector<TokenId> ids;
  EXPECT_EQ(EncodeText(model_, request.prompts[0].text, true, &gate, &ids).code(),
            StatusCode::kCancelled);
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(EncodePrompt(model_, request.prompts[0], "prompt", &gate).status().code(),
            StatusCode::kCancelled);
}

TEST_F(PlanNativeTest, MediaAreToldWhatTheirChoicesMayTake) {
  EngineInfo info = model_.engine->info();
  info.can.media[static_cast<size_t>(MediaKind::kImage)] = true;
  model_.engine = std::make_unique<IdleEngine>(std::move(info));
  model_.max_request_cost = 123456;
  NativeGenerateRequest request = Text("a b");
  request.sampling.values.emplace_back().options.n = 3;
  request.extras.values.emplace_back();
  AddMedia(std::vector<MediaItem>(1), &request.extras.values.front());
  const auto plan = Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->prompts[0].extras->media->choices, 3);
  EXPECT_EQ(plan->prompts[0].extras->media->max_made_bytes, 123456);
}

// Several are looked at in one step.
TEST(CheckIds, OneThatTheVocabularyLacksIsFoundAtEveryPlace) {
  for (size_t size = 1; size <= 17; ++size) {
    std::vector<TokenId> ids(size, 0);
    ids.back() = 99;
    EXPECT_TRUE(CheckIds(ids, 100, "prompt").ok());
    for (size_t at = 0; at < size; ++at) {
      for (const TokenId unknown : {100, -1, INT32_MAX, INT32_MIN}) {
        std::vector<TokenId> wrong = ids;
        wrong[at] = unknown;
        EXPECT_EQ(FieldOf(CheckIds(wrong, 100, "prompt")), "prompt");
      }
    }
  }
  EXPECT_TRUE(CheckIds({}, 0, "prompt").ok());
  EXPECT_FALSE(CheckIds({0}, 0, "prompt").ok());
}

}  // namespace
}  // namespace portico
