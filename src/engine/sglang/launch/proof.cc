#include "engine/sglang/launch/proof.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "text/json.h"

namespace portico::sglang {
namespace {

Json Case(std::string_view tag, std::string_view frame, JsonObject fields) {
  return JsonObject{{"tag", tag},
                    {"frame", absl::BytesToHexString({frame.data(), frame.size()})},
                    {"fields", Json(std::move(fields))}};
}

StatusOr<Json> PlainRequest(const Codec& codec) {
  const std::vector<TokenId> ids{0, 1, 127, 128, 65536, 2147483647};
  WireGenerate wire;
  wire.rid = "00112233445566778899aabbccddeeff";
  wire.ids = ids;
  wire.sampling.max_new_tokens = 16;
  std::string frame;
  PORTICO_RETURN_IF_ERROR(codec.requests->Encode(wire, &frame));
  JsonArray listed;
  for (const TokenId id : ids) listed.emplace_back(static_cast<int64_t>(id));
  return Case("TokenizedGenerateReqInput", frame,
              JsonObject{{"rid", wire.rid},
                         {"input_ids", Json(std::move(listed))},
                         {"return_logprob", false},
                         {"logprob_start_len", -1},
                         {"top_logprobs_num", 0},
                         {"stream", true},
                         {"sampling_params", JsonObject{{"max_new_tokens", 16},
                                                        {"temperature", 1.0},
                                                        {"top_p", 1.0},
                                                        {"top_k", 1 << 30},
                                                        {"stop_strs", JsonArray{}},
                                                        {"stop_regex_strs", JsonArray{}},
                                                        {"is_normalized", true}}}});
}

StatusOr<Json> RichRequest(const Codec& codec) {
  const std::vector<TokenId> ids(300, 7);  // longer than one byte of length tells
  const std::vector<TokenId> stops{2, 128009};
  const std::vector<TokenId> asked{10, 20};
  const std::vector<std::pair<TokenId, float>> bias{{13, -100.0f}, {42, 1.5f}};
  const std::vector<std::string> texts{"\n\n", "終"};
  const std::string schema = R"({"type":"object"})";
  WireGenerate wire;
  wire.rid = "ffeeddccbbaa99887766554433221100";
  wire.ids = ids;
  wire.sampling.max_new_tokens = 300;
  wire.sampling.min_new_tokens = 2;
  wire.sampling.temperature = 0.25;
  wire.sampling.top_p = 0.5;
  wire.sampling.top_k = 40;
  wire.sampling.min_p = 0.125;
  wire.sampling.frequency_penalty = 0.5;
  wire.sampling.presence_penalty = -0.5;
  wire.sampling.repetition_penalty = 1.25;
  wire.sampling.seed = INT64_MIN;
  wire.sampling.stop_token_ids = stops;
  wire.sampling.logit_bias = bias;
  wire.sampling.json_schema = &schema;
  wire.sampling.ignore_eos = true;
  wire.sampling.stop_strs = texts;
  wire.sampling.stream_interval = 4;
  wire.return_logprob = true;
  wire.logprob_start = 0;
  wire.top_logprobs = 5;
  wire.logprob_ids = asked;
  wire.stream = false;
  wire.priority = -3;
  std::string frame;
  PORTICO_RETURN_IF_ERROR(codec.requests->Encode(wire, &frame));
  return Case("TokenizedGenerateReqInput", frame,
              JsonObject{{"rid", wire.rid},
                         {"input_ids", JsonArray(300, Json(7))},
                         {"return_logprob", true},
                         {"logprob_start_len", 0},
                         {"top_logprobs_num", 5},
                         {"token_ids_logprob", JsonArray{10, 20}},
                         {"stream", false},
                         {"priority", -3},
                         {"sampling_params",
                          JsonObject{{"max_new_tokens", 300},
                                     {"min_new_tokens", 2},
                                     {"temperature", 0.25},
                                     {"top_p", 0.5},
                                     {"top_k", 40},
                                     {"min_p", 0.125},
                                     {"frequency_penalty", 0.5},
                                     {"presence_penalty", -0.5},
                                     {"repetition_penalty", 1.25},
                                     {"sampling_seed", INT64_MIN},
                                     {"stop_token_ids", JsonArray{2, 128009}},
                                     {"logit_bias", JsonObject{{"13", -100.0}, {"42", 1.5}}},
                                     {"json_schema", schema},
                                     {"ignore_eos", true},
                                     {"stream_interval", 4},
                                     {"stop_strs", JsonArray{"\n\n", "終"}},
                                     {"is_normalized", true}}}});
}

StatusOr<Json> Embedding(const Codec& codec) {
  const std::vector<TokenId> ids{101, 102};
  WireEmbed wire;
  wire.rid = "00112233445566778899aabbccddeeff";
  wire.ids = ids;
  wire.sampling.max_new_tokens = 0;
  std::string frame;
  PORTICO_RETURN_IF_ERROR(codec.requests->Encode(wire, &frame));
  return Case(
      "TokenizedEmbeddingReqInput", frame,
      JsonObject{{"rid", wire.rid},
                 {"input_ids", JsonArray{101, 102}},
                 {"sampling_params", JsonObject{{"max_new_tokens", 0}, {"is_normalized", true}}}});
}

StatusOr<Json> Abort(const Codec& codec) {
  const std::string_view rid = "00112233445566778899aabbccddeeff";
  PORTICO_ASSIGN_OR_RETURN(const std::string frame,
                           EncodeMessage(*codec.schema, "AbortReq", Map{{"rid", rid}}));
  return Case("AbortReq", frame, JsonObject{{"rid", rid}, {"abort_all", false}});
}

StatusOr<Json> Flush(const Codec& codec) {
  PORTICO_ASSIGN_OR_RETURN(
      const std::string frame,
      EncodeMessage(*codec.schema, "FlushCacheReqInput", Map{{"http_worker_ipc", "portico:1"}}));
  return Case("FlushCacheReqInput", frame,
              JsonObject{{"rid", Json()}, {"http_worker_ipc", "portico:1"}});
}

}  // namespace

StatusOr<std::string> ProofLine(const Codec& codec) {
  JsonArray cases;
  for (const auto make : {PlainRequest, RichRequest, Embedding, Abort, Flush}) {
    PORTICO_ASSIGN_OR_RETURN(Json made, make(codec));
    cases.push_back(std::move(made));
  }
  return Json(JsonObject{{"prove", Json(std::move(cases))}}).Dump();
}

}  // namespace portico::sglang
