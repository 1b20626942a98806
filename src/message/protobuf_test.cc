#include "message/protobuf.h"

#include <gtest/gtest.h>

#include "sglang/runtime/v1/sglang.pb.h"

namespace portico {
namespace {

using ::sglang::runtime::v1::GenerateRequest;
using ::sglang::runtime::v1::SamplingParams;
using ::sglang::runtime::v1::TextGenerateRequest;

TEST(Protobuf, ReadsWhatItWrote) {
  TextGenerateRequest sent;
  sent.set_text("naïve");
  sent.mutable_sampling_params()->set_n(3);
  TextGenerateRequest got;
  ASSERT_TRUE(ParseProtobuf(sent.SerializeAsString(), &got).ok());
  EXPECT_EQ(got.text(), "naïve");
  EXPECT_EQ(got.sampling_params().n(), 3);
  EXPECT_FALSE(got.has_stream());
}

TEST(Protobuf, NamesTheStringThatIsNotUtf8) {
  const std::string bytes("\x0a\x02\xff\xfe", 4);
  TextGenerateRequest request;
  testing::internal::CaptureStderr();
  const Status status = ParseProtobuf(bytes, &request);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "text");
}

TEST(Protobuf, RefusesBytesThatAreNoMessage) {
  TextGenerateRequest request;
  const Status status = ParseProtobuf("\x0a\x7f", &request);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status), "the message is not a sglang.runtime.v1.TextGenerateRequest");
}

// Field numbers are the contract: these bytes were written down from upstream's table.
TEST(Protobuf, KeepsTheNumbersOfUpstream) {
  GenerateRequest request;
  const std::string bytes("\x0a\x03\x01\x02\x03\x12\x05\x40\x08\x80\x01\x07\x18\x01\x90\x01\x01",
                          17);
  ASSERT_TRUE(ParseProtobuf(bytes, &request).ok());
  EXPECT_EQ(request.input_ids_size(), 3);
  EXPECT_EQ(request.sampling_params().max_new_tokens(), 8);
  EXPECT_EQ(request.sampling_params().seed(), 7);
  EXPECT_TRUE(request.stream());
  EXPECT_TRUE(request.return_text());
}

}  // namespace
}  // namespace portico
