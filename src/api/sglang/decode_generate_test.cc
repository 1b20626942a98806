#include "api/sglang/decode_generate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "text/json_outline.h"

namespace portico::api::sglang {
namespace {

StatusOr<NativeGenerateRequest> Decode(const std::string& body) {
  simdjson::dom::parser parser;
  return DecodeGenerate(body, parser, nullptr);
}

std::string FieldAtFault(const std::string& body) {
  auto request = Decode(body);
  return request.ok() ? "nothing" : FieldOf(request.status());
}

TEST(DecodeGenerate, TextAndIdsComeSingleOrInALists) {
  EXPECT_FALSE(Decode(R"({"text":"a"})")->is_batch);
  EXPECT_EQ(Decode(R"({"text":["a","b"]})")->prompts[1].text, "b");
  EXPECT_EQ(Decode(R"({"input_ids":[1,2]})")->prompts[0].ids, (std::vector<TokenId>{1, 2}));
  auto lists = Decode(R"({"input_ids":[[1],[2,3]]})");
  EXPECT_TRUE(lists->is_batch);
  EXPECT_EQ(lists->prompts[1].ids, (std::vector<TokenId>{2, 3}));
}

TEST(DecodeGenerate, AListOfOneIsABatch) { EXPECT_TRUE(Decode(R"({"text":["a"]})")->is_batch); }

TEST(DecodeGenerate, WithoutOrWithTwoInputsItIsRefused) {
  EXPECT_EQ(FieldAtFault("{}"), "text");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","input_ids":[1]})"), "text");
  EXPECT_EQ(FieldAtFault(R"({"text":[]})"), "text");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[]})"), "input_ids");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[[]]})"), "input_ids");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[-1]})"), "input_ids");
  EXPECT_EQ(FieldAtFault(R"({"input_ids":[1,"a"]})"), "input_ids");
}

TEST(DecodeGenerate, SamplingValuesAreReadInSglangsNamesAndRanges) {
  auto request = Decode(
      R"({"text":"a","sampling_params":{"max_new_tokens":5,"min_new_tokens":2,"temperature":0,)"
      R"("top_k":-1,"sampling_seed":7,"stop":["x"],"n":2}})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  const NativeSampling sampling = request->sampling.Of(0, {});
  EXPECT_EQ(sampling.options.max_tokens, 5);
  EXPECT_FALSE(sampling.default_limit);
  EXPECT_EQ(sampling.options.min_tokens, 2);
  EXPECT_EQ(sampling.options.seed, 7);
  EXPECT_EQ(sampling.options.n, 2);
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"top_k":0}})"), "top_k");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"top_p":0}})"), "top_p");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"max_new_tokens":-1}})"),
            "max_new_tokens");
}

TEST(DecodeGenerate, TheLengthOfAnAnswerIsTheContextsToLimit) {
  auto request = Decode(R"({"text":"a","sampling_params":{"max_new_tokens":3000000000}})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->sampling.Of(0, {}).options.max_tokens, 3000000000);
}

TEST(DecodeGenerate, ANullMaximumMeansNoLimitAndAnAbsentOneSglangsDefault) {
  auto none = Decode(R"({"text":"a","sampling_params":{"max_new_tokens":null}})");
  EXPECT_FALSE(none->sampling.Of(0, {}).options.max_tokens.has_value());
  auto absent = Decode(R"({"text":"a"})");
  EXPECT_EQ(absent->sampling.Of(0, {}).options.max_tokens, kNativeMaxNewTokens);
  EXPECT_TRUE(absent->sampling.Of(0, {}).default_limit);
}

TEST(DecodeGenerate, AnUnknownSamplingParameterIsAnError) {
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"max_tokens":5}})"), "max_tokens");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","sampling_params":{"stream":true}})"), "stream");
}

TEST(DecodeGenerate, WhatCannotBeHonouredIsRefusedUnlessItIsIdle) {
  EXPECT_EQ(FieldAtFault(R"({"text":"a","image_data":null})"), "nothing");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","return_entropy":true})"), "return_entropy");
  EXPECT_EQ(FieldAtFault(R"({"text":"a","log_metrics":false,"whatever":1})"), "nothing");
}

