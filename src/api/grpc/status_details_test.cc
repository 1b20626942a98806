#include "api/grpc/status_details.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace portico::api::rpc {
namespace {

TEST(StatusDetails, NameTheFieldAtFault) {
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(StatusDetails(InvalidArgument("top_p", "top_p is bad"))));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), "top_p is bad");
  google::rpc::BadRequest bad;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "top_p");
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.BadRequest");
}

TEST(StatusDetails, SayWhenToTryAgain) {
  google::rpc::Status details;
  const Status full = Error(StatusCode::kResourceExhausted, "the queue is full");
  ASSERT_TRUE(details.ParseFromString(StatusDetails(full)));
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(0).UnpackTo(&retry));
  EXPECT_GT(retry.retry_delay().seconds(), 0);
}

TEST(StatusDetails, AreLeftOutWhereThereIsNothingToSay) {
  EXPECT_EQ(StatusDetails(Error(StatusCode::kInternal, "oops")), "");
}

}  // namespace
}  // namespace portico::api::rpc
