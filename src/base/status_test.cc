#include "base/status.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

// The table from codes to HTTP and gRPC, row by row. Codes inside are gRPC's own numbers.
struct Row {
  StatusCode code;
  int http;
  int grpc;
};

constexpr Row kRows[] = {
    {StatusCode::kOk, 200, 0},
    {StatusCode::kCancelled, 499, 1},
    {StatusCode::kUnknown, 500, 2},
    {StatusCode::kInvalidArgument, 400, 3},
    {StatusCode::kDeadlineExceeded, 504, 4},
    {StatusCode::kNotFound, 404, 5},
    {StatusCode::kAlreadyExists, 400, 6},  // a duplicate rid: as SGLang answers it
    {StatusCode::kPermissionDenied, 403, 7},
    {StatusCode::kResourceExhausted, 429, 8},
    {StatusCode::kFailedPrecondition, 400, 9},
    {StatusCode::kAborted, 409, 10},
    {StatusCode::kOutOfRange, 400, 11},
    {StatusCode::kUnimplemented, 501, 12},
    {StatusCode::kInternal, 500, 13},
    {StatusCode::kUnavailable, 503, 14},
    {StatusCode::kDataLoss, 500, 15},
    {StatusCode::kUnauthenticated, 401, 16},
};

TEST(StatusTest, EveryCodeHasItsHttpStatusAndItsGrpcNumber) {
  for (const Row& row : kRows) {
    EXPECT_EQ(HttpStatus(row.code), row.http) << absl::StatusCodeToString(row.code);
    EXPECT_EQ(static_cast<int>(row.code), row.grpc) << absl::StatusCodeToString(row.code);
  }
  EXPECT_EQ(std::size(kRows), 17u);
}

TEST(StatusTest, AStatusCarriesItsFieldAndReason) {
  const Status status = Error(StatusCode::kNotFound, "no such model", "model", "model_not_found");
  EXPECT_EQ(MessageOf(status), "no such model");
  EXPECT_EQ(FieldOf(status), "model");
  EXPECT_EQ(ReasonOf(status), "model_not_found");
  EXPECT_EQ(FieldOf(OkStatus()), "");
  EXPECT_EQ(ReasonOf(InvalidArgument("stop", "bad")), "");
  EXPECT_EQ(InvalidArgument("stop", "bad").code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace portico
