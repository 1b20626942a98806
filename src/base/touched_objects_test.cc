#include "base/touched_objects.h"

#include <gtest/gtest.h>

#include <thread>

namespace portico {
namespace {

TEST(TouchedObjects, AreThoseThatSayItDuringARecording) {
  int objects[3] = {};
  TouchedObjects touched;
  NoteTouched(&objects[0], sizeof(int));
  EXPECT_EQ(touched.size(), 0u);
  {
    const TouchRecording recording(&touched);
    NoteTouched(&objects[1], sizeof(int));
    NoteTouched(&objects[1], sizeof(int));
    EXPECT_EQ(touched.size(), 1u);
    TouchedObjects inner;
    {
      const TouchRecording nested(&inner);
      NoteTouched(&objects[2], sizeof(int));
    }
    EXPECT_EQ(inner.size(), 1u);
    EXPECT_EQ(touched.size(), 1u);
    std::thread([&] { NoteTouched(&objects[2], sizeof(int)); }).join();
    EXPECT_EQ(touched.size(), 1u);
    NoteTouched(&objects[2], sizeof(int));
  }
  NoteTouched(&objects[0], sizeof(int));
  EXPECT_EQ(touched.size(), 2u);
}

TEST(TouchedObjects, AreAFewAndNeedNotExistAnyMore) {
  TouchedObjects touched;
  const char object[100] = {};
  for (size_t i = 0; i < sizeof(object); ++i) touched.Add(object + i, 1 << 20);
  EXPECT_EQ(touched.size(), TouchedObjects::kMost);
  touched.Add(nullptr, 64);
  for (size_t i = 0; i <= TouchedObjects::kMost; ++i) touched.Prefetch(i);
  TouchedObjects nowhere;
  nowhere.Add(nullptr, 64);
  nowhere.Prefetch(0);
}

}  // namespace
}  // namespace portico
