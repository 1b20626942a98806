#include "net/grpc/grpc_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace portico::net {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(GrpcTimeout, HasUpToEightDigitsAndAUnit) {
  EXPECT_EQ(ParseGrpcTimeout("1H"), Duration(hours(1)));
  EXPECT_EQ(ParseGrpcTimeout("2M"), Duration(minutes(2)));
  EXPECT_EQ(ParseGrpcTimeout("3S"), Duration(seconds(3)));
  EXPECT_EQ(ParseGrpcTimeout("40m"), Duration(milliseconds(40)));
  EXPECT_EQ(ParseGrpcTimeout("5u"), Duration(microseconds(5)));
  EXPECT_EQ(ParseGrpcTimeout("99999999n"), Duration(nanoseconds(99999999)));
  EXPECT_EQ(ParseGrpcTimeout("00000007n"), Duration(nanoseconds(7)));
  EXPECT_EQ(ParseGrpcTimeout("0n"), Duration::zero());
}

TEST(GrpcTimeout, ThatIsLongerThanAClockCanSayIsTheLongest) {
  EXPECT_EQ(ParseGrpcTimeout("99999999H"), Duration::max());
  EXPECT_EQ(ParseGrpcTimeout("2562047H"), Duration(hours(2562047)));
}

TEST(GrpcTimeout, ThatIsMalformedIsNothing) {
  for (const char* value : {"", "S", "1", "1s", "1h", "-1S", "+1S", " 1S", "1 S", "1.5S", "1S ",
                            "123456789n", "0x1S", "nS"}) {
    EXPECT_EQ(ParseGrpcTimeout(value), std::nullopt) << value;
  }
}

TEST(GrpcTimeout, IsWrittenInTheFinestUnitThatFitsAndNeverShortened) {
  EXPECT_EQ(FormatGrpcTimeout(nanoseconds(1)), "1n");
  EXPECT_EQ(FormatGrpcTimeout(nanoseconds(99999999)), "99999999n");
  EXPECT_EQ(FormatGrpcTimeout(nanoseconds(100000001)), "100001u");
  EXPECT_EQ(FormatGrpcTimeout(seconds(100)), "100000m");
  EXPECT_EQ(FormatGrpcTimeout(hours(24 * 365)), "31536000S");
  EXPECT_EQ(FormatGrpcTimeout(Duration::max()), "2562048H");
  EXPECT_EQ(FormatGrpcTimeout(Duration::zero()), "0n");
  EXPECT_EQ(FormatGrpcTimeout(seconds(-1)), "0n");
}

TEST(GrpcMessage, KeepsPrintableAsciiAndEscapesTheRest) {
  EXPECT_EQ(EncodeGrpcMessage("plain text, 100%"), "plain text, 100%25");
  EXPECT_EQ(EncodeGrpcMessage("\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"),
            "%09%0Atest with whitespace%0D%0Aand Unicode BMP %E2%98%BA and non-BMP "
            "%F0%9F%98%88%09%0A");
  EXPECT_EQ(EncodeGrpcMessage("\x7f~"), "%7F~");
}

TEST(GrpcMessage, DoesNotLoseBlanksAtItsEnds) {
  EXPECT_EQ(EncodeGrpcMessage(" a b "), "%20a b%20");
  EXPECT_EQ(EncodeGrpcMessage(" "), "%20");
}

TEST(GrpcMessage, ComesBackWhateverItsBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(DecodeGrpcMessage(EncodeGrpcMessage(all)), all);
  EXPECT_EQ(DecodeGrpcMessage(EncodeGrpcMessage("")), "");
}

TEST(GrpcMessage, KeepsEscapesThatAreNotWellFormed) {
  EXPECT_EQ(DecodeGrpcMessage("%"), "%");
  EXPECT_EQ(DecodeGrpcMessage("a%4"), "a%4");
  EXPECT_EQ(DecodeGrpcMessage("%zz%41"), "%zzA");
  EXPECT_EQ(DecodeGrpcMessage("%%41"), "%A");
  EXPECT_EQ(DecodeGrpcMessage("%e2%98%ba"), "☺");
}

TEST(GrpcStatus, IsANumberThatMayBeUnknown) {
  EXPECT_EQ(ParseGrpcStatus("0"), StatusCode::kOk);
  EXPECT_EQ(ParseGrpcStatus("16"), StatusCode::kUnauthenticated);
  EXPECT_EQ(ParseGrpcStatus("17"), StatusCode::kUnknown);
  EXPECT_EQ(ParseGrpcStatus("99999999999999999999"), StatusCode::kUnknown);
  for (const char* value : {"", "-1", "+1", "1 ", "ok", "0x1"}) {
    EXPECT_EQ(ParseGrpcStatus(value), std::nullopt) << value;
  }
}

TEST(BinaryValues, AreWrittenWithoutPadding) {
  EXPECT_EQ(EncodeBinaryValue(""), "");
  EXPECT_EQ(EncodeBinaryValue("f"), "Zg");
  EXPECT_EQ(EncodeBinaryValue("fo"), "Zm8");
  EXPECT_EQ(EncodeBinaryValue("foo"), "Zm9v");
  EXPECT_EQ(EncodeBinaryValue(std::string_view("\0\xff\xfe", 3)), "AP/+");
}

