#include "grammar/compile/compile_supervisor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "grammar/grammar_for_test.h"

namespace portico::grammar {
namespace {

const GrammarText kText{GrammarKind::kChoice, R"(["yes","no"])"};

// The test has one thread, so that a plain fork will do.
struct Fixture {
  explicit Fixture(CompileSupervisor::Launch again)
      : supervisor(Start(), std::move(again), nullptr) {
    name = *supervisor.AddVocabulary(ByteVocabulary());
  }
  std::unique_ptr<CompileProcess> Start() {
    auto process = *CompileProcess::Start();
    latest = process.get();
    return process;
  }
  StatusOr<std::string> Compile() { return supervisor.Compile(name, kText, {}); }
  // Until it is known that the process is dead.
  void Kill() {
    latest->End();
    while (latest->alive()) std::this_thread::yield();
  }

  CompileProcess* latest = nullptr;
  CompileSupervisor supervisor;
  int32_t name = 0;
};

// A process that the kernel had ended for want of memory left a server that answered 503 to every grammar until its restart.
TEST(CompileSupervisor, ADeadProcessIsReplacedAndKnowsTheVocabularies) {
  Fixture* setup = nullptr;
  Fixture fixture([&setup] { return StatusOr<std::unique_ptr<CompileProcess>>(setup->Start()); });
  setup = &fixture;
  const StatusOr<std::string> first = fixture.Compile();
  ASSERT_TRUE(first.ok()) << first.status();
  fixture.Kill();
  const StatusOr<std::string> second = fixture.Compile();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*first, *second);
}

TEST(CompileSupervisor, ProcessesThatDieSoonAreReplacedLaterAndLater) {
  Fixture* setup = nullptr;
  int started = 0;
  Fixture fixture([&] {
    ++started;
    return StatusOr<std::unique_ptr<CompileProcess>>(setup->Start());
  });
  setup = &fixture;
  for (int i = 0; i < 3; ++i) {
    fixture.Kill();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    StatusOr<std::string> compiled = fixture.Compile();
    while (!compiled.ok() && std::chrono::steady_clock::now() < end) {
      EXPECT_EQ(compiled.status().code(), StatusCode::kUnavailable);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      compiled = fixture.Compile();
    }
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ(started, i + 1);
  }
}

TEST(CompileSupervisor, AnEndIsFinal) {
  Fixture* setup = nullptr;
  Fixture fixture([&setup] { return StatusOr<std::unique_ptr<CompileProcess>>(setup->Start()); });
  setup = &fixture;
  fixture.supervisor.End();
  EXPECT_EQ(fixture.Compile().status().code(), StatusCode::kUnavailable);
}

TEST(CompileSupervisor, AProcessThatCannotBeReplacedStaysDead) {
  Fixture fixture(nullptr);
  fixture.Kill();
  EXPECT_EQ(fixture.Compile().status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace portico::grammar
