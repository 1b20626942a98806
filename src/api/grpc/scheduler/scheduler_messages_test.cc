#include "api/grpc/scheduler/scheduler_messages.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/common/long_prompt.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;

NativePlan PlanWithLogprobs(bool stream) {
  NativePlan plan;
  GenerationPlan prompt;
  prompt.options.rid = "r1";
  prompt.options.logprobs = true;
  prompt.prompts.push_back({std::make_shared<const std::vector<TokenId>>(2, 5), "", false, 8});
  plan.prompts.push_back(std::move(prompt));
  plan.n = 1;
  plan.stream = stream;
  return plan;
}

// So long that the lengths around it take several bytes.
PromptEcho LongEcho() {
  PromptEcho echo;
  for (TokenId id = 0; id < 300; ++id) {
    TextPositionLogprobs& position = echo.logprobs.emplace_back();
    position.chosen.token = id;
    if (id == 0) continue;
    position.chosen.logprob = -0.5f * static_cast<float>(id);
    position.top = {{id + 1, "", "", -0.25f}, {id + 2, "", "", -0.75f}};
  }
  return echo;
}

std::vector<pb::GenerateResponse> Give(SchedulerMessages& messages, const TextDelta& delta) {
  std::vector<pb::GenerateResponse> given;
  std::string scratch;
  messages.OnDelta(delta, &scratch, [&](std::string_view bytes) {
    EXPECT_TRUE(given.emplace_back().ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    EXPECT_TRUE(given.back().GetReflection()->GetUnknownFields(given.back()).empty());
  });
  EXPECT_TRUE(scratch.empty());
  return given;
}

TextDelta TokenOf(TokenId token, FinishReason finish) {
  TextDelta delta;
  delta.tokens.push_back(token);
  delta.logprobs.emplace_back().chosen = {token, "", "", -1.5f};
  delta.finish = finish;
  delta.usage = {2, 1, 1};
  return delta;
}

void ExpectPrompt(const pb::InputLogProbs& input) {
  ASSERT_EQ(input.token_ids_size(), 300);
  ASSERT_EQ(input.token_logprobs_size(), 300);
  ASSERT_EQ(input.top_logprobs_size(), 299);
  EXPECT_FALSE(input.token_logprobs(0).has_value());
  EXPECT_EQ(input.token_logprobs(299).value(), -149.5f);
  EXPECT_EQ(input.token_ids(299), 299u);
  EXPECT_EQ(input.top_logprobs(298).token_ids(1), 301u);
  EXPECT_EQ(input.top_logprobs(298).values(0), -0.25f);
}

TEST(SchedulerMessages, ThePromptIsInTheFirstChunkAndInTheWholeAnswer) {
  for (const bool elsewhere : {false, true}) {
    SchedulerMessages messages(PlanWithLogprobs(/*stream=*/true));
    if (elsewhere) {
      PromptEncoder encode = LongPromptEncoderOf(&messages);
      PromptTaken taken;
      std::thread([&] { taken = encode(LongEcho()); }).join();
      taken();
    } else {
      messages.OnPrompt(LongEcho());
    }
    std::vector<pb::GenerateResponse> given = Give(messages, TokenOf(7, FinishReason::kNone));
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].request_id(), "r1");
    EXPECT_EQ(given[0].chunk().token_ids(0), 7u);
    EXPECT_EQ(given[0].chunk().output_logprobs().token_logprobs(0), -1.5f);
    ExpectPrompt(given[0].chunk().input_logprobs());

    given = Give(messages, TokenOf(8, FinishReason::kLength));
    ASSERT_EQ(given.size(), 2u);
    EXPECT_FALSE(given[0].chunk().has_input_logprobs());
    EXPECT_EQ(given[1].request_id(), "r1");
    EXPECT_EQ(given[1].complete().output_ids_size(), 2);
    EXPECT_EQ(given[1].complete().finish_reason(), "length");
    ExpectPrompt(given[1].complete().input_logprobs());
    EXPECT_TRUE(messages.ended());
  }
}

TEST(SchedulerMessages, WithoutAPromptThereIsNothingOfIt) {
  SchedulerMessages messages(PlanWithLogprobs(/*stream=*/false));
  const std::vector<pb::GenerateResponse> given = Give(messages, TokenOf(7, FinishReason::kLength));
  ASSERT_EQ(given.size(), 1u);
  EXPECT_FALSE(given[0].complete().has_input_logprobs());
  EXPECT_EQ(given[0].complete().output_logprobs().token_ids(0), 7u);
}

}  // namespace
}  // namespace portico::api::rpc
