#include "service/control/each_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace portico {
namespace {

// An engine that is alive or not, and tells who asks.
class StillEngine final : public Engine {
 public:
  using Asked = std::function<void(const StillEngine&, ControlDone)>;
  StillEngine(bool alive, Asked asked) : alive_(alive), asked_(std::move(asked)) {}
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest, TokenSink*) override { return OkStatus(); }
  void Abort(StreamId, ShardIndex) override {}
  EngineLoad load() const override {
    EngineLoad load;
    load.healthy = alive_;
    return load;
  }
  void Control(EngineControl, TimePoint, ControlDone done) override {
    asked_(*this, std::move(done));
  }
  void Stop() override {}

 private:
  EngineInfo info_;
  const bool alive_;
  const Asked asked_;
};

class ControlEnginesTest : public testing::Test {
 protected:
  void Serve(std::vector<std::pair<std::string, bool>> models) {
    for (auto& [id, alive] : models) {
      auto model = std::make_unique<ServingModel>();
      model->id = id;
      model->engine = std::make_unique<StillEngine>(
          alive,
          [this](const StillEngine& engine, ControlDone done) { Take(engine, std::move(done)); });
      engines_.push_back(model->engine.get());
      models_.Add(std::move(model));
    }
    models_.Publish();
  }

  void Take(const Engine& engine, ControlDone done) {
    size_t at = 0;
    while (engines_[at] != &engine) ++at;
    called_.push_back(at);
    if (later_) return waiting_.push_back(std::move(done));
    const bool fails = std::find(failing_.begin(), failing_.end(), at) != failing_.end();
    done(fails ? Error(StatusCode::kFailedPrecondition, "busy") : OkStatus());
  }

  // called_ has the places of the engines that are asked; it fails for those in `failing`.
  Status Call(std::string_view name, std::vector<size_t> failing = {}) {
    called_.clear();
    failing_ = std::move(failing);
    answer_ = Error(StatusCode::kUnknown, "not called");
    ControlEngines(models_, name, ContinueControl{}, TimePoint::max(), [this](Status status) {
      EXPECT_EQ(answer_.code(), StatusCode::kUnknown) << "called twice";
      answer_ = std::move(status);
    });
    return answer_;
  }

  using Places = std::vector<size_t>;
  ModelRegistry models_;
  std::vector<const Engine*> engines_;
  Places called_;
  Places failing_;
  Status answer_;
  bool later_ = false;
  std::vector<ControlDone> waiting_;
};

TEST_F(ControlEnginesTest, IsRefusedWhileTheModelsLoad) {
  EXPECT_EQ(Call("").code(), StatusCode::kUnavailable);
  EXPECT_EQ(called_, Places());
}

TEST_F(ControlEnginesTest, CallsTheNamedOneOnlyOrAll) {
  Serve({{"a", true}, {"b", true}});
  EXPECT_TRUE(Call("").ok());
  EXPECT_EQ(called_, Places({0, 1}));
  EXPECT_TRUE(Call("b").ok());
  EXPECT_EQ(called_, Places({1}));
  EXPECT_EQ(Call("c").code(), StatusCode::kNotFound);
  EXPECT_EQ(called_, Places());
}

TEST_F(ControlEnginesTest, GoesOnAfterAnErrorAndNamesTheModel) {
  Serve({{"a", true}, {"b", true}});
  const Status status = Call("", {0});
  EXPECT_EQ(called_, Places({0, 1}));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(status), "model `a`: busy");
  EXPECT_EQ(MessageOf(Call("", {1})), "model `b`: busy");
  EXPECT_EQ(MessageOf(Call("b", {1})), "busy");
}

TEST_F(ControlEnginesTest, LeavesDeadEnginesOutUnlessAllAreDeadOrOneIsNamed) {
  Serve({{"a", false}, {"b", true}});
  EXPECT_TRUE(Call("").ok());
  EXPECT_EQ(called_, Places({1}));
  EXPECT_TRUE(Call("a").ok());
  EXPECT_EQ(called_, Places({0}));
}

TEST_F(ControlEnginesTest, AsksADeadEngineWhereThereIsNoOther) {
  Serve({{"a", false}});
  EXPECT_EQ(MessageOf(Call("", {0})), "busy");
}

TEST_F(ControlEnginesTest, IsDoneWhenTheLastEngineHasAnswered) {
  Serve({{"a", true}, {"b", true}});
  later_ = true;
  EXPECT_EQ(Call("").code(), StatusCode::kUnknown);
  ASSERT_EQ(waiting_.size(), 2u);
  waiting_[1](OkStatus());
  EXPECT_EQ(answer_.code(), StatusCode::kUnknown);
  waiting_[0](Error(StatusCode::kDeadlineExceeded, "late"));
  EXPECT_EQ(MessageOf(answer_), "model `a`: late");
}

}  // namespace
}  // namespace portico
