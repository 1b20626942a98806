#include "api/grpc/native/decode_native.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

pb::TextGenerateRequest TextRequest() {
  pb::TextGenerateRequest request;
  request.set_text("hello");
  return request;
}

pb::GenerateRequest IdsRequest() {
  pb::GenerateRequest request;
  request.add_input_ids(7);
  return request;
}

std::string FieldRefused(const StatusOr<NativeGenerateRequest>& decoded) {
  if (decoded.ok()) return "(taken)";
  EXPECT_EQ(decoded.status().code(), StatusCode::kInvalidArgument);
  const std::string field = FieldOf(decoded.status());
  EXPECT_NE(std::string(MessageOf(decoded.status())).find(field), std::string::npos);
  return field;
}

struct SamplingRow {
  const char* field;
  std::function<void(pb::SamplingParams*)> set;
};

TEST(DecodeNative, RefusesEveryBadSamplingValueByItsName) {
  const float nan = std::nanf("");
  const SamplingRow rows[] = {
      {"temperature", [](auto* p) { p->set_temperature(-0.1f); }},
      {"temperature", [nan](auto* p) { p->set_temperature(nan); }},
      {"temperature", [](auto* p) { p->set_temperature(INFINITY); }},
      {"top_p", [](auto* p) { p->set_top_p(0); }},
      {"top_p", [](auto* p) { p->set_top_p(1.5f); }},
      {"top_p", [nan](auto* p) { p->set_top_p(nan); }},
      {"top_k", [](auto* p) { p->set_top_k(0); }},
      {"top_k", [](auto* p) { p->set_top_k(-2); }},
      {"min_p", [](auto* p) { p->set_min_p(-0.5f); }},
      {"min_p", [](auto* p) { p->set_min_p(2); }},
      {"frequency_penalty", [](auto* p) { p->set_frequency_penalty(2.5f); }},
      {"presence_penalty", [](auto* p) { p->set_presence_penalty(-3); }},
      {"repetition_penalty", [](auto* p) { p->set_repetition_penalty(0); }},
      {"repetition_penalty", [](auto* p) { p->set_repetition_penalty(2.1f); }},
      {"max_new_tokens", [](auto* p) { p->set_max_new_tokens(-1); }},
      {"min_new_tokens", [](auto* p) { p->set_min_new_tokens(-1); }},
      {"stop", [](auto* p) { p->add_stop(""); }},
      {"stop",
       [](auto* p) {
         for (int i = 0; i < 33; ++i) p->add_stop("x");
       }},
      {"stop_token_ids", [](auto* p) { p->add_stop_token_ids(-5); }},
      {"n", [](auto* p) { p->set_n(-1); }},
      {"n", [](auto* p) { p->set_n(129); }},
      {"guided_decoding", [](auto* p) { p->mutable_guided_decoding(); }},
      {"json_schema", [](auto* p) { p->mutable_guided_decoding()->set_json_schema(""); }},
      {"ebnf", [](auto* p) { p->mutable_guided_decoding()->set_ebnf(""); }},
      {"choice", [](auto* p) { p->mutable_guided_decoding()->mutable_choice(); }},
      {"choice", [](auto* p) { p->mutable_guided_decoding()->mutable_choice()->add_values(""); }},
      {"guided_decoding",
       [](auto* p) {
         p->set_regex("a");
         p->mutable_guided_decoding()->set_regex("a");
       }},
  };
  for (const SamplingRow& row : rows) {
    pb::TextGenerateRequest text = TextRequest();
    row.set(text.mutable_sampling_params());
    EXPECT_EQ(FieldRefused(DecodeTextGenerate(&text)), row.field);
    pb::GenerateRequest ids = IdsRequest();
    row.set(ids.mutable_sampling_params());
    EXPECT_EQ(FieldRefused(DecodeGenerate(&ids)), row.field);
  }
}

struct RequestRow {
  const char* field;
  std::function<void(pb::GenerateRequest*)> set;
};