// Clients that put media beside some prompts send null for the others, and SGLang's models of text take a batch
// without any. It was refused once.
TEST(DecodeGenerate, AListThatSaysOfEachPromptThatItHasNoneIsIdle) {
  for (const char* field :
       {R"("image_data":[null,null])", R"("image_data":[[],[null]])", R"("image_data":[])",
        R"("video_data":[null])", R"("audio_data":[null,null])", R"("lora_path":[null,null])",
        R"("return_hidden_states":[false,null])", R"("custom_logit_processor":[null])"}) {
    EXPECT_EQ(FieldAtFault(fmt::format(R"({{"text":["a","b"],{}}})", field)), "nothing") << field;
  }
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"video_data":[null,""]})"), "video_data");
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"image_data":[[null],[""]]})"), "image_data");
}

TEST(DecodeGenerate, MediaComeAloneInAListOrOncePerPrompt) {
  auto urls = [](const char* body) {
    std::string all;
    const auto request = Decode(body);
    if (!request.ok()) return FieldOf(request.status());
    for (size_t i = 0; i < request->prompts.size(); ++i) {
      const auto extras = request->extras.Of(i, nullptr);
      for (const MediaItem& item : extras == nullptr || extras->media == nullptr
                                       ? std::vector<MediaItem>()
                                       : extras->media->items) {
        all += fmt::format("{}{}={}({}) ", item.kind == MediaKind::kImage ? "" : NameOf(item.kind),
                           i, item.url, item.detail);
      }
    }
    return all;
  };
  EXPECT_EQ(urls(R"({"image_data":"x","text":"a"})"), "0=x() ");
  EXPECT_EQ(urls(R"({"image_data":["x",null,{"url":"y","detail":"low"}],"text":"a"})"),
            "0=x() 0=y(low) ");
  EXPECT_EQ(urls(R"({"image_data":["x",["y","z"],null],"text":["a","b","c"]})"),
            "0=x() 1=y() 1=z() ");
  EXPECT_EQ(urls(R"({"image_data":"x","audio_data":["y",{"url":"z"}],"text":"a"})"),
            "audio0=y() audio0=z() 0=x() ");  // the fields in the order of their names
  EXPECT_EQ(urls(R"({"video_data":["x",{"url":"y"}],"text":"a"})"), "video0=x() video0=y() ");
  EXPECT_EQ(urls(R"({"audio_data":[null,"y"],"image_data":["x",null],"text":["a","b"]})"),
            "0=x() audio1=y() ");
  EXPECT_EQ(urls(R"({"audio_data":{"url":"x","detail":"low"},"text":"a"})"), "audio_data");
  EXPECT_EQ(urls(R"({"audio_data":"x","text":["a","b"]})"), "audio_data");
  for (const char* wrong :
       {R"(["x"])", R"("x")", R"([7,"x"])", R"([{"url":""},"x"])", R"([{"format":"z"},"x"])"}) {
    EXPECT_EQ(urls(fmt::format(R"({{"text":["a","b"],"image_data":{}}})", wrong).c_str()),
              "image_data")
        << wrong;
  }
}

TEST(DecodeGenerate, WhatOnlySomeEnginesHonourComesOnceOrOnceAPrompt) {
  auto request =
      Decode(R"({"lora_path":["x",null],"extra_key":"k","text":["a","b"],"priority":2})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->extras.Of(0, nullptr)->lora_path, "x");
  EXPECT_EQ(request->extras.Of(0, nullptr)->extra_key, "k");
  EXPECT_EQ(request->extras.Of(1, nullptr)->lora_path, "");
  EXPECT_EQ(request->extras.Of(1, nullptr)->extra_key, "k");
  EXPECT_EQ(request->priority, 2);
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"lora_path":["x"]})"), "lora_path");
  request =
      Decode(R"({"text":"a","return_hidden_states":"last","sampling_params":{"stop_regex":"b+"}})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_TRUE(request->extras.Of(0, nullptr)->only_last_hidden_state);
  EXPECT_EQ(request->sampling.values[0].options.extras->stop_regex[0], "b+");
}

