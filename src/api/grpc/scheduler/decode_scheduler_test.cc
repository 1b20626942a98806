#include "api/grpc/scheduler/decode_scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;

pb::GenerateRequest Request() {
  pb::GenerateRequest request;
  request.mutable_tokenized()->add_input_ids(7);
  return request;
}

struct Row {
  const char* field;
  std::function<void(pb::GenerateRequest*)> set;
};

TEST(DecodeScheduler, CarriesWhatOnlySomeEnginesHonour) {
  pb::GenerateRequest request = Request();
  EXPECT_EQ(DecodeScheduler(request)->extras.Of(0, nullptr), nullptr);
  request.set_lora_id("x");
  request.set_data_parallel_rank(1);
  request.set_custom_logit_processor("y");
  request.mutable_disaggregated_params()->set_bootstrap_room(3);
  request.set_return_hidden_states(true);
  request.add_input_embeds(0.5f);
  request.add_input_embeds(-0.5f);
  auto& custom = *request.mutable_sampling_params()->mutable_custom_params()->mutable_fields();
  custom["bias"].set_number_value(3);
  auto& list = *custom["ids"].mutable_list_value();
  list.add_values()->set_number_value(0.5);
  list.add_values()->set_bool_value(true);
  const auto extras = DecodeScheduler(request)->extras.Of(0, nullptr);
  EXPECT_EQ(extras->lora_id, "x");
  EXPECT_EQ(extras->data_parallel_rank, 1);
  EXPECT_EQ(extras->custom_logit_processor, "y");
  EXPECT_EQ(extras->bootstrap_room, 3);
  EXPECT_TRUE(extras->return_hidden_states);
  EXPECT_EQ(extras->embedding_size, 2);
  EXPECT_EQ(extras->custom_params, R"({"bias":3,"ids":[0.5,true]})");
}

TEST(DecodeScheduler, RefusesByName) {
  using R = pb::GenerateRequest*;
  const Row rows[] = {
      {"input_ids", [](R r) { r->clear_tokenized(); }},
      {"input_ids", [](R r) { r->mutable_tokenized()->add_input_ids(4294967295u); }},
      {"request_id", [](R r) { r->set_request_id(std::string(257, 'r')); }},
      {"mm_inputs", [](R r) { r->mutable_mm_inputs()->add_image_urls("x"); }},
      {"token_ids_logprob", [](R r) { r->add_token_ids_logprob(1); }},
      {"input_embeds", [](R r) { r->add_input_embeds(NAN); }},
      {"input_embeds",
       [](R r) {
         r->mutable_tokenized()->add_input_ids(8);
         r->add_input_embeds(0.5f);
       }},
      {"top_logprobs_num", [](R r) { r->set_top_logprobs_num(21); }},
      {"temperature", [](R r) { r->mutable_sampling_params()->set_temperature(-1); }},
      {"top_p", [](R r) { r->mutable_sampling_params()->set_top_p(2); }},
      {"top_k", [](R r) { r->mutable_sampling_params()->set_top_k(-2); }},
      {"min_p", [](R r) { r->mutable_sampling_params()->set_min_p(2); }},
      {"frequency_penalty", [](R r) { r->mutable_sampling_params()->set_frequency_penalty(3); }},
      {"presence_penalty", [](R r) { r->mutable_sampling_params()->set_presence_penalty(3); }},
      {"repetition_penalty", [](R r) { r->mutable_sampling_params()->set_repetition_penalty(3); }},
      {"min_new_tokens",
       [](R r) { r->mutable_sampling_params()->set_min_new_tokens(4294967295u); }},
      {"stop", [](R r) { r->mutable_sampling_params()->add_stop(""); }},
      {"stop_token_ids",
       [](R r) { r->mutable_sampling_params()->add_stop_token_ids(4294967295u); }},
      {"n", [](R r) { r->mutable_sampling_params()->set_n(129); }},
      {"json_schema", [](R r) { r->mutable_sampling_params()->set_json_schema(""); }},
      {"ebnf_grammar", [](R r) { r->mutable_sampling_params()->set_ebnf_grammar(""); }},
      {"structural_tag", [](R r) { r->mutable_sampling_params()->set_structural_tag(""); }},
      {"stream_interval", [](R r) { r->mutable_sampling_params()->set_stream_interval(8); }},
      {"logit_bias", [](R r) { (*r->mutable_sampling_params()->mutable_logit_bias())["-1"] = 1; }},
      {"logit_bias", [](R r) { (*r->mutable_sampling_params()->mutable_logit_bias())["1"] = 101; }},
  };
  for (const Row& row : rows) {
    pb::GenerateRequest request = Request();
    row.set(&request);
    const auto decoded = DecodeScheduler(request);
    ASSERT_FALSE(decoded.ok()) << row.field;
    EXPECT_EQ(decoded.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(decoded.status()), row.field);
  }
}

