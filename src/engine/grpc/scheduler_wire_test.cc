#include "engine/grpc/scheduler_wire.h"

#include <gtest/gtest.h>

#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico {
namespace {

namespace pb = ::sglang::grpc::scheduler;

GenerateRequest Request() {
  GenerateRequest request;
  request.stream = 9;
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{5, 6, 7});
  auto sampling = std::make_shared<SamplingParams>();
  sampling->temperature = 0.5f;
  sampling->stop_token_ids = {11};
  sampling->logit_bias = {{3, -1.5f}};
  request.sampling = sampling;
  request.max_new_tokens = 40;
  return request;
}

TEST(SchedulerWireTest, SaysWhatTheRequestAsksFor) {
  std::string bytes;
  ASSERT_TRUE(SchedulerWire().EncodeGenerate(Request(), "r-9", &bytes).ok());
  pb::GenerateRequest message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.request_id(), "r-9");
  EXPECT_EQ(message.tokenized().input_ids_size(), 3);
  EXPECT_EQ(message.sampling_params().temperature(), 0.5f);
  EXPECT_EQ(message.sampling_params().max_new_tokens(), 40u);
  EXPECT_EQ(message.sampling_params().logit_bias().at("3"), -1.5f);
  EXPECT_TRUE(message.stream());
  EXPECT_EQ(message.logprob_start_len(), -1);
}

TEST(SchedulerWireTest, NamesARankEvenIfItIsTheFirst) {
  // proto3 leaves 0 out, and a worker that sees none chooses by itself.
  GenerateRequest request = Request();
  for (const int32_t rank : {0, 3}) {
    auto extras = std::make_shared<RequestExtras>();
    extras->data_parallel_rank = rank;
    request.extras = std::move(extras);
    std::string bytes;
    ASSERT_TRUE(SchedulerWire().EncodeGenerate(request, "r", &bytes).ok());
    pb::GenerateRequest message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    EXPECT_EQ(message.data_parallel_rank(), rank);
    EXPECT_EQ(bytes.ends_with(std::string_view("\x80\x01\x00", 3)), rank == 0);
    PoolingRequest pooling;
    pooling.tokens = request.prompt;
    pooling.data_parallel_rank = rank;
    const auto call = SchedulerWire().EncodePooling(pooling, ModelTask::kEmbed, "r");
    ASSERT_TRUE(call.ok());
    pb::EmbedRequest embed;
    ASSERT_TRUE(embed.ParseFromString(call->request));
    EXPECT_EQ(embed.data_parallel_rank(), rank);
    EXPECT_EQ(call->request.ends_with(std::string_view("\x40\x00", 2)), rank == 0);
  }
}

TEST(SchedulerWireTest, EachChoiceOfAPairsRequestHasARoomOfItsOwn) {
  GenerateRequest request = Request();
  auto extras = std::make_shared<RequestExtras>();
  extras->bootstrap_host = "10.0.0.1";
  extras->bootstrap_port = 8998;
  extras->bootstrap_room = 7;
  extras->bootstrap_room_step = 3;
  request.extras = extras;
  for (request.choice = 0; request.choice < 2; ++request.choice) {
    std::string bytes;
    ASSERT_TRUE(SchedulerWire().EncodeGenerate(request, "r", &bytes).ok());
    pb::GenerateRequest message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    EXPECT_EQ(message.disaggregated_params().bootstrap_host(), "10.0.0.1");
    EXPECT_EQ(message.disaggregated_params().bootstrap_port(), 8998);
    EXPECT_EQ(message.disaggregated_params().bootstrap_room(), 7 + 3 * request.choice);
  }
  request.extras = nullptr;
  std::string bytes;
  ASSERT_TRUE(SchedulerWire().EncodeGenerate(request, "r", &bytes).ok());
  pb::GenerateRequest plain;
  ASSERT_TRUE(plain.ParseFromString(bytes));
  EXPECT_FALSE(plain.has_disaggregated_params());
}

