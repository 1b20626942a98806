#include "router/fleet/worker_set.h"

#include <gtest/gtest.h>

#include <memory>

#include "router/policy/make_policy.h"

namespace portico::router {
namespace {

WorkerRegistry MakeRegistry() {
  return WorkerRegistry([](Role, const std::string&) -> std::shared_ptr<Policy> {
    return *MakePolicy("round_robin", {});
  });
}

WorkerSpec SpecWithLabel(const std::string& url, const std::string& label) {
  WorkerSpec spec = *ParseWorkerUrl(url);
  spec.labels = {{"label", label}};
  return spec;
}

TEST(WorkerRegistryTest, AReplacementIsOneStep) {
  // A worker of which something had changed was removed before it was added again, and requests
  // that came meanwhile found none.
  WorkerRegistry registry = MakeRegistry();
  const WorkerPtr a = *registry.Add(SpecWithLabel("http://a:1", "old"), {});
  const WorkerPtr b = *registry.Add(SpecWithLabel("http://b:1", "old"), {});
  const uint64_t before = registry.version();
  const auto replaced = registry.Replace(
      {a, b}, {SpecWithLabel("http://a:1", "new"), SpecWithLabel("http://c:1", "new")}, {});
  EXPECT_EQ(registry.version(), before + 1);
  EXPECT_EQ(replaced.removed.size(), 2u);
  EXPECT_EQ(replaced.added.size(), 2u);
  EXPECT_TRUE(replaced.refused.empty());
  const WorkerSetPtr set = registry.set();
  ASSERT_EQ(set->workers().size(), 2u);
  EXPECT_EQ(set->workers()[0]->spec().labels[0].second, "new");
  EXPECT_EQ(set->all().workers.size(), 2u);
}

TEST(WorkerRegistryTest, OfAReplacementWhatIsThereIsRefusedAndTheRestAdded) {
  WorkerRegistry registry = MakeRegistry();
  const WorkerPtr a = *registry.Add(*ParseWorkerUrl("http://a:1"), {});
  const auto replaced =
      registry.Replace({}, {*ParseWorkerUrl("http://a:1"), *ParseWorkerUrl("http://b:1")}, {});
  EXPECT_EQ(replaced.added.size(), 1u);
  ASSERT_EQ(replaced.refused.size(), 1u);
  EXPECT_EQ(replaced.refused.front().code(), StatusCode::kAlreadyExists);
  const uint64_t before = registry.version();
  EXPECT_TRUE(registry.Replace({}, {*ParseWorkerUrl("http://a:1")}, {}).added.empty());
  EXPECT_EQ(registry.version(), before) << "nothing has changed";
}

TEST(WorkerRegistryTest, PrefillAndDecodeWorkersAreOfOneTransport) {
  WorkerRegistry registry = MakeRegistry();
  WorkerSpec prefill = *ParseWorkerUrl("http://a:1");
  prefill.role = Role::kPrefill;
  WorkerSpec decode = *ParseWorkerUrl("grpc://b:1");
  decode.role = Role::kDecode;
  const WorkerPtr there = *registry.Add(prefill, {});
  const auto refused = registry.Add(decode, {});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(refused.status()), "url");
  prefill = *ParseWorkerUrl("grpcs://a:1");
  prefill.role = Role::kPrefill;
  const auto replaced = registry.Replace({there}, {prefill, decode}, {});
  EXPECT_EQ(replaced.added.size(), 2u) << "one that goes does not count";
  EXPECT_TRUE(registry.Add(*ParseWorkerUrl("http://c:1"), {}).ok()) << "a regular one";
}

TEST(WorkerRegistryTest, GroupsAreThatOfAllWorkersAndThoseOfModels) {
  WorkerRegistry registry = MakeRegistry();
  WorkerSpec one = *ParseWorkerUrl("http://a:1");
  one.models = {"one"};
  WorkerSpec two = *ParseWorkerUrl("http://b:1");
  two.models = {"two"};
  registry.Replace({}, {one, two}, {});
  const WorkerSetPtr set = registry.set();
  const auto groups = set->groups(Role::kRegular);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0], &set->all());
  EXPECT_EQ(groups[1]->model, "one");
  EXPECT_EQ(groups[2]->model, "two");
  EXPECT_TRUE(set->groups(Role::kDecode).empty());
}

}  // namespace
}  // namespace portico::router