TEST(DecodeNative, RefusesWhatItCannotHonour) {
  const RequestRow rows[] = {
      {"routed_dp_rank", [](auto* r) { r->set_routed_dp_rank(-1); }},
      {"session_id", [](auto* r) { r->set_session_id("s"); }},
      {"disaggregated_params",
       [](auto* r) { r->mutable_disaggregated_params()->set_bootstrap_port(-1); }},
      {"kv_hints", [](auto* r) { r->mutable_kv_hints()->add_actions(); }},
      {"top_logprobs_num", [](auto* r) { r->set_top_logprobs_num(21); }},
      {"top_logprobs_num", [](auto* r) { r->set_top_logprobs_num(-1); }},
      {"logprob_start_len", [](auto* r) { r->set_logprob_start_len(-2); }},
      {"rid", [](auto* r) { r->set_rid(std::string(257, 'r')); }},
      {"input_ids", [](auto* r) { r->clear_input_ids(); }},
  };
  for (const RequestRow& row : rows) {
    pb::GenerateRequest request = IdsRequest();
    row.set(&request);
    EXPECT_EQ(FieldRefused(DecodeGenerate(&request)), row.field);
  }
  pb::TextGenerateRequest empty;
  EXPECT_EQ(FieldRefused(DecodeTextGenerate(&empty)), "text");
}

TEST(DecodeNative, CarriesWhatOnlySomeEnginesHonour) {
  pb::GenerateRequest request = IdsRequest();
  request.set_lora_path("adapter");
  request.set_routed_dp_rank(2);
  request.mutable_disaggregated_params()->set_bootstrap_host("h");
  request.mutable_disaggregated_params()->set_bootstrap_room(7);
  request.set_priority(-4);
  request.add_image_data("x");
  request.add_image_data("y");
  request.add_video_data("v");
  request.add_audio_data("z");
  const auto decoded = DecodeGenerate(&request);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto extras = decoded->extras.Of(0, nullptr);
  EXPECT_EQ(extras->lora_path, "adapter");
  EXPECT_EQ(extras->data_parallel_rank, 2);
  EXPECT_EQ(extras->bootstrap_host, "h");
  EXPECT_EQ(extras->bootstrap_room, 7);
  EXPECT_FALSE(extras->bootstrap_port);
  EXPECT_EQ(decoded->priority, -4);
  ASSERT_NE(extras->media, nullptr);
  ASSERT_EQ(extras->media->items.size(), 4u);
  EXPECT_EQ(extras->media->items[1].url, "y");
  EXPECT_EQ(extras->media->items[1].kind, MediaKind::kImage);
  EXPECT_EQ(extras->media->items[2].place, "video_data[0]");
  EXPECT_EQ(extras->media->items[2].kind, MediaKind::kVideo);
  EXPECT_EQ(extras->media->items[3].place, "audio_data[0]");
  EXPECT_EQ(extras->media->items[3].kind, MediaKind::kAudio);
  request = IdsRequest();
  EXPECT_EQ(DecodeGenerate(&request)->extras.Of(0, nullptr), nullptr);
}

TEST(DecodeNative, TakesWhatHasNoEffectHere) {
  pb::GenerateRequest request = IdsRequest();
  request.set_lora_path("");
  request.set_routing_key("user-7");
  request.set_routed_dp_rank(0);
  request.set_session_id("");
  request.set_priority(0);
  request.set_require_reasoning(false);
  request.mutable_kv_hints()->set_message_id("m");
  (*request.mutable_trace_headers())["traceparent"] = "00-1-2-3";
  EXPECT_TRUE(DecodeGenerate(&request).ok());
}

TEST(DecodeNative, LeavesTheDefaultsOfSglangWhereNothingIsSet) {
  pb::TextGenerateRequest request = TextRequest();
  const auto native = DecodeTextGenerate(&request);
  ASSERT_TRUE(native.ok());
  EXPECT_EQ(native->prompts[0].text, "hello");
  EXPECT_FALSE(native->stream);
  EXPECT_FALSE(native->return_logprob.Of(0, true));
  EXPECT_FALSE(native->logprob_start_len.given());
  EXPECT_FALSE(native->rid.given());
  const NativeSampling sampling = native->sampling.Of(0, {});
  EXPECT_TRUE(sampling.default_limit);
  EXPECT_EQ(sampling.options.max_tokens, kNativeMaxNewTokens);
  EXPECT_FALSE(sampling.options.temperature);
  EXPECT_FALSE(sampling.options.seed);
  EXPECT_EQ(sampling.options.n, 1);
}

