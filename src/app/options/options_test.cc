#include "app/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "app/options/options_for_test.h"
#include "app/options/options_table.h"
#include "base/source_dir_for_test.h"

namespace portico {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Options, HaveTheDefaultsOfSglang) {
  const auto parsed = ParseServe({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(parsed->print_and_exit.has_value());
  EXPECT_EQ(parsed->options.host, "127.0.0.1");
  EXPECT_EQ(parsed->options.port, 30000);
  EXPECT_EQ(parsed->options.models.front().engine, "llama");
  EXPECT_EQ(parsed->options.models.front().dtype, "auto");
  EXPECT_EQ(parsed->options.models.front().max_queued_requests, 1024);
  EXPECT_EQ(parsed->options.max_body_bytes, 33554432);
  EXPECT_EQ(parsed->options.max_head_bytes, 65536);
}

TEST(Options, AllHaveDefaultsThatTheirOwnChecksAccept) {
  ServeOptions options;
  for (const Option& option : ServeOptionTable()) {
    if (option.secret) continue;  // none is the default, and an empty one is refused
    const std::string text = OptionText(option, ServeOptions{}, ModelOptions{});
    EXPECT_TRUE(SetOption(option, text, &options, &options.models.front()).ok())
        << option.name << " " << text;
    EXPECT_EQ(OptionText(option, options, options.models.front()), text);
  }
  EXPECT_TRUE(CheckOptions(options).ok());
}

TEST(Options, ReadEveryKindOfValue) {
  const auto parsed = ParseServe({"--model", "/m", "--port=8000", "--log-requests", "--mock-itl-ms",
                                  "2.5", "--max-body-bytes", "8MiB", "--max-total-tokens",
                                  "5000000000", "--dtype", "float32", "--engine", "mock"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.models.front().model_path, "/m");
  EXPECT_EQ(parsed->options.port, 8000);
  EXPECT_TRUE(parsed->options.log_requests);
  EXPECT_EQ(parsed->options.models.front().mock_itl_ms, 2.5);
  EXPECT_EQ(parsed->options.max_body_bytes, 8388608);
  EXPECT_EQ(parsed->options.models.front().max_total_tokens, 5000000000);
  EXPECT_EQ(parsed->options.models.front().dtype, "float32");
}

TEST(Options, TakeTheLastOfSeveralValues) {
  const auto parsed =
      ParseServe({"--port", "1", "--log-requests", "--port", "2", "--log-requests=false"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.port, 2);
  EXPECT_FALSE(parsed->options.log_requests);
}

TEST(Options, LeaveTextAsItIs) {
  for (const char* text : {"{{ messages }}", "[a,b]", "\"quoted\"", "{% if x %}\n{% endif %}", "",
                           "a b", "%%", "'x'", "[]", "{}"}) {
    const auto parsed = ParseServe({"--chat-template", text});
    ASSERT_TRUE(parsed.ok()) << parsed.status() << " " << text;
    EXPECT_EQ(parsed->options.models.front().chat_template, text);
  }
}

TEST(Options, SayInOneLineWhatIsWrongWithAValue) {
  EXPECT_EQ(ErrorOf({"--port", "70000"}), "--port: 70000 is not in 0..65535");
  EXPECT_EQ(ErrorOf({"--port", "-1"}), "--port: -1 is not in 0..65535");
  EXPECT_EQ(ErrorOf({"--port", "99999999999999999999"}),
            "--port: 99999999999999999999 is not in 0..65535");
  EXPECT_EQ(ErrorOf({"--port", "80a"}), "--port: `80a` is not a whole number");
  EXPECT_EQ(ErrorOf({"--port", "1.5"}), "--port: `1.5` is not a whole number");
  EXPECT_EQ(ErrorOf({"--dtype", "fp8"}),
            "--dtype: `fp8` is not one of auto, float32, bfloat16, float16");
  EXPECT_EQ(ErrorOf({"--dtype", "auto|float32"}),
            "--dtype: `auto|float32` is not one of auto, float32, bfloat16, float16");
  EXPECT_EQ(ErrorOf({"--mock-ttft-ms", "nan"}), "--mock-ttft-ms: `nan` is not a number");
  EXPECT_EQ(ErrorOf({"--log-requests=maybe"}), "--log-requests: `maybe` is not true or false");
  EXPECT_THAT(ErrorOf({"--max-body-bytes", "12X"}), HasSubstr("is not a number of bytes"));
  EXPECT_THAT(ErrorOf({"--max-body-bytes", "9223372036854775807GiB"}),
              HasSubstr("is not a number of bytes"));
  EXPECT_THAT(ErrorOf({"--max-head-bytes", "1"}), HasSubstr("is not in 1024..16777216 bytes"));
  EXPECT_EQ(ErrorOf({"--port"}), "--port: needs a value");
  EXPECT_EQ(ErrorOf({"--port", "--host", "x"}), "--port: needs a value");
  EXPECT_EQ(ErrorOf({"--config", "--port"}), "--config: needs a value");
  EXPECT_EQ(ErrorOf({"--model", "--port=1"}), "--model-path: needs a value");
}

TEST(Options, SuggestTheNearestNameOfAnUnknownFlag) {
  EXPECT_EQ(ErrorOf({"--prot", "1"}), "unknown flag --prot; did you mean --port?");
  EXPECT_EQ(ErrorOf({"--served-modelname=x"}),
            "unknown flag --served-modelname; did you mean --served-model-name?");
  EXPECT_EQ(ErrorOf({"--quite-another-thing"}),
            "unknown flag --quite-another-thing; --help lists all");
  EXPECT_EQ(ErrorOf({"-m", "x"}), "unknown flag -m; did you mean --model-path?");
  EXPECT_EQ(ErrorOf({"--generation-config", "vllm"}),
            "unknown flag --generation-config; did you mean --sampling-defaults? (vllm is openai "
            "here, auto is model)");
  EXPECT_EQ(ErrorOf({"--max-model-len=1"}),
            "unknown flag --max-model-len; did you mean --context-length?");
  EXPECT_EQ(ErrorOf({"--tp", "2"}),
            "unknown flag --tp: with --engine sglang, SGLang's own options follow a final --");
  EXPECT_EQ(
      ErrorOf({"model.gguf"}),
      "unexpected argument `model.gguf`; options begin with --, and --model-path names a model");
  EXPECT_EQ(ErrorOf({"-hf", "org/name"}),
            "unknown flag -hf; did you mean --model-path? (a hub id in the cache of Hugging Face: "
            "nothing is downloaded)");
}

TEST(Options, NameAllUnknownFlagsAtOnce) {
  // Each start named one of them.
  EXPECT_EQ(ErrorOf({"--model", "x.gguf", "-c", "4096", "-ngl", "99", "--jinja", "--port", "1",
                     "-n", "-1", "--jinja"}),
            "unknown flags: -c (did you mean --context-length?), -ngl (the embedded engine "
            "computes on the CPU), --jinja (chat templates are always rendered), -n (the length of "
            "an answer is its request's max_tokens)");
  EXPECT_EQ(ErrorOf({"org/name", "--jinja"}),
            "unexpected argument `org/name`; options begin with --, and --model-path names a "
            "model; unknown flag --jinja: chat templates are always rendered");
}

TEST(Options, SayWhereSglangsOwnFlagsStand) {
  // Those that were not in a list got only the advice to read the help.
  const std::string behind = "SGLang's own options follow a final --";
  for (const char* flag : {"--disable-cuda-graph", "--nnodes", "--device", "--log-level-http",
                           "--lora-paths", "--mem-fraction-static", "--new-flag-of-sglang"}) {
    EXPECT_EQ(ErrorOf({"--engine", "sglang", flag, "1"}),
              "unknown flag " + (flag + ("; " + behind)));
  }
  EXPECT_EQ(ErrorOf({"--prot", "1", "--engine=sglang"}),
            "unknown flag --prot; did you mean --port? " + behind);
  const TempFile file("engine: sglang\nmodel-path: m\n");
  EXPECT_EQ(ErrorOf({"--config", file.path().c_str(), "--nnodes", "2"}),
            "unknown flag --nnodes; " + behind);
}

TEST(Options, TakeOtherWordsForTypesOfWeights) {
  // vLLM's half and float were refused, and so was bf16, which is a type of the KV cache.
  for (const auto& [word, type] :
       {std::pair("half", "float16"), std::pair("fp16", "float16"), std::pair("float", "float32"),
        std::pair("bf16", "bfloat16"), std::pair("float16", "float16")}) {
    const auto parsed = ParseServe({"--engine", "sglang", "--dtype", word});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->options.models.front().dtype, type);
  }
  EXPECT_EQ(ErrorOf({"--dtype", "half"}),
            "--dtype: float16 needs --engine sglang; the embedded engine has auto, float32 and "
            "bfloat16");
}

TEST(Options, RefuseWhatDoesNotGoTogether) {
  EXPECT_EQ(ErrorOf({"--ssl-keyfile", "k"}), "--ssl-keyfile needs --ssl-certfile");
  EXPECT_EQ(ErrorOf({"--ssl-certfile", "c"}), "--ssl-certfile needs --ssl-keyfile");
  EXPECT_EQ(ErrorOf({"--ssl-ca-certs", "c"}), "--ssl-ca-certs needs --ssl-certfile");
  EXPECT_EQ(ErrorOf({"--grpc-port", "50051", "--disable-grpc"}),
            "--grpc-port and --disable-grpc exclude each other");
  EXPECT_THAT(ErrorOf({"--engine", "mock", "--mock-fault", "burn:1"}),
              HasSubstr("--mock-fault: no fault is called"));
  EXPECT_EQ(ErrorOf({"--enable-metrics=false"}), "--enable-metrics: metrics cannot be turned off");
  EXPECT_EQ(ErrorOf({"--enable-metrics", "--ssl-keyfile=k", "--ssl-certfile=c"}), "OK");
}

TEST(Options, RefuseLimitsOfMediaThatNobodyWouldKeep) {
  const auto error = [](const char* value) {
    return ErrorOf({"--limit-mm-data-per-request", value});
  };
  EXPECT_EQ(error(R"({"image": 4, "video": 0, "audio": 1024})"), "OK");
  EXPECT_EQ(error(R"([1])"), "--limit-mm-data-per-request: is not a JSON object");
  EXPECT_EQ(error(R"({"images": 4})"),
            "--limit-mm-data-per-request: images is none of image, video and audio");
  for (const char* most : {R"({"video": 1025})", R"({"video": -1})", R"({"video": "1"})"}) {
    EXPECT_EQ(error(most), "--limit-mm-data-per-request: video is not a whole number in 0..1024")
        << most;
  }
}

TEST(Options, ComeFromAFileUnlessTheCommandLineNamesThem) {
  const TempFile file(
      "# a comment\nport: 8000\nmodel_path: /from/file\nengine: mock\nmock-itl-ms: "
      "3\nlog-requests: true\n"
      "api-key: 12345\nmax-body-bytes: '1MiB'\n");
  const auto parsed = ParseServe({"--port", "9000", "--config", file.path().c_str()});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options.port, 9000);
  EXPECT_EQ(parsed->options.models.front().model_path, "/from/file");
  EXPECT_EQ(parsed->options.models.front().mock_itl_ms, 3);
  EXPECT_TRUE(parsed->options.log_requests);
  EXPECT_EQ(parsed->options.api_key, "12345");
  EXPECT_EQ(parsed->options.max_body_bytes, 1048576);
}

TEST(Options, NameTheKeyAndLineOfAnErrorInTheFile) {
  const auto error = [](const std::string& text) {
    OptionLayers layers;
    const Status status = ApplyOptionsYaml(text, "f.yaml", &layers);
    return status.ok() ? "OK" : std::string(MessageOf(status));
  };
  EXPECT_EQ(error(""), "OK");
  EXPECT_EQ(error("# only a comment\n"), "OK");
  EXPECT_EQ(error("host: x\nprot: 1\n"), "f.yaml:2: unknown key `prot`; did you mean `port`?");
  EXPECT_EQ(error("zzzzzzzz: 1\n"), "f.yaml:1: unknown key `zzzzzzzz`");
  EXPECT_EQ(error("\nport: 70000\n"), "f.yaml:2: port: 70000 is not in 0..65535");
  EXPECT_EQ(error("port: [1]\n"), "f.yaml:1: port: takes one value, not a list or a mapping");
  EXPECT_EQ(error("port:\n"), "f.yaml:1: port: has no value");
  EXPECT_EQ(error("port: \"80\"\n"), "f.yaml:1: port: `80` is text, not a number");
  EXPECT_EQ(error("log_requests: 'true'\n"),
            "f.yaml:1: log_requests: `true` is text, not true or false");
  EXPECT_EQ(error("log-requests: 1\n"), "f.yaml:1: log-requests: `1` is not true or false");
  EXPECT_EQ(error("port: 1\nhost: x\nport: 2\n"), "f.yaml:3: port: is set twice");
  EXPECT_EQ(error("model: a\nmodel-path: b\n"), "f.yaml:2: model-path: is set twice");
  EXPECT_THAT(error("- port\n"), HasSubstr("f.yaml:1: expected a mapping"));
  EXPECT_THAT(error("port: [1\n"), ContainsRegex("f.yaml:[0-9]+: "));
  EXPECT_EQ(error("port: 1\n---\nport: 2\n"), "f.yaml:3: a second document begins here");
  EXPECT_EQ(error("host: 'x\n\n"), "f.yaml:1: illegal EOF in scalar");
  EXPECT_EQ(error("port: 1\nhost: \xE4\n"), "f.yaml:2: the text is not UTF-8");
  EXPECT_EQ(error("---\nport: 1\n...\n"), "OK");
  EXPECT_THAT(error("? [a]\n: b\n"), HasSubstr("a key must be the name of an option"));
}

TEST(Options, RefuseAFileThatCannotBeRead) {
  const auto parsed = ParseServe({"--config", "/no/such/file.yaml"});
  EXPECT_EQ(parsed.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(parsed.status()),
            "--config: cannot read /no/such/file.yaml: No such file or directory");
  EXPECT_EQ(ErrorOf({"--config", "/tmp"}), "--config: cannot read /tmp: Is a directory");
}

TEST(Options, PrintHelpThatNamesEveryFlagAndItsDefault) {
  const auto parsed = ParseServe({"--help"});
  ASSERT_TRUE(parsed.ok());
  ASSERT_TRUE(parsed->print_and_exit.has_value());
  const std::string& help = *parsed->print_and_exit;
  for (const Option& option : ServeOptionTable()) {
    EXPECT_THAT(help, HasSubstr("--" + std::string(option.name)));
  }
  EXPECT_THAT(help, HasSubstr("[default: 30000]"));
  EXPECT_THAT(help, HasSubstr("[default: 32MiB]"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Options, LeaveSecretsOutOfTheDump) {
  ServeOptions options;
  options.api_key = "s3cret";
  options.port = 8000;
  const Json dump = OptionsAsJson(options);
  EXPECT_THAT(dump.Dump(), Not(HasSubstr("s3cret")));
  EXPECT_EQ(dump.Find("api_key"), nullptr);
  EXPECT_EQ(dump.GetInt("port", 0), 8000);
  EXPECT_EQ(dump.GetString("host"), "127.0.0.1");
  EXPECT_EQ(dump.GetInt("max_body_bytes", 0), 33554432);
}

// PORTICO_WRITE_DOCS=1 in the environment writes the file instead.
TEST(Options, AreDocumentedInDocsConfig) {
  const std::string path = SourceDir() + "/docs/config.md";
  if (std::getenv("PORTICO_WRITE_DOCS") != nullptr) std::ofstream(path) << OptionsMarkdown();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), OptionsMarkdown()) << "run app_test with PORTICO_WRITE_DOCS=1";
}

}  // namespace
}  // namespace portico