TEST(DecodeGenerate, NoTwoAnswersOfABatchMeetInOneRoom) {
  // One room for a batch was every prompt's.
  const auto room = [](const NativeGenerateRequest& request, size_t i) {
    return *request.extras.values[i]->bootstrap_room;
  };
  auto one = Decode(R"({"text":["a","b","c"],"bootstrap_room":7,"bootstrap_host":"h"})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(room(*one, 0), 7);
  EXPECT_EQ(room(*one, 2), 9);
  EXPECT_EQ(one->extras.values[2]->bootstrap_host, "h");
  EXPECT_EQ(one->extras.values[0]->bootstrap_room_step, 3);
  auto each = Decode(R"({"text":["a","b"],"bootstrap_room":[70,50]})");
  ASSERT_TRUE(each.ok()) << each.status();
  EXPECT_EQ(room(*each, 1), 50);
  EXPECT_EQ(each->extras.values[1]->bootstrap_room_step, 2);
  auto single = Decode(R"({"text":"a","bootstrap_room":7})");
  EXPECT_EQ(room(*single, 0), 7);
  EXPECT_EQ(single->extras.values[0]->bootstrap_room_step, 1);
  EXPECT_EQ(FieldAtFault(R"({"text":["a","b"],"bootstrap_room":9223372036854775807})"),
            "bootstrap_room");
}

TEST(DecodeGenerate, RowsOfNumbersStandForTokens) {
  auto request = Decode(R"({"input_embeds":[[0.5,1],[2,-3]],"sampling_params":{"temperature":0}})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->prompts[0].ids.size(), 2u);
  EXPECT_EQ(request->extras.Of(0, nullptr)->input_embeddings, (std::vector<float>{0.5, 1, 2, -3}));
  EXPECT_EQ(request->extras.Of(0, nullptr)->embedding_size, 2);
  request = Decode(R"({"input_embeds":[[[1]],[[2],[3]]],"lora_path":"x"})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->extras.Of(1, nullptr)->input_embeddings.size(), 2u);
  EXPECT_EQ(request->extras.Of(1, nullptr)->lora_path, "x");
  for (const char* wrong :
       {"7", "[]", "[1]", "[[]]", "[[1],[2,3]]", R"([["a"]])", "[[[1]],[]]", "[[[1]],7]"}) {
    EXPECT_EQ(FieldAtFault(fmt::format(R"({{"input_embeds":{}}})", wrong)), "input_embeds")
        << wrong;
  }
}

TEST(DecodeGenerate, ValuesComeOnceOrOnceAPrompt) {
  auto request = Decode(R"({"text":["a","b"],"rid":["x","y"],"return_logprob":[true,false],)"
                        R"("sampling_params":[{"temperature":0},{}],"top_logprobs_num":3})");
  ASSERT_TRUE(request.ok()) << MessageOf(request.status());
  EXPECT_EQ(request->rid.Of(1, ""), "y");
  EXPECT_FALSE(request->return_logprob.Of(1, true));
  EXPECT_EQ(request->sampling.values.size(), 2u);
  EXPECT_EQ(request->top_logprobs_num.Of(1, 0), 3);
}

TEST(DecodeGenerate, AConstraintThatWouldHaveNoEffectIsRefused) {
  // It was an unknown field, and the answer had any form.
  for (const char* const field :
       {R"("regex":"a")", R"("ebnf":"a")", R"("json_schema":{})", R"("structural_tag":{})",
        R"("response_format":{"type":"json_object"})", R"("response_format":7)",
        R"("structured_outputs":{"regex":"a"})", R"("guided_choice":["a"])"}) {
    const std::string name(field + 1, std::string_view(field + 1).find('"'));
    EXPECT_EQ(FieldAtFault(fmt::format(R"({{"text":"a",{}}})", field)), name) << field;
  }
  for (const char* const field : {R"("regex":null)", R"("response_format":{"type":"text"})"}) {
    EXPECT_EQ(FieldAtFault(fmt::format(R"({{"text":"a",{}}})", field)), "nothing") << field;
  }
}

// SGLang's table of sampling parameters, row by row: what stands at the ends of each range and what lies
// outside.
struct SamplingRow {
  const char* name;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};

const SamplingRow kSamplingRows[] = {
    {"max_new_tokens", {"0", "1", "null"}, {"-1", "1.5", "\"5\"", "true"}},
    {"min_new_tokens", {"0", "3", "null"}, {"-1", "0.5", "\"0\""}},
    {"temperature", {"0", "1e-7", "0.7", "100", "null"}, {"-0.1", "\"1\"", "true", "[]"}},
    {"top_p", {"0.001", "1", "null"}, {"0", "-0.1", "1.001", "\"1\""}},
    {"top_k", {"-1", "1", "1073741824", "null"}, {"0", "-2", "1.5", "\"1\""}},
    {"min_p", {"0", "1", "null"}, {"-0.001", "1.001"}},
    {"frequency_penalty", {"-2", "0", "2", "null"}, {"-2.001", "2.001", "\"0\""}},
    {"presence_penalty", {"-2", "0", "2", "null"}, {"-2.001", "2.001", "\"0\""}},
    {"repetition_penalty", {"0.001", "1", "2", "null"}, {"0", "-1", "2.001"}},
    {"n", {"1", "128", "null"}, {"0", "-1", "129", "1.5"}},
    {"beam_width", {"1", "null"}, {"0", "2"}},
    {"stop", {"\"x\"", "[\"x\",\"y\"]", "[]", "null"}, {"\"\"", "7", "[7]", "[\"\"]"}},
    {"stop_regex", {"[]", "null", "\"a*\"", "[\"a*\"]"}, {"7", "[7]", "[\"\"]"}},
    {"stop_token_ids", {"[]", "[1,null,2]", "null"}, {"1", "[-1]", "[\"1\"]", "[1.5]"}},
    {"logit_bias", {"{}", "{\"5\":1.5}", "null"}, {"[]", "{\"a\":1}", "{\"-1\":1}", "{\"5\":101}"}},
    {"ignore_eos", {"true", "false", "null"}, {"1", "\"true\""}},
    {"skip_special_tokens", {"true", "false", "null"}, {"0", "\"no\""}},
    {"spaces_between_special_tokens", {"true", "null"}, {"false"}},
    {"no_stop_trim", {"true", "false", "null"}, {"0"}},
    {"stream_interval", {"1", "50", "null"}, {"0", "-1", "1.5"}},
    {"sampling_seed",
     {"0", "-9223372036854775808", "9223372036854775807", "null"},
     {"9223372036854775808", "1.5", "\"7\""}},
    {"json_schema", {"null", "\"{}\"", "{}", "true"}, {"\"\"", "7", "[]"}},
    {"regex", {"null", "\"a\"", "\"\""}, {"7", "{}"}},
    {"ebnf", {"null", "\"a\""}, {"\"\"", "7"}},
    {"structural_tag", {"null", "\"{}\"", "{}"}, {"\"\"", "7", "true"}},
    {"watermark", {"null"}, {"{}"}},
    {"custom_params", {"null", "{}", "[]", "{\"a\":1}"}, {"7", "[1]"}},
};

TEST(DecodeGenerate, EverySamplingParameterHasItsRange) {
  for (const SamplingRow& row : kSamplingRows) {
    const auto body = [&](const char* value) {
      return std::string(R"({"text":"a","sampling_params":{")") + row.name + "\":" + value + "}}";
    };
    for (const char* value : row.good)
      EXPECT_EQ(FieldAtFault(body(value)), "nothing") << body(value);
    for (const char* value : row.bad) EXPECT_EQ(FieldAtFault(body(value)), row.name) << body(value);
  }
}

TEST(DecodeGenerate, TokenIdsForLogprobsComeOnceOrOnceAPrompt) {
  auto once = Decode(R"({"text":["a","b"],"token_ids_logprob":[1,2]})");
  ASSERT_TRUE(once.ok());
  EXPECT_EQ(once->token_ids_logprob.Of(1, {}), (std::vector<TokenId>{1, 2}));
  auto each = Decode(R"({"text":["a","b"],"token_ids_logprob":[[1],null]})");
  ASSERT_TRUE(each.ok());
  EXPECT_TRUE(each->token_ids_logprob.Of(1, {}).empty());
  for (const char* bad : {"1", "[\"a\"]", "[-1]", "[[1],2]", "[[1],[-1]]", "[1,[2]]"}) {
    EXPECT_EQ(FieldAtFault(std::string(R"({"text":"a","token_ids_logprob":)") + bad + "}"),
              "token_ids_logprob")
        << bad;
  }
  EXPECT_EQ(FieldAtFault(R"({"text":"a","token_ids_logprob":[]})"), "nothing");
}

// They had no effect, without a word.
TEST(DecodeGenerate, SamplingParametersBesideTheirMapAreRefused) {
  for (const char* name : {"temperature", "max_new_tokens", "max_tokens", "stop", "seed"}) {
    const auto request = Decode(R"({"text":"a",")" + std::string(name) + R"(":1})");
    EXPECT_EQ(FieldOf(request.status()), name);
    EXPECT_EQ(MessageOf(request.status()), std::string(name) + " belongs in sampling_params");
    EXPECT_TRUE(Decode(R"({"text":"a",")" + std::string(name) + R"(":null})").ok()) << name;
  }
}

std::string RepeatedList(const std::string& item, int count) {
  std::string list = "[" + item;
  for (int i = 1; i < count; ++i) list += "," + item;
  return list + "]";
}

// A list of half a million ids was read for a second, and an empty object for each of a million prompts became a gigabyte
// of parameters, before the number was looked at.
TEST(DecodeGenerate, ListsThatAreTooLongAreRefusedBeforeTheyAreRead) {
  const auto fault = [](const std::string& field, const std::string& list) {
    const auto request = Decode(R"({"text":"a",")" + field + "\":" + list + "}");
    return std::string(MessageOf(request.status()));
  };
  // Items of the wrong kind: they would be named if they were read.
  for (const char* field : {"rid", "return_logprob", "logprob_start_len", "top_logprobs_num",
                            "sampling_params", "token_ids_logprob"}) {
    const std::string most = field == std::string("token_ids_logprob") ? "1024" : "4096";
    const std::string message = fault(field, RepeatedList("1.5", 4097));
    EXPECT_NE(message.find("must hold at most " + most), std::string::npos) << message;
  }
  EXPECT_NE(fault("sampling_params", R"({"stop_token_ids":)" + RepeatedList("1.5", 4097) + "}")
                .find("must hold at most 4096 token ids, got 4097"),
            std::string::npos);
  EXPECT_NE(fault("token_ids_logprob", "[" + RepeatedList("1.5", 1025) + "]")
                .find("must hold at most 1024 token ids, got 1025"),
            std::string::npos);
  std::string biases = R"("0":"x")";
  for (int i = 1; i <= 16384; ++i) biases += ",\"" + std::to_string(i) + R"(":"x")";
  EXPECT_NE(fault("sampling_params", R"({"logit_bias":{)" + biases + "}}")
                .find("must hold at most 16384 token ids, got 16385"),
            std::string::npos);
}

struct LongCheck {
  Status status;
  std::optional<NativeGenerateRequest> seen;
  size_t prompts = 0;
};

LongCheck CheckLong(const std::string& body) {
  simdjson::dom::parser parser;
  LongCheck result;
  result.status =
      CheckLongGenerate(body, parser, [&](const NativeGenerateRequest& request, size_t prompts) {
        result.seen = request;
        result.prompts = prompts;
        return OkStatus();
      });
  return result;
}

const std::string kLongText = '"' + std::string(kMaxOutlinedValue, 'x') + '"';

// A list of 4,000 maps was read for 25 ms before it was known that its answers cost too much.
TEST(DecodeGenerate, TheCostOfLongParametersIsKnownBeforeTheyAreRead) {
  const std::string map = R"({"n":3,"stop":)" + kLongText + R"(,"max_new_tokens":9,"top_k":"?"})";
  const LongCheck one = CheckLong(R"({"text":"a","sampling_params":)" + map + "}");
  EXPECT_TRUE(one.status.ok());
  ASSERT_TRUE(one.seen);
  ASSERT_EQ(one.seen->sampling.values.size(), 1u);
  EXPECT_EQ(one.seen->sampling.values[0].options.n, 3);
  EXPECT_EQ(*one.seen->sampling.values[0].options.max_tokens, 9);

  const LongCheck each = CheckLong(R"({"sampling_params":[)" + map +
                                   R"(,null,{"max_new_tokens":null}],"text":["a","b","c"]})");
  ASSERT_TRUE(each.seen);
  EXPECT_EQ(each.prompts, 3u);
  ASSERT_EQ(each.seen->sampling.values.size(), 3u);
  EXPECT_EQ(each.seen->sampling.values[0].options.n, 3);
  EXPECT_EQ(each.seen->sampling.values[1].options.max_tokens, kNativeMaxNewTokens);
  EXPECT_FALSE(each.seen->sampling.values[2].options.max_tokens);
}

TEST(DecodeGenerate, LongParametersWithTooManyValuesAreRefusedBeforeTheyAreRead) {
  const auto message = [](const std::string& field, const std::string& value) {
    const LongCheck checked = CheckLong(R"({"text":"a",")" + field + "\":" + value + "}");
    EXPECT_FALSE(checked.seen);
    EXPECT_EQ(FieldOf(checked.status).empty(), checked.status.ok());
    return std::string(MessageOf(checked.status));
  };
  const std::string ids = R"({"stop_token_ids":)" + RepeatedList("nonsense", 4097) + "}";
  for (const std::string& maps : {ids, "[" + ids + "]"}) {
    EXPECT_EQ(message("sampling_params", maps),
              "stop_token_ids must hold at most 4096 token ids, got 4097");
  }
  EXPECT_EQ(message("sampling_params", RepeatedList("nonsense", 4097)),
            "sampling_params must hold at most 4096 values, got 4097");
  EXPECT_EQ(message("return_logprob", RepeatedList("nonsense", 4097)),
            "return_logprob must hold at most 4096 values, got 4097");
}

