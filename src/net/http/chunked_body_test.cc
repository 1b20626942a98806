#include "net/http/chunked_body.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "net/http/http_text.h"

namespace portico::net {
namespace {

using State = ChunkedBody::State;

struct Outcome {
  State state;
  std::string body;
  bool operator==(const Outcome&) const = default;
};

Outcome Decode(std::string_view input, size_t piece) {
  ChunkedBody chunks(1000);
  Outcome outcome{State::kMore, ""};
  std::string pending;
  while (!input.empty() && outcome.state == State::kMore) {
    pending.append(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
    size_t used = 0;
    outcome.state = chunks.Feed(pending, &used, &outcome.body);
    pending.erase(0, used);
  }
  return outcome;
}

TEST(AppendChunk, TellsTheSizeInHexadecimalDigitsWithoutZeroesInFront) {
  for (const size_t size : {1, 9, 10, 15, 16, 17, 159, 160, 255, 256, 4095, 4096, 65535, 0x12ab0}) {
    const std::string bytes(size, 'x');
    std::string chunk = "before";
    AppendChunk(bytes, &chunk);
    EXPECT_EQ(chunk, fmt::format("before{:x}\r\n{}\r\n", size, bytes));
  }
}

TEST(ChunkedBody, SaysTheSameHoweverTheBytesAreCut) {
  // Beast's decoder read the quoted extension of the last one beyond its line, but only if more bytes were there.
  for (const char* input :
       {"3\r\nabc\r\n0\r\n\r\n", "3 ;a=\"b\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
        "0;x\r\n\r\n", "3\r\nabcX", "3\r\nabc\rX", "5;a=\"\r\nabcde\r\n0\r\n\r\n"}) {
    Outcome whole = Decode(input, 1000);
    EXPECT_NE(whole.state, State::kMore) << input;
    for (size_t piece = 1; piece < 12; ++piece) EXPECT_EQ(Decode(input, piece), whole) << input;
  }
}

TEST(ChunkedBody, LeavesWhatFollowsTheBody) {
  ChunkedBody chunks(10);
  size_t used = 0;
  std::string body;
  EXPECT_EQ(chunks.Feed("1\r\nx\r\n0\r\n\r\nGET /", &used, &body), State::kDone);
  EXPECT_EQ(used, 11u);
  EXPECT_EQ(body, "x");
}

TEST(ChunkedBody, CountsTheLimitOverAllChunks) {
  EXPECT_EQ(Decode("3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n", 100).state, State::kDone);
  EXPECT_EQ(Decode("3e7\r\n" + std::string(999, 'x') + "\r\n2\r\n", 100).state, State::kTooLarge);
  EXPECT_EQ(Decode("ffffffffffffff\r\n", 100).state, State::kTooLarge);
  EXPECT_EQ(Decode("fffffffffffffffff\r\n", 100).state, State::kMalformed);
}

TEST(ChunkedBody, BoundsLinesAndTrailers) {
  std::string endless(10000, '0');
  EXPECT_EQ(Decode(endless, 64).state, State::kMalformed);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 2000; ++i) trailers += "a: b\r\n";
  EXPECT_EQ(Decode(trailers, 64).state, State::kMalformed);
}

}  // namespace
}  // namespace portico::net
