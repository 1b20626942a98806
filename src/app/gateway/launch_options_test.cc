#include "app/gateway/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "app/options/route_options.h"

namespace portico {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::Pair;

// The words behind "--port PORT".
std::vector<std::string> SglangWords(std::vector<std::string> flags, int rank) {
  flags.insert(flags.begin(), {"--engine", "sglang"});
  const auto options = ParseLaunchOptions(flags);
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return {};
  std::vector<std::string> words = LaunchedWorker(*options, rank, 31000).words;
  words.erase(words.begin(), words.begin() + 7);
  return words;
}

TEST(LaunchOptionsTest, TheNumberOfWorkersIsNotPassedOn) {
  // --dp 2 started one worker, which got the flag.
  for (const char* flag : {"--dp", "--dp-s", "--dp-size", "-dp", "--data-parallel-size"}) {
    const auto options = ParseLaunchOptions({flag, "2"});
    ASSERT_TRUE(options.ok()) << flag;
    EXPECT_EQ(options->workers, 2) << flag;
    EXPECT_TRUE(options->passed_on.empty()) << flag;
  }
  EXPECT_EQ(ParseLaunchOptions({"--dp=3"})->workers, 3);
  EXPECT_FALSE(ParseLaunchOptions({"--dp", "x"}).ok());
  EXPECT_FALSE(ParseLaunchOptions({"--dp"}).ok());
  // Flags that only begin as it does.
  const std::vector<std::string> others = {"--data-parallel-rank", "1", "--dp-sizes", "1"};
  EXPECT_EQ(ParseLaunchOptions(others)->passed_on, others);
}

TEST(LaunchOptionsTest, AFlagThatOnlyTheGatewayHasIsRefusedWithItsNameThere) {
  // The workers took --policy, or ended at once, and the gateway chose by another one.
  const auto error = [](const std::vector<std::string>& words) {
    const auto options = ParseLaunchOptions(words);
    return options.ok() ? std::string() : std::string(MessageOf(options.status()));
  };
  for (const char* engine : {"llama", "mock", "sglang", "vllm"}) {
    EXPECT_EQ(error({"--engine", engine, "--policy=random"}),
              "--policy is no flag of the workers; the gateway's is --router-policy");
  }
  EXPECT_EQ(error({"--engine", "mock", "--worker-max-requests", "3"}),
            "--worker-max-requests is no flag of the workers; the gateway's is "
            "--router-worker-max-requests");
  // Another server's flags are its own, and so are those that both have.
  EXPECT_EQ(error({"--engine", "sglang", "--worker-max-requests", "3"}), "");
  EXPECT_EQ(error({"--worker-command", "run {port}", "--policy", "random"}), "");
  EXPECT_EQ(error({"--engine", "mock", "--log-level", "info", "--config", "serve.yaml"}), "");
}

TEST(LaunchOptionsTest, WorkersInSglangsGrpcModeTakeTokens) {
  // They were asked over HTTP, and never healthy.
  for (const char* flag : {"--smg-grpc-mode", "--grpc-mode"}) {
    const auto options = ParseLaunchOptions({"--engine", "sglang", "--tp", "2", flag});
    ASSERT_TRUE(options.ok());
    EXPECT_TRUE(WorkersTakeTokens(*options)) << flag;
    EXPECT_THAT(SglangWords({flag}, 0), ElementsAre("--base-gpu-id", "0", flag));
  }
  // What argparse takes for it too, of which nothing was known; no other flag that begins like it.
  for (const char* flag : {"--smg-grpc", "--smg-g", "--grpc-m"}) {
    EXPECT_TRUE(WorkersTakeTokens(*ParseLaunchOptions({"--engine", "sglang", flag}))) << flag;
  }
  for (const char* flag : {"--smg-http-sidecar-port", "--grpc-port", "--grpc-mode-x", "--grpc-"}) {
    EXPECT_FALSE(WorkersTakeTokens(*ParseLaunchOptions({"--engine", "sglang", flag, "1"}))) << flag;
  }
  EXPECT_FALSE(WorkersTakeTokens(*ParseLaunchOptions({"--engine", "sglang"})));
  EXPECT_FALSE(WorkersTakeTokens(*ParseLaunchOptions(
      {"--engine", "sglang", "--worker-command", "run {port}", "--grpc-mode"})));
}

TEST(LaunchOptionsTest, WorkersDoNotShareAPortOfTheirFlags) {
  // All of them got it, and only the first one's metrics could be read.
  const auto error = [](std::vector<std::string> words, const char* engine, const char* workers) {
    words.insert(words.begin(), {"--engine", engine, "--dp-size", workers});
    const auto options = ParseLaunchOptions(words);
    return options.ok() ? std::string() : std::string(MessageOf(options.status()));
  };
  EXPECT_EQ(error({"--smg-grpc-mode", "--smg-http-sidecar-port", "40000"}, "sglang", "2"),
            "--smg-http-sidecar-port names one port, and there are 2 workers: leave it out, or "
            "start the workers yourself");
  for (const char* flag : {"--smg-http-sidecar-port", "--grpc-http-sidecar-port", "--grpc-port",
                           "--smg-h", "--grpc-p"}) {
    EXPECT_NE(error({flag, "40000"}, "sglang", "2"), "") << flag;
    EXPECT_NE(error({std::string(flag) + "=40000"}, "sglang", "2"), "") << flag;
    EXPECT_EQ(error({flag, "40000"}, "sglang", "1"), "") << flag;
    EXPECT_EQ(error({flag, "40000"}, "vllm", "2"), "") << flag;
    EXPECT_EQ(error({flag, "40000", "--worker-command", "run"}, "sglang", "2"), "") << flag;
  }
  EXPECT_EQ(error({"--smg-grpc-mode", "--grpc-worker-threads", "2"}, "sglang", "2"), "");
}

TEST(LaunchOptionsTest, WorkersDoNotShareGpus) {
  // --tp was not seen: all but the first GPU of a worker were also the next one's.
  for (const char* flag :
       {"--tp", "--tp-size", "-tp", "--tensor-parallel-size", "--tensor-parallel-s"}) {
    EXPECT_THAT(SglangWords({flag, "4"}, 0), ElementsAre("--base-gpu-id", "0", flag, "4"));
    EXPECT_THAT(SglangWords({flag, "4"}, 2), ElementsAre("--base-gpu-id", "8", flag, "4"));
  }
  EXPECT_THAT(SglangWords({"--tp", "4", "--pp-size", "2"}, 1),
              ElementsAre("--base-gpu-id", "8", "--tp", "4", "--pp-size", "2"));
  EXPECT_THAT(SglangWords({}, 3), ElementsAre("--base-gpu-id", "3"));
}

TEST(LaunchOptionsTest, ABaseGpuIdIsThatOfTheFirstWorker) {
  // It was passed on behind launch's own, so that all workers began at the same GPU.
  EXPECT_THAT(SglangWords({"--base-gpu-id", "2", "--tp", "2"}, 0),
              ElementsAre("--base-gpu-id", "2", "--tp", "2"));
  EXPECT_THAT(SglangWords({"--base-gpu-id=2", "--tp=2"}, 1),
              ElementsAre("--base-gpu-id", "4", "--tp=2"));
  EXPECT_THAT(SglangWords({"--gpu-id-step", "2", "--tp", "2"}, 1),
              ElementsAre("--base-gpu-id", "4", "--gpu-id-step", "2", "--tp", "2"));
  EXPECT_FALSE(ParseLaunchOptions({"--base-gpu-id", "-1"}).ok());
}

TEST(LaunchOptionsTest, VllmIsShownItsGpusAlone) {
  const auto options = ParseLaunchOptions(
      {"--engine", "vllm", "--model", "m", "-tp", "2", "--base-gpu-id", "1", "--dp", "2"});
  ASSERT_TRUE(options.ok());
  const WorkerCommand command = LaunchedWorker(*options, 1, 31001);
  EXPECT_THAT(command.words, ElementsAre("vllm", "serve", "m", "--host", "127.0.0.1", "--port",
                                         "31001", "-tp", "2"));
  ASSERT_EQ(command.environment.size(), 1u);
  EXPECT_EQ(command.environment[0].second, "3,4");
}

TEST(LaunchOptionsTest, AWordThatNoFlagTakesIsVllmsModel) {
  // vLLM got an empty one, and this word at the end.
  for (const auto& words :
       {std::vector<std::string>{"--engine", "vllm", "org/m", "--max-model-len", "4096"},
        std::vector<std::string>{"org/m", "--dp", "2", "--engine=vllm", "--max-model-len", "4096"},
        std::vector<std::string>{"--engine", "vllm", "--dp", "2", "org/m", "--max-model-len",
                                 "4096"}}) {
    const auto options = ParseLaunchOptions(words);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(CheckModelNamed(*options), OkStatus());
    EXPECT_THAT(LaunchedWorker(*options, 0, 31000).words,
                ElementsAre("vllm", "serve", "org/m", "--host", "127.0.0.1", "--port", "31000",
                            "--max-model-len", "4096"));
  }
  EXPECT_FALSE(ParseLaunchOptions({"--engine", "vllm", "a", "--model", "b"}).ok());
  EXPECT_FALSE(ParseLaunchOptions({"--engine", "sglang", "a"}).ok());
  EXPECT_FALSE(ParseLaunchOptions({"a"}).ok());
}

TEST(LaunchOptionsTest, EnginesWithoutAModelOfTheirOwnNeedOne) {
  // They were started without one, again and again.
  const auto named = [](const std::vector<std::string>& words) {
    return std::string(MessageOf(CheckModelNamed(*ParseLaunchOptions(words))));
  };
  EXPECT_EQ(named({"--engine", "sglang", "--tp", "2"}), "--engine sglang needs --model-path MODEL");
  EXPECT_EQ(named({"--engine", "vllm"}), "--engine vllm needs --model-path MODEL");
  EXPECT_EQ(named({"--engine", "sglang", "--model-p", "m"}), "");
  EXPECT_EQ(named({"--engine", "vllm", "--model=m"}), "");
  EXPECT_EQ(named({"--engine", "vllm", "--worker-command", "run"}), "");
  EXPECT_EQ(named({"--engine", "mock"}), "");
  // The file may name it.
  EXPECT_EQ(named({"--engine", "vllm", "--config", "c.yaml"}), "");
  EXPECT_THAT(
      LaunchedWorker(*ParseLaunchOptions({"--engine", "vllm", "--config", "c.yaml"}), 0, 1).words,
      ElementsAre("vllm", "serve", "--host", "127.0.0.1", "--port", "1", "--config", "c.yaml"));
}

TEST(LaunchOptionsTest, SglangsPythonCanBeAnother) {
  const auto options =
      ParseLaunchOptions({"--engine", "sglang", "--sglang-python", "/opt/python", "--model", "m"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(LaunchedWorker(*options, 0, 31000).words[0], "/opt/python");
  EXPECT_THAT(options->passed_on, IsEmpty());
}

TEST(LaunchOptionsTest, ACommandOfTheUsersGetsItsModel) {
  // It was dropped without a word.
  const auto options = ParseLaunchOptions({"--worker-command", "run {port}", "--model", "m"});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(LaunchedWorker(*options, 0, 31000).words,
              ElementsAre("run", "31000", "--model", "m"));
}

TEST(LaunchOptionsTest, ACommandOfTheUsersGetsItsFlagsAsTheyAre) {
  const auto options = ParseLaunchOptions(
      {"--worker-command", "run {port} {rank}", "--base-gpu-id", "1", "--tp", "2"});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(LaunchedWorker(*options, 1, 31001).words,
              ElementsAre("run", "31001", "1", "--base-gpu-id", "1", "--tp", "2"));
}

// Of a launch with these words, without an environment.
StatusOr<GatewayServiceOptions> Launched(const std::vector<std::string>& words) {
  PORTICO_ASSIGN_OR_RETURN(const LaunchOptions options, ParseLaunchOptions(words));
  PORTICO_ASSIGN_OR_RETURN(auto route, ParseRouteOptions(options.router, "router-"));
  AddStarted(options.worker_key, {"http://127.0.0.1:31000"}, &route.options);
  return ServiceOptionsOf(route.options);
}

// The gateway's own routes were open, and it could not ask its workers for their models.
TEST(LaunchOptionsTest, TheWorkersKeyIsTheGatewaysToo) {
  for (const auto& words :
       {std::vector<std::string>{"--api-key", "k"}, std::vector<std::string>{"--api-key=k"},
        std::vector<std::string>{"--api-k", "k"}}) {
    EXPECT_THAT(ParseLaunchOptions(words)->passed_on, ElementsAreArray(words));
    const auto service = Launched(words);
    ASSERT_TRUE(service.ok()) << service.status();
    EXPECT_EQ(service->api_key, "k");
    // Workers that are only named got it.
    EXPECT_EQ(service->gateway.api_key, "");
    EXPECT_THAT(service->gateway.kept_keys, ElementsAre("k"));
  }
  EXPECT_FALSE(ParseLaunchOptions({"--api-key", "k\n"}).ok());
  EXPECT_FALSE(ParseLaunchOptions({"--api-key="}).ok());
}

// The workers' key took the place of the clients' where that stood in the file, or behind a shorter flag.
TEST(LaunchOptionsTest, AKeyThatIsNamedForClientsIsTheirs) {
  const std::string file = testing::TempDir() + "launch_key.yaml";
  std::ofstream(file) << "api-key: clients\n";
  const std::pair<std::string, std::string> named[] = {
      {"--router-api-key", "clients"}, {"--router-api-k", "clients"}, {"--router-config", file}};
  for (const auto& [flag, value] : named) {
    const auto service = Launched({"--api-key", "k", flag, value});
    ASSERT_TRUE(service.ok()) << service.status();
    EXPECT_EQ(service->api_key, "clients") << flag;
    EXPECT_EQ(service->gateway.api_key, "clients");
    EXPECT_THAT(service->gateway.kept_keys, IsEmpty());
  }
  EXPECT_FALSE(Launched({"--api-key", "k", "--router-api-key="}).ok());
}

// vLLM's workers were open to all users of the machine if the key stood in the environment alone.
TEST(LaunchOptionsTest, VllmReadsTheKeyInItsEnvironment) {
  auto options = ParseLaunchOptions({"--engine", "vllm", "--model", "m"});
  ASSERT_TRUE(options.ok());
  options->worker_key = "k";
  EXPECT_THAT(LaunchedWorker(*options, 0, 31000).environment, Contains(Pair("VLLM_API_KEY", "k")));
}

// Python's argparse takes a word that begins with `-` for a flag, not for the value of the word before it.
TEST(LaunchOptionsTest, AKeyThatBeginsWithADashStaysBehindItsFlag) {
  const auto options = ParseLaunchOptions({"--api-key=-abc"});
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->passed_on, ElementsAre("--api-key=-abc"));
  EXPECT_EQ(options->worker_key, "-abc");
}

}  // namespace
}  // namespace portico
