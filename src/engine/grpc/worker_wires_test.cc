// vLLM's protocol and SGLang's own, as messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/grpc/native_wire.h"
#include "engine/grpc/vllm_wire.h"
#include "sglang/runtime/v1/sglang.pb.h"
#include "vllm/grpc/engine/vllm_engine.pb.h"

namespace portico {
namespace {

namespace vllm = ::vllm::grpc::engine;
namespace native = ::sglang::runtime::v1;

GenerateRequest SomeRequest() {
  GenerateRequest request;
  request.stream = 9;
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{5, 6, 7});
  auto sampling = std::make_shared<SamplingParams>();
  sampling->seed = 40;
  request.sampling = sampling;
  request.max_new_tokens = 40;
  return request;
}

native::GenerateResponse Message(std::initializer_list<int32_t> ids, int total,
                                 std::string finish) {
  native::GenerateResponse response;
  for (const int32_t id : ids) response.add_output_ids(id);
  auto& meta = *response.mutable_meta_info();
  meta["completion_tokens"] = std::to_string(total);
  meta["prompt_tokens"] = "3";
  meta["finish_reason"] = std::move(finish);
  return response;
}

TEST(WorkerWiresTest, ChoicesOfARequestHaveSeedsOfTheirOwn) {
  GenerateRequest request = SomeRequest();
  for (request.choice = 0; request.choice < 2; ++request.choice) {
    std::string bytes;
    ASSERT_TRUE(VllmWire().EncodeGenerate(request, "r", &bytes).ok());
    vllm::GenerateRequest first;
    ASSERT_TRUE(first.ParseFromString(bytes));
    EXPECT_EQ(first.sampling_params().seed(), 40 + request.choice);
    EXPECT_EQ(first.sampling_params().top_k(), 0u) << "all, in their words";
    ASSERT_TRUE(NativeWire().EncodeGenerate(request, "r", &bytes).ok());
    native::GenerateRequest second;
    ASSERT_TRUE(second.ParseFromString(bytes));
    EXPECT_EQ(second.sampling_params().seed(), 40 + request.choice);
  }
}

// It was said of every answer that could have reasoning, and then no grammar held for one without.
TEST(WorkerWiresTest, AGrammarComesAfterReasoningOnlyWhereTheAnswerBeginsWithIt) {
  for (const auto& [start, end, behind] :
       {std::tuple(-1, 5, true), std::tuple(4, 5, false), std::tuple(-1, -1, false)}) {
    GenerateRequest request = SomeRequest();
    auto constraint = std::make_shared<Constraint>();
    constraint->kind = ConstraintKind::kRegex;
    constraint->text = "a+";
    constraint->think_start = start;
    constraint->think_end = end;
    request.constraint = std::move(constraint);
    std::string bytes;
    ASSERT_TRUE(NativeWire().EncodeGenerate(request, "r", &bytes).ok());
    native::GenerateRequest message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    EXPECT_EQ(message.require_reasoning(), behind) << start << " " << end;
  }
}

TEST(WorkerWiresTest, ARequestNamesItsRank) {
  GenerateRequest request = SomeRequest();
  auto extras = std::make_shared<RequestExtras>();
  extras->data_parallel_rank = 0;
  request.extras = std::move(extras);
  std::string bytes;
  ASSERT_TRUE(VllmWire().EncodeGenerate(request, "r", &bytes).ok());
  vllm::GenerateRequest first;
  ASSERT_TRUE(first.ParseFromString(bytes));
  EXPECT_TRUE(first.has_data_parallel_rank());
  ASSERT_TRUE(NativeWire().EncodeGenerate(request, "r", &bytes).ok());
  native::GenerateRequest second;
  ASSERT_TRUE(second.ParseFromString(bytes));
  EXPECT_TRUE(second.has_routed_dp_rank());
  native::GetLoadResponse loads;
  loads.set_json_info(R"([{"dp_rank":0,"num_reqs":3},{"dp_rank":1,"num_reqs":5}])");
  EXPECT_EQ(NativeWire().DecodeLoads(loads.SerializeAsString(), 1)->running, 5);
  EXPECT_EQ(NativeWire().DecodeLoads(loads.SerializeAsString(), -1)->running, 8);
}

TEST(WorkerWiresTest, ARequestForAPairIsRefusedWhereItsRoomCannotBeSaid) {
  GenerateRequest request = SomeRequest();
  auto extras = std::make_shared<RequestExtras>();
  extras->bootstrap_room = 7;
  request.extras = std::move(extras);
  std::string bytes;
  EXPECT_EQ(FieldOf(VllmWire().EncodeGenerate(request, "r", &bytes)), "bootstrap_room");
  EXPECT_EQ(FieldOf(NativeWire().EncodeGenerate(request, "r", &bytes)), "bootstrap_room");
  EXPECT_FALSE(VllmWire().takes_pairs() || NativeWire().takes_pairs());
}

TEST(WorkerWiresTest, TokensSoFarAndNewTokensAreToldApartByTheirCount) {
  for (const bool cumulative : {true, false}) {
    const NativeWire wire;
    StreamProgress progress;
    TokenDelta first;
    TokenDelta last;
    const auto more = cumulative ? Message({1, 2, 3}, 3, R"({"type":"stop","matched":3})")
                                 : Message({3}, 3, R"({"type":"stop","matched":3})");
    ASSERT_TRUE(
        wire.DecodeGenerate(Message({1, 2}, 2, "null").SerializeAsString(), &progress, &first)
            .ok());
    ASSERT_TRUE(wire.DecodeGenerate(more.SerializeAsString(), &progress, &last).ok());
    EXPECT_EQ(first.tokens.size(), 2u);
    EXPECT_EQ(first.finish, FinishReason::kNone);
    ASSERT_EQ(last.tokens.size(), 1u);
    EXPECT_EQ(last.matched_token, 3);
    EXPECT_EQ(last.finish, FinishReason::kStop);
    EXPECT_EQ(last.usage.prompt_tokens, 3);
  }
}

// Such figures were made integers that they do not fit in.
TEST(WorkerWiresTest, WhatIsNoCountOfANativeWorkerIsNotCounted) {
  native::GetLoadResponse loads;
  loads.set_json_info(
      R"([{"num_running_reqs":-5,"num_reqs":3,"num_waiting_reqs":1,"num_used_tokens":1e300,)"
      R"("num_tokens":7,"max_total_num_tokens":1e19}])");
  const auto load = NativeWire().DecodeLoads(loads.SerializeAsString(), -1);
  ASSERT_TRUE(load.ok()) << MessageOf(load.status());
  EXPECT_EQ(load->running, 2);
  EXPECT_EQ(load->used_tokens, 7);
  EXPECT_EQ(load->total_tokens, 0);
}

TEST(WorkerWiresTest, NonsenseOfANativeWorkerIsAnError) {
  const NativeWire wire;
  auto unending = Message({1}, 1, "null");
  unending.set_finished(true);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), Message({1, 2}, 7, "null").SerializeAsString(),
        Message({1}, 1, "{").SerializeAsString(),
        Message({1}, 1, R"({"type":"magic"})").SerializeAsString(), unending.SerializeAsString()}) {
    StreamProgress progress;
    TokenDelta delta;
    EXPECT_FALSE(wire.DecodeGenerate(bytes, &progress, &delta).ok());
  }
}

