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
            "f.yaml:3: dtype: `x` is not one of auto, float32, bfloat16");
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
