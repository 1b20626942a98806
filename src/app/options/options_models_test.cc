// Several models in one server: which options are whose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "app/options/options.h"
#include "app/options/options_for_test.h"
#include "app/options/options_table.h"

namespace portico {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

StatusOr<ServeOptions> Parse(std::initializer_list<const char*> arguments) {
  PORTICO_ASSIGN_OR_RETURN(ParsedOptions parsed, ParseServe(arguments));
  return std::move(parsed.options);
}

TEST(OptionsOfModels, FollowTheModelThatTheyAreOf) {
  const auto options = Parse({"--dtype", "float32", "--max-queued-requests=9", "--model-path", "/a",
                              "--served-model-name", "chat", "--port", "1", "--model", "/b",
                              "--dtype", "bfloat16", "--disable-radix-cache", "--model-path=/c"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->models.size(), 3u);
  EXPECT_EQ(options->port, 1);
  const ModelOptions& a = options->models[0];
  EXPECT_EQ(a.model_path, "/a");
  EXPECT_EQ(ModelId(a), "chat");
  EXPECT_EQ(a.dtype, "float32");
  EXPECT_EQ(a.max_queued_requests, 9);
  EXPECT_FALSE(a.disable_radix_cache);
  const ModelOptions& b = options->models[1];
  EXPECT_EQ(ModelId(b), "/b");
  EXPECT_EQ(b.dtype, "bfloat16");
  EXPECT_TRUE(b.disable_radix_cache);
  EXPECT_EQ(options->models[2].dtype, "float32");
  EXPECT_FALSE(options->models[2].disable_radix_cache);
}

TEST(OptionsOfModels, MayStandAnywhereWhereThereIsOneModel) {
  for (const auto& options : {Parse({"--dtype", "float32", "--model-path", "/a"}),
                              Parse({"--model-path", "/a", "--dtype", "float32"}),
                              Parse({"--dtype", "auto", "--model-path", "/a", "--dtype", "auto",
                                     "--dtype", "float32"})}) {
    ASSERT_TRUE(options.ok()) << options.status();
    ASSERT_EQ(options->models.size(), 1u);
    EXPECT_EQ(options->models[0].model_path, "/a");
    EXPECT_EQ(options->models[0].dtype, "float32");
  }
}

TEST(OptionsOfModels, ServeTheDemoModelWhereNoneIsNamed) {
  const auto options = Parse({});
  ASSERT_TRUE(options.ok());
  ASSERT_EQ(options->models.size(), 1u);
  EXPECT_EQ(ModelId(options->models[0]), "demo");
  EXPECT_EQ(ModelId(Parse({"--engine", "mock"})->models[0]), "demo");
  EXPECT_EQ(ModelId(Parse({"--engine", "mock", "--tokenizer-path", "/t"})->models[0]), "/t");
}

TEST(OptionsOfModels, AreRefusedWhereModelsCouldNotBeToldApart) {
  EXPECT_EQ(ErrorOf({"--model-path", "/a", "--model-path", "/a"}),
            "two models are called `/a`; --served-model-name after each --model-path gives them "
            "names of their own");
  EXPECT_THAT(ErrorOf({"--served-model-name", "x", "--model-path", "/a", "--model-path", "/b"}),
              HasSubstr("two models are called `x`"));
  EXPECT_THAT(ErrorOf({"--model-path", "/a", "--model-path", "/b", "--served-model-name", "/a"}),
              HasSubstr("two models are called `/a`"));
  EXPECT_EQ(ErrorOf({"--model-path", "/a", "--model-path", "/a", "--served-model-name", "again"}),
            "OK");
}

TEST(OptionsOfModels, AreNotGivenToSglangWhoseFrontEndDoesNotRun) {
  // `-- --api-key k` started a server that is open to everyone.
  for (const char* flag : {"--api-key", "--api-key=k", "--api_key", "--api-k", "--ssl-keyfile",
                           "--served-model-name", "--preferred-sampling-params={}"}) {
    EXPECT_THAT(ErrorOf({"--engine", "sglang", "--model-path", "/a", "--", "--tp", "2", flag, "k"}),
                HasSubstr("is an option of this server: give it before the --"))
        << flag;
  }
  const auto options = Parse({"--engine", "sglang", "--model-path", "/a", "--", "--tp", "2",
                              "--reasoning-parser", "qwen3", "--port", "1"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->models[0].engine_arguments.size(), 6u);
}

TEST(OptionsOfModels, BehindTheDashesAreTheFrontEndsToo) {
  // `-- --reasoning-parser qwen3` reached SGLang's schedulers, and Portico went on guessing.
  const auto options = Parse({"--engine",
                              "sglang",
                              "--model-path",
                              "/a",
                              "--weight-version",
                              "mine",
                              "--",
                              "--reasoning_parser=qwen3",
                              "--port",
                              "8123",
                              "--host",
                              "::",
                              "--weight-version",
                              "theirs",
                              "--stream-interval",
                              "4",
                              "--log-requests",
                              "--tokenizer-path",
                              "/t",
                              "--tp",
                              "2"});
  ASSERT_TRUE(options.ok()) << options.status();
  const ModelOptions& model = options->models[0];
  EXPECT_EQ(model.reasoning_parser, "qwen3");
  EXPECT_EQ(model.tokenizer_path, "/t");
  EXPECT_EQ(model.stream_interval, 4);
  EXPECT_EQ(model.weight_version, "mine");
  EXPECT_EQ(options->port, 8123);
  EXPECT_EQ(options->host, "::");
  EXPECT_TRUE(options->log_requests);
  EXPECT_EQ(ErrorOf({"--engine", "sglang", "--model-path", "/a", "--", "--port", "x"}),
            "--port behind the --: `x` is not a whole number");
}

TEST(OptionsOfModels, InAFileOfSglangsAreTheFrontEndsToo) {
  // served-model-name and reasoning-parser were ignored, keys and templates refused.
  const TempFile file(
      "model-path: /m\nserved-model-name: chat\nreasoning_parser: qwen3\n"
      "tool-call-parser: hermes\nchat_template: /t.jinja\nallow-auto-truncate: Yes\n"
      "api-key: 12345\nport: 8123\nhost: 127.0.0.2\ntp-size: 2\n"
      "preferred-sampling-params: {temperature: 0.5}\nsampling-defaults: openai\n"
      "lora-paths: [a, b]\nlog-requests: no\n");
  const auto options = Parse({"--engine", "sglang", "--port", "9", "--", "--config",
                              file.path().c_str(), "--host", "127.0.0.3"});
  ASSERT_TRUE(options.ok()) << options.status();
  const ModelOptions& model = options->models[0];
  EXPECT_EQ(model.model_path, "/m");
  EXPECT_EQ(ModelId(model), "chat");
  EXPECT_EQ(model.reasoning_parser, "qwen3");
  EXPECT_EQ(model.tool_call_parser, "hermes");
  EXPECT_EQ(model.chat_template, "/t.jinja");
  EXPECT_EQ(model.preferred_sampling_params, R"({"temperature":0.5})");
  EXPECT_EQ(model.sampling_defaults, "openai");
  EXPECT_TRUE(model.allow_auto_truncate);
  EXPECT_EQ(options->api_key, "12345");
  EXPECT_EQ(options->port, 9);            // of the command line
  EXPECT_EQ(options->host, "127.0.0.3");  // as SGLang's own words are before its file
  EXPECT_FALSE(options->log_requests);
  EXPECT_EQ(model.engine_arguments.size(), 4u);
  EXPECT_THAT(model.engine_options_taken, Contains("api-key"));
  EXPECT_THAT(model.engine_options_taken, Contains("port"));
}

TEST(OptionsOfModels, InAFileOfSglangsAreCheckedWithTheirLine) {
  const auto error = [](const char* text) {
    const TempFile file(text);
    const std::string said = ErrorOf(
        {"--engine", "sglang", "--model-path", "/a", "--", "--config", file.path().c_str()});
    return said.starts_with(file.path()) ? said.substr(file.path().size()) : said;
  };
  EXPECT_EQ(error(""), "OK");
  EXPECT_EQ(error("tp: 2\nport: 70000\n"), ":2: port: 70000 is not in 0..65535");
  EXPECT_EQ(error("served-model-name:\n"), ":1: served-model-name: has no value");
  EXPECT_EQ(error("api_key: [a]\n"), ":1: api_key: takes one value, not a list");
  EXPECT_EQ(error("api-key: ''\n"), ":1: api-key: is empty; leave it out to serve without a key");
  EXPECT_THAT(error("reasoning-parser: no-such\n"), HasSubstr("--reasoning-parser: "));
  EXPECT_THAT(error("port: [1\n"), HasSubstr(":"));
  const auto refused = [](const char* config) {
    return ErrorOf({"--engine", "sglang", "--model-path", "/a", "--", config, "/no/such.yaml"});
  };
  EXPECT_EQ(refused("--config"),
            "--config behind the --: cannot read /no/such.yaml: No such file or directory");
  EXPECT_THAT(refused("--config=/no/such.yaml"), HasSubstr("a word of its own"));
}

TEST(OptionsOfModels, ThatAreAbbreviatedForSglangAreNamedInFull) {
  const auto error = [](const char* flag) {
    return ErrorOf({"--engine", "sglang", "--model-path", "/a", "--", flag, "k"});
  };
  EXPECT_THAT(error("--ap"), HasSubstr("--ap: --api-key is an option of this server"));
  EXPECT_THAT(error("--admin_api=k"), HasSubstr("--admin-api: --admin-api-key is an option"));
  // SGLang took it and did nothing with it.
  EXPECT_THAT(error("--chat-temp"), HasSubstr("--chat-temp: --chat-template is an option"));
  EXPECT_EQ(error("--ssl-keyfile"),
            "--ssl-keyfile is an option of this server: give it before the --");
  EXPECT_EQ(error("--tp"), "OK");
}

TEST(OptionsOfModels, MustNotBeGivenTwiceForOneOfSeveral) {
  EXPECT_EQ(ErrorOf({"--model-path", "/a", "--dtype", "auto", "--dtype", "auto", "--model", "/b"}),
            "--dtype: is given twice for the model at /a");
  EXPECT_EQ(ErrorOf({"--dtype", "auto", "--dtype", "auto", "--model", "/a", "--model", "/b"}),
            "--dtype: is given twice before the first --model-path");
  EXPECT_EQ(ErrorOf({"--port", "1", "--model", "/a", "--port", "2", "--model", "/b"}), "OK");
  EXPECT_EQ(ErrorOf({"--model", "/a", "--model", "/b", "--threads", "-1"}),
            "--threads: -1 is not in 0..4096");
  EXPECT_EQ(ErrorOf({"--model", "/a", "--model"}), "--model-path: needs a value");
  EXPECT_EQ(ErrorOf({"--model", "--model", "/b"}), "--model-path: needs a value");
}

TEST(OptionsOfModels, ComeFromAListInTheFile) {
  const TempFile file(
      "models:\n  - model-path: /a\n    served_model_name: chat\n  - model: /b\n"
      "    dtype: bfloat16\ndtype: float32\nthreads: 2\nport: 7\n");
  const auto options = Parse({"--config", file.path().c_str(), "--threads", "3", "--port", "8"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->models.size(), 2u);
  EXPECT_EQ(options->port, 8);
  EXPECT_EQ(ModelId(options->models[0]), "chat");
  EXPECT_EQ(options->models[0].dtype, "float32");
  EXPECT_EQ(options->models[0].threads, 3);
  EXPECT_EQ(ModelId(options->models[1]), "/b");
  EXPECT_EQ(options->models[1].dtype, "bfloat16");
  EXPECT_EQ(options->models[1].threads, 3);
}

TEST(OptionsOfModels, OfTheFileAreDefaultsForModelsOfTheCommandLine) {
  const TempFile file("model-path: /file\ndtype: float32\n");
  const auto options =
      Parse({"--model", "/a", "--model", "/b", "--dtype", "auto", "--config", file.path().c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->models.size(), 2u);
  EXPECT_EQ(options->models[0].model_path, "/a");
  EXPECT_EQ(options->models[0].dtype, "float32");
  EXPECT_EQ(options->models[1].dtype, "auto");
}

TEST(OptionsOfModels, AreNamedInOnePlaceOnly) {
  const TempFile file("models: [{model: /a}]\n");
  EXPECT_EQ(ErrorOf({"--config", file.path().c_str(), "--model-path", "/b"}),
            std::string("--model-path: ") + file.path() +
                " lists models too; name all of them in one place");
}

TEST(OptionsOfModels, NameTheLineOfAnErrorInTheList) {
  const auto error = [](const std::string& text) {
    OptionLayers layers;
    const Status status = ApplyOptionsYaml(text, "f.yaml", &layers);
    return status.ok() ? "OK" : std::string(MessageOf(status));
  };
  EXPECT_EQ(error("models: []\n"),
            "f.yaml:1: models: takes a list of mappings such as `- model-path: a`");
  EXPECT_THAT(error("models: /a\n"), HasSubstr("f.yaml:1: models: takes a list"));
  EXPECT_THAT(error("models:\n"), HasSubstr("f.yaml:1: models: takes a list"));
  EXPECT_THAT(error("models:\n  - /a\n"), HasSubstr("f.yaml:2: models: expected a mapping"));
  EXPECT_EQ(error("models:\n  - dtype: auto\n"), "f.yaml:2: models: each names its model-path");
  EXPECT_EQ(error("models:\n  - model: a\n    port: 1\n"),
            "f.yaml:3: port: is the server's, not a model's; it belongs outside `models`");
  EXPECT_EQ(error("models:\n  - model: a\n    dtype: x\n"),
            "f.yaml:3: dtype: `x` is not one of auto, float32, bfloat16, float16");
  EXPECT_EQ(error("models:\n  - model: a\n    model-path: b\n"),
            "f.yaml:3: model-path: is set twice");
  EXPECT_EQ(error("models: [{model: a}]\nmodels: [{model: b}]\n"),
            "f.yaml:2: models: is set twice");
  EXPECT_EQ(error("models: [{model: a}]\nmodel: b\n"),
            "f.yaml:1: models: a model-path is also set outside of the list");
}

TEST(OptionsOfModels, AreInGroupsOfTheirOwn) {
  for (const Option& option : ServeOptionTable()) {
    const bool of_model = option.group == "Model" || option.group == "Engine" ||
                          option.group == "SGLang engine" || option.group == "Mock engine" ||
                          option.group == "Token workers";
    EXPECT_EQ(option.is_model(), of_model) << option.name;
  }
}

TEST(OptionsOfModels, AreDumpedForEachAndAtTheTopForTheDefaultOne) {
  const auto options =
      Parse({"--model", "/a", "--threads", "2", "--model", "/b", "--api-key", "s3c"});
  ASSERT_TRUE(options.ok());
  const Json dump = OptionsAsJson(*options);
  EXPECT_EQ(dump.GetString("model_path"), "/a");
  EXPECT_EQ(dump.GetInt("threads", -1), 2);
  const JsonArray& models = dump.Find("models")->as_array();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[1].GetString("id"), "/b");
  EXPECT_EQ(models[1].GetInt("threads", -1), 0);
  EXPECT_EQ(models[1].Find("port"), nullptr);
  EXPECT_EQ(dump.Dump().find("s3c"), std::string::npos);
}

// They were ignored without a word.
TEST(OptionsOfModels, ThatOnlyAnotherEngineHasAreRefused) {
  EXPECT_THAT(Parse({"--mock-itl-ms", "5"}).status().message(),
              HasSubstr("--mock-itl-ms needs --engine mock"));
  EXPECT_THAT(Parse({"--engine", "mock", "--attach", "x"}).status().message(),
              HasSubstr("--attach needs --engine sglang"));
  EXPECT_THAT(Parse({"--policy", "random"}).status().message(),
              HasSubstr("--policy needs --engine sglang or grpc"));
  EXPECT_TRUE(Parse({"--engine", "mock", "--mock-itl-ms", "5"}).ok());
  // Said of every model, and one of them has the engine.
  EXPECT_TRUE(
      Parse({"--mock-itl-ms", "5", "--model-path", "/a", "--model-path", "/b", "--engine", "mock"})
          .ok());
}

}  // namespace
}  // namespace portico
