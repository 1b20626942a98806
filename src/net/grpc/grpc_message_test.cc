#include "net/grpc/grpc_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico::net {
namespace {

constexpr size_t kLimit = 1 << 20;

std::string Framed(std::string_view message) {
  std::string out;
  AppendGrpcMessage(message, &out);
  return out;
}

std::string Compressed(std::string_view message) {
  std::string out;
  AppendGrpcMessage(message, GrpcEncoding::kGzip, &out);
  return out;
}

// Feeds `bytes` in pieces of `piece`; the messages until the end or a failure.
std::vector<std::string> Messages(GrpcDeframer& deframer, std::string_view bytes, size_t piece) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    // A copy of its own, so that reading beyond it shows.
    std::string part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    std::string_view input = part;
    std::string_view message;
    GrpcDeframer::Result result;
    while ((result = deframer.Next(&input, &message)) == GrpcDeframer::Result::kMessage) {
      out.emplace_back(message);
    }
    if (result == GrpcDeframer::Result::kFailed) return out;
    EXPECT_TRUE(input.empty());
  }
  return out;
}

Status FailureOf(std::string_view bytes, GrpcEncoding encoding = GrpcEncoding::kIdentity,
                 size_t limit = kLimit) {
  GrpcDeframer deframer(limit);
  deframer.SetEncoding(encoding);
  EXPECT_THAT(Messages(deframer, bytes, bytes.size()), testing::IsEmpty());
  std::string_view input = "more";
  std::string_view message;
  EXPECT_EQ(deframer.Next(&input, &message), GrpcDeframer::Result::kFailed);
  return deframer.status();
}

TEST(GrpcDeframer, FindsTheSameMessagesHoweverTheBytesAreSplit) {
  const std::vector<std::string> sent = {"", "a", std::string(3000, 'x'), "", "last"};
  std::string bytes;
  for (size_t i = 0; i < sent.size(); ++i) {
    AppendGrpcMessage(sent[i], i % 2 == 0 ? GrpcEncoding::kIdentity : GrpcEncoding::kGzip, &bytes);
  }
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    GrpcDeframer deframer(kLimit);
    deframer.SetEncoding(GrpcEncoding::kGzip);
    EXPECT_EQ(Messages(deframer, bytes, piece), sent) << piece;
    EXPECT_FALSE(deframer.mid_message());
  }
}

TEST(GrpcDeframer, HandsWholeMessagesOutWithoutCopyingThem) {
  const std::string bytes = Framed("hello") + Framed("you");
  GrpcDeframer deframer(kLimit);
  std::string_view input = bytes;
  std::string_view message;
  ASSERT_EQ(deframer.Next(&input, &message), GrpcDeframer::Result::kMessage);
  EXPECT_EQ(message.data(), bytes.data() + kGrpcPrefix);
  ASSERT_EQ(deframer.Next(&input, &message), GrpcDeframer::Result::kMessage);
  EXPECT_EQ(message, "you");
  EXPECT_EQ(deframer.Next(&input, &message), GrpcDeframer::Result::kMore);
}

TEST(GrpcDeframer, KnowsThatAMessageIsIncomplete) {
  const std::string bytes = Framed("hello");
  for (size_t size = 1; size < bytes.size(); ++size) {
    GrpcDeframer deframer(kLimit);
    EXPECT_THAT(Messages(deframer, bytes.substr(0, size), size), testing::IsEmpty());
    EXPECT_TRUE(deframer.mid_message());
    EXPECT_EQ(deframer.held(), size);
  }
}

TEST(GrpcDeframer, RefusesAMessageOverTheLimitAtItsPrefix) {
  GrpcDeframer exact(5);
  EXPECT_THAT(Messages(exact, Framed("hello"), 3), testing::ElementsAre("hello"));
  Status status = FailureOf(Framed("hello!").substr(0, kGrpcPrefix), GrpcEncoding::kIdentity, 5);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "message of 6 bytes is larger than the limit of 5");
  EXPECT_EQ(FailureOf(std::string("\0\xff\xff\xff\xff", 5)).code(), StatusCode::kResourceExhausted);
}

TEST(GrpcDeframer, KeepsNoMoreThanHasCome) {
  GrpcDeframer deframer(64 << 20);
  std::string_view input("\0\x03\xff\xff\xff", 5);
  std::string_view message;
  EXPECT_EQ(deframer.Next(&input, &message), GrpcDeframer::Result::kMore);
  EXPECT_EQ(deframer.held(), kGrpcPrefix);
}

TEST(GrpcDeframer, RefusesFlagsItDoesNotKnow) {
  for (const char* bytes : {"\x02", "\x03", "\x80", "\xff", "P"}) {
    std::string prefix(bytes);
    prefix.append(4, '\0');
    EXPECT_EQ(FailureOf(prefix).code(), StatusCode::kInternal);
  }
}

TEST(GrpcDeframer, RefusesACompressedMessageWithoutEncoding) {
  EXPECT_EQ(FailureOf(Compressed("hello")).code(), StatusCode::kInternal);
}

TEST(GrpcDeframer, RefusesWhatIsNotGzip) {
  std::string whole = Compressed("hello, hello, hello");
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(FailureOf(damaged, GrpcEncoding::kGzip).code(), StatusCode::kInternal);

  const std::string gzip = whole.substr(kGrpcPrefix);
  for (const std::string& payload :
       {std::string(), std::string("x"), gzip.substr(0, gzip.size() - 1), gzip + "x"}) {
    std::string bytes = Framed(payload);
    bytes[0] = 1;
    EXPECT_EQ(FailureOf(bytes, GrpcEncoding::kGzip).code(), StatusCode::kInternal) << payload;
  }
}

TEST(GrpcDeframer, StopsInflatingAtTheLimit) {
  const std::string bomb = Compressed(std::string(8 << 20, '\0'));
  ASSERT_LT(bomb.size(), 64u << 10);
  Status status = FailureOf(bomb, GrpcEncoding::kGzip, 64 << 10);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "decompressed message is larger than the limit of 65536");
}

TEST(GrpcDeframer, InflatesUpToTheLimit) {
  GrpcDeframer deframer(100000);
  deframer.SetEncoding(GrpcEncoding::kGzip);
  const std::string message(100000, 'x');
  EXPECT_THAT(Messages(deframer, Compressed(message), 100), testing::ElementsAre(message));
  EXPECT_EQ(FailureOf(Compressed(message + "x"), GrpcEncoding::kGzip, 100000).code(),
            StatusCode::kResourceExhausted);
}

TEST(GrpcEncodings, AreNamedAndAccepted) {
  EXPECT_EQ(*ParseGrpcEncoding("gzip"), GrpcEncoding::kGzip);
  EXPECT_EQ(*ParseGrpcEncoding("identity"), GrpcEncoding::kIdentity);
  Status unknown = ParseGrpcEncoding("snappy").status();
  EXPECT_EQ(unknown.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(MessageOf(unknown),
            "grpc-encoding \"snappy\" is not supported; supported are identity,gzip");
  EXPECT_TRUE(GrpcAccepts("identity, deflate, gzip", GrpcEncoding::kGzip));
  EXPECT_TRUE(GrpcAccepts("gzip", GrpcEncoding::kGzip));
  EXPECT_FALSE(GrpcAccepts("gzip2,identity", GrpcEncoding::kGzip));
  EXPECT_FALSE(GrpcAccepts("", GrpcEncoding::kGzip));
}

}  // namespace
}  // namespace portico::net
