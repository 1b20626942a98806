#include "service/each_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace portico {
namespace {

// An engine that is alive or not, and does nothing.
class StillEngine final : public Engine {
 public:
  explicit StillEngine(bool alive) : alive_(alive) {}
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest, TokenSink*) override { return OkStatus(); }
  void Abort(StreamId) override {}
  EngineLoad load() const override {
    EngineLoad load;
    load.healthy = alive_;
    return load;
  }
  Status FlushCache() override { return OkStatus(); }
  void Stop() override {}

 private:
  EngineInfo info_;
  const bool alive_;
};

class ForEachEngineTest : public testing::Test {
 protected:
  void Serve(std::vector<std::pair<std::string, bool>> models) {
    for (auto& [id, alive] : models) {
      auto model = std::make_unique<ServingModel>();
      model->id = id;
      model->engine = std::make_unique<StillEngine>(alive);
      engines_.push_back(model->engine.get());
      models_.Add(std::move(model));
    }
    models_.Publish();
  }

  // The places of the engines that are called; the call fails for those in `failing`.
  Status Call(std::string_view name, std::vector<size_t> failing = {}) {
    called_.clear();
    return ForEachEngine(models_, name, [&](Engine& engine) {
      size_t at = 0;
      while (engines_[at] != &engine) ++at;
      called_.push_back(at);
      const bool fails = std::find(failing.begin(), failing.end(), at) != failing.end();
      return fails ? Error(StatusCode::kFailedPrecondition, "busy") : OkStatus();
    });
  }

  using Places = std::vector<size_t>;
  ModelRegistry models_;
  std::vector<const Engine*> engines_;
  Places called_;
};

TEST_F(ForEachEngineTest, IsRefusedWhileTheModelsLoad) {
  EXPECT_EQ(Call("").code(), StatusCode::kUnavailable);
  EXPECT_EQ(called_, Places());
}

TEST_F(ForEachEngineTest, CallsTheNamedOneOnlyOrAll) {
  Serve({{"a", true}, {"b", true}});
  EXPECT_TRUE(Call("").ok());
  EXPECT_EQ(called_, Places({0, 1}));
  EXPECT_TRUE(Call("b").ok());
  EXPECT_EQ(called_, Places({1}));
  EXPECT_EQ(Call("c").code(), StatusCode::kNotFound);
  EXPECT_EQ(called_, Places());
}

TEST_F(ForEachEngineTest, GoesOnAfterAnErrorAndNamesTheModel) {
  Serve({{"a", true}, {"b", true}});
  const Status status = Call("", {0});
  EXPECT_EQ(called_, Places({0, 1}));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(status), "model `a`: busy");
  EXPECT_EQ(MessageOf(Call("", {1})), "model `b`: busy");
  EXPECT_EQ(MessageOf(Call("b", {1})), "busy");
}

TEST_F(ForEachEngineTest, LeavesDeadEnginesOutUnlessAllAreDeadOrOneIsNamed) {
  Serve({{"a", false}, {"b", true}});
  EXPECT_TRUE(Call("").ok());
  EXPECT_EQ(called_, Places({1}));
  EXPECT_TRUE(Call("a").ok());
  EXPECT_EQ(called_, Places({0}));
}

TEST_F(ForEachEngineTest, AsksADeadEngineWhereThereIsNoOther) {
  Serve({{"a", false}});
  EXPECT_EQ(MessageOf(Call("", {0})), "busy");
}

}  // namespace
}  // namespace portico