TEST(DecodeScheduler, TakesZeroForTheDefaultWhereZeroIsNoValue) {
  pb::GenerateRequest request = Request();
  request.mutable_sampling_params()->set_temperature(0);
  const auto native = DecodeScheduler(request);
  ASSERT_TRUE(native.ok());
  const NativeSampling sampling = native->sampling.Of(0, {});
  EXPECT_EQ(sampling.options.temperature, 0.0f);
  EXPECT_FALSE(sampling.options.top_p);
  EXPECT_FALSE(sampling.options.top_k);
  EXPECT_FALSE(sampling.options.repetition_penalty);
  EXPECT_EQ(sampling.options.n, 1);
  EXPECT_TRUE(sampling.default_limit);
}

TEST(DecodeScheduler, TheLengthOfAnAnswerIsTheContextsToLimit) {
  pb::GenerateRequest request = Request();
  request.mutable_sampling_params()->set_max_new_tokens(3000000000u);
  const auto native = DecodeScheduler(request);
  ASSERT_TRUE(native.ok()) << native.status();
  EXPECT_EQ(native->sampling.Of(0, {}).options.max_tokens, 3000000000);
}

TEST(DecodeScheduler, ReadsEveryFieldThatItHonours) {
  pb::GenerateRequest request = Request();
  request.set_request_id("w");
  request.set_stream(true);
  request.set_return_logprob(true);
  request.set_logprob_start_len(-1);
  request.set_top_logprobs_num(3);
  pb::SamplingParams* params = request.mutable_sampling_params();
  params->set_top_k(4);
  params->set_top_p(0.5f);
  params->set_max_new_tokens(9);
  params->set_min_new_tokens(2);
  params->add_stop("END");
  params->add_stop_token_ids(3);
  params->set_ignore_eos(true);
  params->set_no_stop_trim(true);
  params->set_n(2);
  (*params->mutable_logit_bias())["5"] = -100;
  const auto native = DecodeScheduler(request);
  ASSERT_TRUE(native.ok());
  EXPECT_EQ(native->prompts[0].ids, std::vector<TokenId>{7});
  EXPECT_EQ(native->rid.Of(0, ""), "w");
  EXPECT_TRUE(native->stream);
  EXPECT_EQ(native->logprob_start_len.Of(0, 0), -1);
  EXPECT_EQ(native->top_logprobs_num.Of(0, 0), 3);
  const GenerationOptions options = native->sampling.Of(0, {}).options;
  EXPECT_EQ(options.top_k, 4);
  EXPECT_EQ(options.top_p, 0.5f);
  EXPECT_EQ(options.max_tokens, 9);
  EXPECT_EQ(options.min_tokens, 2);
  EXPECT_EQ(options.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(options.stop_token_ids, std::vector<TokenId>{3});
  EXPECT_TRUE(options.ignore_eos && options.no_stop_trim);
  EXPECT_EQ(options.n, 2);
  ASSERT_EQ(options.logit_bias.size(), 1u);
  EXPECT_EQ(options.logit_bias[0].second, -100.0f);
}

}  // namespace
}  // namespace portico::api::rpc