TEST(DecodeNative, TellsZeroFromAbsent) {
  pb::TextGenerateRequest request = TextRequest();
  pb::SamplingParams* params = request.mutable_sampling_params();
  params->set_temperature(0);
  params->set_max_new_tokens(0);
  params->set_seed(0);
  params->set_n(0);
  request.set_logprob_start_len(0);
  const auto native = DecodeTextGenerate(&request);
  ASSERT_TRUE(native.ok());
  const NativeSampling sampling = native->sampling.Of(0, {});
  EXPECT_EQ(sampling.options.temperature, 0.0f);
  EXPECT_EQ(sampling.options.max_tokens, 0);
  EXPECT_FALSE(sampling.default_limit);
  EXPECT_EQ(sampling.options.seed, 0);
  EXPECT_EQ(sampling.options.n, 1);
  EXPECT_EQ(native->logprob_start_len.Of(0, -1), 0);
}

TEST(DecodeNative, ReadsEveryFieldThatItHonours) {
  pb::GenerateRequest request = IdsRequest();
  request.add_input_ids(9);
  request.set_stream(true);
  request.set_return_logprob(true);
  request.set_top_logprobs_num(2);
  request.set_logprob_start_len(1);
  request.set_rid("mine");
  pb::SamplingParams* params = request.mutable_sampling_params();
  params->set_temperature(0.5f);
  params->set_top_p(0.9f);
  params->set_top_k(-1);
  params->set_min_p(0.1f);
  params->set_frequency_penalty(-2);
  params->set_presence_penalty(2);
  params->set_repetition_penalty(1.5f);
  params->set_max_new_tokens(10);
  params->set_min_new_tokens(3);
  params->add_stop("END");
  params->add_stop_token_ids(4);
  params->set_ignore_eos(true);
  params->set_n(2);
  params->set_seed(-1);
  const auto native = DecodeGenerate(&request);
  ASSERT_TRUE(native.ok());
  EXPECT_EQ(native->prompts[0].ids, (std::vector<TokenId>{7, 9}));
  EXPECT_TRUE(native->prompts[0].is_ids);
  EXPECT_TRUE(native->stream);
  EXPECT_TRUE(native->return_logprob.Of(0, false));
  EXPECT_EQ(native->top_logprobs_num.Of(0, 0), 2);
  EXPECT_EQ(native->logprob_start_len.Of(0, -1), 1);
  EXPECT_EQ(native->rid.Of(0, ""), "mine");
  const GenerationOptions options = native->sampling.Of(0, {}).options;
  EXPECT_EQ(options.temperature, 0.5f);
  EXPECT_EQ(options.top_p, 0.9f);
  EXPECT_EQ(options.top_k, -1);
  EXPECT_EQ(options.min_p, 0.1f);
  EXPECT_EQ(options.frequency_penalty, -2.0f);
  EXPECT_EQ(options.presence_penalty, 2.0f);
  EXPECT_EQ(options.repetition_penalty, 1.5f);
  EXPECT_EQ(options.max_tokens, 10);
  EXPECT_EQ(options.max_tokens_field, "max_new_tokens");
  EXPECT_EQ(options.min_tokens, 3);
  EXPECT_EQ(options.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(options.stop_token_ids, std::vector<TokenId>{4});
  EXPECT_TRUE(options.ignore_eos);
  EXPECT_EQ(options.n, 2);
  EXPECT_EQ(options.seed, -1);
}

TEST(DecodeNative, MediaAreCountedBeforeTheyAreTaken) {
  pb::GenerateRequest request = IdsRequest();
  for (int i = 0; i < 1025; ++i) request.add_audio_data();
  EXPECT_EQ(FieldOf(DecodeGenerate(&request).status()), "audio_data");
}

}  // namespace
}  // namespace portico::api::rpc