TEST(BinaryValues, AreReadWithAndWithoutPadding) {
  using testing::ElementsAre;
  EXPECT_THAT(*DecodeBinaryValues("Zg=="), ElementsAre("f"));
  EXPECT_THAT(*DecodeBinaryValues("Zg"), ElementsAre("f"));
  EXPECT_THAT(*DecodeBinaryValues("Zm8="), ElementsAre("fo"));
  EXPECT_THAT(*DecodeBinaryValues("Zm9v"), ElementsAre("foo"));
  EXPECT_THAT(*DecodeBinaryValues(""), ElementsAre(""));
}

TEST(BinaryValues, JoinedByCommasAreSeveral) {
  using testing::ElementsAre;
  EXPECT_THAT(*DecodeBinaryValues("Zg==,Zm8,Zm9v"), ElementsAre("f", "fo", "foo"));
  EXPECT_THAT(*DecodeBinaryValues("Zg , Zm8"), ElementsAre("f", "fo"));
  EXPECT_THAT(*DecodeBinaryValues(","), ElementsAre("", ""));
}

TEST(BinaryValues, ThatAreMalformedAreNothing) {
  for (const char* value : {"Z", "Zg=", "Z===", "Zm9v=", "====", "=", "Zm-v", "Zm_v", "Zm\n9v",
                            "Zg==Zg==", "Zg,!", "Zm9vY"}) {
    EXPECT_EQ(DecodeBinaryValues(value), std::nullopt) << value;
  }
}

TEST(BinaryValues, ComeBackWhateverTheirBytes) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_THAT(*DecodeBinaryValues(EncodeBinaryValue(bytes)), testing::ElementsAre(bytes));
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Metadata, LeavesOutWhatBelongsToHttpAndGrpc) {
  Headers headers = {{":path", "/a/b"},          {"content-type", "application/grpc"},
                     {"te", "trailers"},         {"grpc-timeout", "1S"},
                     {"user-agent", "x"},        {"x-a", "1"},
                     {"grpc-trace-bin", "AAAA"}, {"x-a", "2"}};
  EXPECT_EQ(*DecodeMetadata(headers), (Headers{{"x-a", "1"}, {"x-a", "2"}}));
}

TEST(Metadata, HasTheBytesOfBinaryValues) {
  EXPECT_EQ(*DecodeMetadata({{"k-bin", "Zg==,Zm8"}, {"k-bin", "Zm9v"}}),
            (Headers{{"k-bin", "f"}, {"k-bin", "fo"}, {"k-bin", "foo"}}));
  auto bad = DecodeMetadata({{"k-bin", "?"}});
  EXPECT_EQ(bad.status().code(), StatusCode::kInternal);
  EXPECT_EQ(MessageOf(bad.status()), "metadata \"k-bin\" is not base64");
}

TEST(Metadata, IsWrittenWithBinaryValuesEncoded) {
  Headers headers;
  EXPECT_TRUE(EncodeMetadata({{"x-a", " 1 "}, {"k-bin", "f"}, {"x.y_z-0", ""}}, &headers).ok());
  EXPECT_EQ(headers, (Headers{{"x-a", "1"}, {"k-bin", "Zg"}, {"x.y_z-0", ""}}));
}

TEST(Metadata, ThatCannotBeSaidIsRefusedByName) {
  for (const Headers& metadata :
       {Headers{{"", "v"}}, Headers{{"X-A", "v"}}, Headers{{"a b", "v"}}, Headers{{":path", "v"}},
        Headers{{"grpc-status", "0"}}, Headers{{"te", "v"}}, Headers{{"connection", "v"}},
        Headers{{"a", "v\n"}}, Headers{{"a", "ü"}}}) {
    Headers headers;
    Status status = EncodeMetadata(metadata, &headers);
    EXPECT_EQ(status.code(), StatusCode::kInternal) << metadata[0].first;
    EXPECT_THAT(MessageOf(status), testing::StartsWith("metadata \"" + metadata[0].first));
  }
}

TEST(GrpcCode, OfAnAnswerWithoutGrpcStatusFollowsTheSpecifiedTable) {
  EXPECT_EQ(GrpcCodeOfHttp(400), StatusCode::kInternal);
  EXPECT_EQ(GrpcCodeOfHttp(401), StatusCode::kUnauthenticated);
  EXPECT_EQ(GrpcCodeOfHttp(403), StatusCode::kPermissionDenied);
  EXPECT_EQ(GrpcCodeOfHttp(404), StatusCode::kUnimplemented);
  for (int status : {429, 502, 503, 504}) {
    EXPECT_EQ(GrpcCodeOfHttp(status), StatusCode::kUnavailable);
  }
  for (int status : {200, 204, 302, 405, 500, 501}) {
    EXPECT_EQ(GrpcCodeOfHttp(status), StatusCode::kUnknown);
  }
}

TEST(GrpcCode, OfAResetFollowsTheSpecifiedTable) {
  for (uint32_t error : {0, 1, 2, 3, 4, 6, 9, 10}) {
    EXPECT_EQ(GrpcCodeOfReset(error), StatusCode::kInternal) << error;
  }
  EXPECT_EQ(GrpcCodeOfReset(7), StatusCode::kUnavailable);
  EXPECT_EQ(GrpcCodeOfReset(8), StatusCode::kCancelled);
  EXPECT_EQ(GrpcCodeOfReset(11), StatusCode::kResourceExhausted);
  EXPECT_EQ(GrpcCodeOfReset(12), StatusCode::kPermissionDenied);
  EXPECT_EQ(GrpcCodeOfReset(1000), StatusCode::kUnknown);
}

}  // namespace
}  // namespace portico::net