TEST(WorkerWiresTest, LogProbabilitiesOfThePromptBeginWhereTheyWereAskedFor) {
  // vLLM gives all positions, whatever was asked for.
  vllm::GenerateResponse response;
  auto& logprobs = *response.mutable_chunk()->mutable_input_logprobs();
  for (uint32_t id = 0; id < 4; ++id) {
    logprobs.add_token_ids(id);
    logprobs.add_token_logprobs()->set_value(-static_cast<float>(id));
  }
  for (const int32_t start : {0, 1, 3}) {
    StreamProgress progress;
    progress.prompt_logprobs_start = start;
    TokenDelta delta;
    ASSERT_TRUE(VllmWire().DecodeGenerate(response.SerializeAsString(), &progress, &delta).ok());
    ASSERT_EQ(delta.prompt_logprobs.size(), static_cast<size_t>(4 - std::max(1, start)));
    EXPECT_EQ(delta.prompt_logprobs[0].chosen.token, std::max(1, start));
  }
}

TEST(WorkerWiresTest, ControlsThatAProtocolLacksAreRefused) {
  EXPECT_TRUE(VllmWire().EncodeControl(FlushCacheControl{}).ok());
  EXPECT_EQ(VllmWire().EncodeControl(PauseControl{}).status().code(),
            StatusCode::kFailedPrecondition);
  const auto pause = NativeWire().EncodeControl(PauseControl{.mode = PauseMode::kRetract});
  ASSERT_TRUE(pause.ok());
  native::PauseGenerationRequest message;
  ASSERT_TRUE(message.ParseFromString(pause->request));
  EXPECT_EQ(message.mode(), "retract");
  // The fields that a message lacks, too: they were left out, and the answer was success.
  const auto field = [](const EngineControl& control) {
    return FieldOf(NativeWire().EncodeControl(control).status());
  };
  UpdateWeightsControl update;
  update.path = "/x";
  EXPECT_TRUE(NativeWire().EncodeControl(update).ok());
  update.abort_requests = true;
  EXPECT_EQ(field(update), "abort_all_requests");
  update.abort_requests = update.flush_cache = false;
  EXPECT_EQ(field(update), "flush_cache");
  update.flush_cache = true;
  update.others = {{"token_step", "3"}};
  EXPECT_EQ(field(update), "token_step");
  StartProfileControl profile;
  profile.output_dir = "/x";
  EXPECT_TRUE(NativeWire().EncodeControl(profile).ok());
  profile.num_steps = 3;
  EXPECT_EQ(field(profile), "num_steps");
  native::FlushCacheResponse refused;
  refused.set_message("busy");
  const Status status =
      NativeWire().DecodeControl(FlushCacheControl{}, refused.SerializeAsString());
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(status), "busy");
}

}  // namespace
}  // namespace portico