// One member that is long, and the answers' cost was not looked at.
TEST(DecodeGenerate, ALongMemberOfNoConsequenceDoesNotHideTheCost) {
  const LongCheck checked =
      CheckLong(R"({"text":"a","anything":)" + kLongText + R"(,"sampling_params":{"n":5}})");
  ASSERT_TRUE(checked.seen);
  EXPECT_EQ(checked.seen->sampling.values[0].options.n, 5);
}

// A long list was refused, though another one followed it which counts.
TEST(DecodeGenerate, TheLastOfDoubledLongParametersCounts) {
  const std::string ids = RepeatedList("nonsense", 4097);
  const LongCheck within = CheckLong(R"({"text":"a","sampling_params":{"n":2,"stop_token_ids":)" +
                                     ids + R"(,"stop_token_ids":[1]}})");
  EXPECT_TRUE(within.status.ok()) << within.status;
  ASSERT_TRUE(within.seen);
  EXPECT_EQ(within.seen->sampling.values[0].options.n, 2);
  const LongCheck short_one =
      CheckLong(R"({"text":"a","sampling_params":)" + ids + R"(,"sampling_params":{"n":3}})");
  EXPECT_TRUE(short_one.status.ok()) << short_one.status;
  ASSERT_TRUE(short_one.seen);
  EXPECT_EQ(short_one.seen->sampling.values[0].options.n, 3);
  const LongCheck long_one = CheckLong(
      R"({"text":"a","sampling_params":7,"sampling_params":{"n":4,"stop":)" + kLongText + "}}");
  EXPECT_TRUE(long_one.status.ok()) << long_one.status;
  ASSERT_TRUE(long_one.seen);
  ASSERT_EQ(long_one.seen->sampling.values.size(), 1u);
  EXPECT_EQ(long_one.seen->sampling.values[0].options.n, 4);
  const LongCheck escaped = CheckLong(R"({"text":"a","sampling_params":{"stop":)" + kLongText +
                                      R"(},"sampling\u005fparams":{"n":5}})");
  EXPECT_TRUE(escaped.status.ok()) << escaped.status;
  ASSERT_TRUE(escaped.seen);
  EXPECT_EQ(escaped.seen->sampling.values[0].options.n, 5);
}

