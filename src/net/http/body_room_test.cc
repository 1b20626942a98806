#include "net/http/body_room.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "base/sanitized_for_test.h"

namespace portico::net {
namespace {

// A body of 30 MB was moved nine times while it came, the last time with 16 MiB, and all streams of the shard waited.
TEST(BodyRoom, ALongBodyIsNotMovedAgainAndCountsForWhatHasComeOfIt) {
  constexpr size_t kWhole = 30'000'000;
  const auto budget = std::make_shared<BodyBudget>(size_t{64} << 20);
  BodyLease lease;
  std::string body;
  size_t moved = 0;
  const std::string piece(50'000, 'a');
  for (size_t left = kWhole; left > 0; left -= piece.size()) {
    const char* const before = body.data();
    const size_t held = body.size();
    ASSERT_TRUE(MakeBodyRoom(&body, piece.size(), kWhole, budget, &lease));
    if (body.data() != before) moved = std::max(moved, held);
    EXPECT_GE(body.capacity(), body.size() + piece.size() + kBodyPadding);
    body += piece;
    EXPECT_LE(budget->taken(),
              std::max(2 * body.size() + 2 * kBodyPadding, BodyBudget::kSmallBody));
    EXPECT_GE(budget->taken() + BodyBudget::kSmallBody, body.size());
  }
  EXPECT_LE(moved, kMostMoved);
  EXPECT_EQ(budget->taken(), kWhole + kBodyPadding);
}

TEST(BodyRoom, ABodyThatTheBudgetCannotHoldIsRefusedWhereItOutgrowsIt) {
  const auto budget = std::make_shared<BodyBudget>(size_t{1} << 20);
  BodyLease lease;
  std::string body(600'000, 'a');
  EXPECT_TRUE(MakeBodyRoom(&body, 400'000, 2'000'000, budget, &lease));
  body.append(400'000, 'a');
  EXPECT_FALSE(MakeBodyRoom(&body, 400'000, 2'000'000, budget, &lease));
  lease.Release();
  EXPECT_EQ(budget->taken(), 0u);
}

// While it lives, this process gets no more than so many bytes of addresses, as where the system does not overcommit.
class FewAddresses {
 public:
  explicit FewAddresses(size_t more) {
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit few = before_;
    few.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more;
    setrlimit(RLIMIT_AS, &few);
  }
  ~FewAddresses() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_ = {};
};

// Nothing caught it: the process ended for one body.
TEST(BodyRoom, WithoutMemoryForAllABodyGetsWhatItNeedsOrIsRefused) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has addresses of its own";
  constexpr size_t kWhole = size_t{1} << 30;
  BodyLease lease;
  std::string body(3'000'000, 'a');
  bool fits = false;
  bool fits_more = true;
  {
    const FewAddresses few(size_t{64} << 20);
    fits = MakeBodyRoom(&body, 100'000, kWhole, nullptr, &lease);
    fits_more = MakeBodyRoom(&body, kMostRoom, kWhole, nullptr, &lease);
  }
  EXPECT_TRUE(fits);
  EXPECT_FALSE(fits_more);
  EXPECT_GE(body.capacity(), 3'100'000 + kBodyPadding);
  EXPECT_LT(body.capacity(), kMostRoom);
  EXPECT_EQ(body.size(), 3'000'000u);
}

}  // namespace
}  // namespace portico::net