TEST(SchedulerWireTest, ARoomThatTheProtocolHasNoBitsForIsRefused) {
  // Cut to 32 bits it could be another request's.
  GenerateRequest request = Request();
  const auto refused = [&](std::optional<int64_t> room, int32_t choice) {
    auto extras = std::make_shared<RequestExtras>();
    extras->bootstrap_host = "10.0.0.1";
    extras->bootstrap_room = room;
    request.extras = std::move(extras);
    request.choice = choice;
    std::string bytes;
    return FieldOf(SchedulerWire().EncodeGenerate(request, "r", &bytes));
  };
  EXPECT_EQ(refused(INT32_MAX, 0), "");
  EXPECT_EQ(refused(INT32_MAX, 1), "bootstrap_room");
  EXPECT_EQ(refused(INT64_MAX, 1), "bootstrap_room");
  EXPECT_EQ(refused(std::nullopt, 0), "bootstrap_room");
}

TEST(SchedulerWireTest, ReadsWhichHalfOfAPairAServerIs) {
  pb::GetServerInfoResponse info;
  TokenWorkerFacts facts;
  ASSERT_TRUE(SchedulerWire().DecodeServerInfo(info.SerializeAsString(), &facts).ok());
  EXPECT_EQ(facts.disaggregation_mode, "");
  (*info.mutable_server_args()->mutable_fields())["disaggregation_mode"].set_string_value(
      "prefill");
  ASSERT_TRUE(SchedulerWire().DecodeServerInfo(info.SerializeAsString(), &facts).ok());
  EXPECT_EQ(facts.disaggregation_mode, "prefill");
}

TEST(SchedulerWireTest, ReadsTheRanksAndTheLoadOfEach) {
  pb::GetServerInfoResponse info;
  TokenWorkerFacts facts;
  ASSERT_TRUE(SchedulerWire().DecodeServerInfo(info.SerializeAsString(), &facts).ok());
  EXPECT_EQ(facts.info.can.data_parallel_ranks, 1);
  auto& size = (*info.mutable_server_args()->mutable_fields())["dp_size"];
  for (const auto& [said, ranks] : {std::pair{4.0, 4}, {0.0, 1}, {1e9, 1}}) {
    size.set_number_value(said);
    ASSERT_TRUE(SchedulerWire().DecodeServerInfo(info.SerializeAsString(), &facts).ok());
    EXPECT_EQ(facts.info.can.data_parallel_ranks, ranks);
  }
  pb::GetLoadsResponse loads;
  for (int rank = 0; rank < 3; ++rank) {
    auto& load = *loads.add_loads();
    load.set_dp_rank(rank);
    load.set_num_running_reqs(rank + 1);
  }
  const std::string bytes = loads.SerializeAsString();
  EXPECT_EQ(SchedulerWire().DecodeLoads(bytes, -1)->running, 6);
  EXPECT_EQ(SchedulerWire().DecodeLoads(bytes, 1)->running, 2);
  EXPECT_FALSE(SchedulerWire().DecodeLoads(bytes, 7).ok());
}

TEST(SchedulerWireTest, RefusesWhatTheProtocolCannotSay) {
  GenerateRequest request = Request();
  auto sampling = std::make_shared<SamplingParams>(*request.sampling);
  sampling->seed = 4;
  request.sampling = sampling;
  std::string bytes;
  const Status status = SchedulerWire().EncodeGenerate(request, "r", &bytes);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "seed");
}

TEST(SchedulerWireTest, SaysWhatTheAnswerMustLookLike) {
  const auto sent = [](ConstraintKind kind, std::string text) {
    GenerateRequest request = Request();
    auto constraint = std::make_shared<Constraint>();
    constraint->kind = kind;
    constraint->text = std::move(text);
    request.constraint = std::move(constraint);
    std::string bytes;
    EXPECT_TRUE(SchedulerWire().EncodeGenerate(request, "r", &bytes).ok());
    pb::GenerateRequest message;
    EXPECT_TRUE(message.ParseFromString(bytes));
    EXPECT_FALSE(message.require_reasoning());
    return message.sampling_params();
  };
  EXPECT_EQ(sent(ConstraintKind::kJsonSchema, "{}").json_schema(), "{}");
  EXPECT_EQ(sent(ConstraintKind::kJsonObject, "").json_schema(), R"({"type": "object"})");
  EXPECT_EQ(sent(ConstraintKind::kRegex, "a+").regex(), "a+");
  EXPECT_EQ(sent(ConstraintKind::kEbnf, "root ::= x").ebnf_grammar(), "root ::= x");
  EXPECT_EQ(sent(ConstraintKind::kStructuralTag, "{}").structural_tag(), "{}");
  EXPECT_EQ(sent(ConstraintKind::kChoice, R"(["a.", "b"])").regex(), "(a\\.|b)");
}