TEST(DecodeGenerate, WhatCannotBeOutlinedIsLeftToTheReader) {
  for (const std::string& member : {
           R"("input_embeds":[)" + kLongText + "]",
           R"("sampling_params":)" + kLongText,
           R"("sampling_params":[)" + kLongText + "]",
           R"("sampling_params":[{},{]," + kLongText + "]",
           R"("sampling_params":[01,)" +
               kLongText + "]",
       }) {
    const LongCheck checked = CheckLong(R"({"text":"a",)" + member + "}");
    EXPECT_TRUE(checked.status.ok());
    EXPECT_FALSE(checked.seen) << member.substr(0, 60);
  }
}

// Bodies of 64 MiB with the shortest texts became gigabytes of items before anybody counted them.
TEST(DecodeGenerate, MediaAreCountedBeforeTheyAreRead) {
  const auto list = [](size_t count) {
    std::string items = "[";
    for (size_t i = 0; i < count; ++i) items += i == 0 ? R"("x")" : R"(,"x")";
    return items + "]";
  };
  const auto one = [&](size_t count) {
    return FieldAtFault(fmt::format(R"({{"text":"a","image_data":{}}})", list(count)));
  };
  EXPECT_EQ(one(1024), "nothing");
  EXPECT_EQ(one(1025), "image_data");
  std::string texts = "[";
  std::string media = "[";
  for (int i = 0; i < 17; ++i) {
    texts += i == 0 ? R"("a")" : R"(,"a")";
    media += (i == 0 ? "" : ",") + list(1000);
  }
  EXPECT_EQ(FieldAtFault(fmt::format(R"({{"text":{}],"video_data":{}]}})", texts, media)),
            "video_data");
}

}  // namespace
}  // namespace portico::api::sglang