TEST(SchedulerWireTest, AGrammarComesAfterReasoningOnlyWhereTheAnswerBeginsWithIt) {
  for (const TokenId start : {-1, 4}) {
    GenerateRequest request = Request();
    auto constraint = std::make_shared<Constraint>();
    constraint->kind = ConstraintKind::kJsonObject;
    constraint->think_start = start;
    constraint->think_end = 5;
    request.constraint = std::move(constraint);
    std::string bytes;
    ASSERT_TRUE(SchedulerWire().EncodeGenerate(request, "r", &bytes).ok());
    pb::GenerateRequest message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    EXPECT_EQ(message.require_reasoning(), start < 0);
  }
}

pb::GenerateResponse Chunk(std::initializer_list<uint32_t> ids) {
  pb::GenerateResponse response;
  for (uint32_t id : ids) response.mutable_chunk()->add_token_ids(id);
  return response;
}

pb::GenerateResponse Complete(std::initializer_list<uint32_t> ids, const std::string& reason) {
  pb::GenerateResponse response;
  for (uint32_t id : ids) response.mutable_complete()->add_output_ids(id);
  response.mutable_complete()->set_finish_reason(reason);
  response.mutable_complete()->set_completion_tokens(static_cast<uint32_t>(ids.size()));
  return response;
}

TEST(SchedulerWireTest, TheLastMessageBringsOnlyWhatChunksHaveNot) {
  StreamProgress progress;
  TokenDelta first;
  const SchedulerWire wire;
  ASSERT_TRUE(wire.DecodeGenerate(Chunk({1, 2}).SerializeAsString(), &progress, &first).ok());
  EXPECT_EQ(first.tokens.size(), 2u);
  EXPECT_EQ(first.finish, FinishReason::kNone);
  TokenDelta last;
  auto complete = Complete({1, 2, 3}, "stop");
  complete.mutable_complete()->set_matched_token_id(3);
  ASSERT_TRUE(wire.DecodeGenerate(complete.SerializeAsString(), &progress, &last).ok());
  ASSERT_EQ(last.tokens.size(), 1u);
  EXPECT_EQ(last.tokens[0], 3);
  EXPECT_EQ(last.finish, FinishReason::kStop);
  EXPECT_EQ(last.matched_token, 3);
}

TEST(SchedulerWireTest, NonsenseIsAnError) {
  const SchedulerWire wire;
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), std::string(), Complete({1}, "magic").SerializeAsString()}) {
    StreamProgress progress;
    TokenDelta delta;
    EXPECT_FALSE(wire.DecodeGenerate(bytes, &progress, &delta).ok());
  }
  StreamProgress progress;
  progress.received = 5;
  TokenDelta delta;
  EXPECT_FALSE(
      wire.DecodeGenerate(Complete({1}, "stop").SerializeAsString(), &progress, &delta).ok());
}

TEST(SchedulerWireTest, AWorkersFactsAreChecked) {
  pb::GetModelInfoResponse response;
  response.set_vocab_size(1000);
  response.set_max_context_length(4096);
  response.add_eos_token_ids(7);
  auto facts = SchedulerWire().DecodeModelInfo(response.SerializeAsString());
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(CheckFacts(*facts).ok());
  facts->info.eos_token_ids = {1000};
  EXPECT_FALSE(CheckFacts(*facts).ok());
  facts->info.eos_token_ids = {};
  facts->info.vocab_size = -1;
  EXPECT_FALSE(CheckFacts(*facts).ok());
}

TEST(SchedulerWireTest, LogProbabilitiesOfAWholeAnswerAreCutToTheNewTokens) {
  pb::GenerateResponse response = Chunk({4});
  auto& logprobs = *response.mutable_chunk()->mutable_output_logprobs();
  for (uint32_t id : {3u, 4u}) {
    logprobs.add_token_ids(id);
    logprobs.add_token_logprobs(-static_cast<float>(id));
  }
  StreamProgress progress;
  TokenDelta delta;
  ASSERT_TRUE(SchedulerWire().DecodeGenerate(response.SerializeAsString(), &progress, &delta).ok());
  ASSERT_EQ(delta.logprobs.size(), 1u);
  EXPECT_EQ(delta.logprobs[0].chosen.token, 4);
  EXPECT_EQ(delta.logprobs[0].chosen.logprob, -4.0f);
}

}  // namespace
}  // namespace portico
