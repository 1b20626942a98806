#include "net/http/response_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace portico::net {
namespace {

using State = ResponseParser::State;

struct Read {
  State state = State::kHead;
  ResponseHead head;
  std::string body;
  std::string error;
  size_t used = 0;
};

// Reads `input` in pieces of at most `piece` bytes, then tells the parser of the end if `end`.
Read ReadAll(std::string_view input, bool end = false, size_t piece = 4096,
             bool head_request = false) {
  ResponseParser parser(1024, head_request);
  Read read;
  std::string pending;
  while (!input.empty() && parser.state() != State::kDone && parser.state() != State::kError) {
    const size_t size = std::min(piece, input.size());
    pending.append(input.substr(0, size));
    input.remove_prefix(size);
    State before;
    do {
      before = parser.state();
      size_t used = 0;
      parser.Feed(pending, &used, &read.body);
      pending.erase(0, used);
      read.used += used;
    } while (before == State::kHead && parser.state() == State::kBody);
  }
  if (end) parser.OnEnd();
  read.state = parser.state();
  read.head = parser.head();
  read.error = std::string(parser.error());
  return read;
}

TEST(ResponseParserTest, ReadsAnAnswerWithALengthAtEveryCut) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello";
  for (size_t piece = 1; piece <= answer.size(); ++piece) {
    const Read read = ReadAll(answer, false, piece);
    ASSERT_EQ(read.state, State::kDone) << piece << read.error;
    EXPECT_EQ(read.body, "hello");
    EXPECT_EQ(read.head.status, 200);
    EXPECT_EQ(read.head.Header("x-a"), "b");
    EXPECT_TRUE(read.head.keep_alive);
    EXPECT_EQ(read.used, answer.size());
  }
}

TEST(ResponseParserTest, ReadsChunksAtEveryCut) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=1\r\nabc\r\nA\r\n0123456789\r\n"
      "0\r\nT: 1\r\n\r\n";
  for (size_t piece = 1; piece <= answer.size(); ++piece) {
    const Read read = ReadAll(answer, false, piece);
    ASSERT_EQ(read.state, State::kDone) << piece << read.error;
    EXPECT_EQ(read.body, "abc0123456789");
  }
}

TEST(ResponseParserTest, LeavesWhatFollowsAnAnswer) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
  const Read read = ReadAll(answer + "HTTP/1.1 500 no\r\n\r\n");
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.body, "ab");
  EXPECT_EQ(read.used, answer.size());
}

TEST(ResponseParserTest, TheEndOfTheConnectionEndsABodyWithoutALength) {
  const Read read = ReadAll("HTTP/1.0 200 OK\r\n\r\nsome", true);
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.body, "some");
  EXPECT_FALSE(read.head.keep_alive);
  EXPECT_TRUE(read.head.to_end);
  EXPECT_FALSE(ReadAll("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsome").head.to_end);
  EXPECT_FALSE(
      ReadAll("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").head.to_end);
}

TEST(ResponseParserTest, AHalfAnswerIsAnError) {
  for (const char* half :
       {"", "HTTP/1.1 200 OK\r\nConte", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    EXPECT_EQ(ReadAll(half, true).state, State::kError) << half;
  }
}

TEST(ResponseParserTest, AnswersWithoutABodyEndWithTheirHead) {
  EXPECT_EQ(ReadAll("HTTP/1.1 204 No Content\r\n\r\n").state, State::kDone);
  EXPECT_EQ(ReadAll("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n").state, State::kDone);
  EXPECT_EQ(ReadAll("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 4096, true).state,
            State::kDone);
}

TEST(ResponseParserTest, PassesOverInterimAnswers) {
  const Read read = ReadAll(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: a\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.");
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.head.status, 200);
  EXPECT_EQ(read.head.headers.size(), 1u);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(ReadAll(many).state, State::kError);
}

TEST(ResponseParserTest, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  const std::vector<std::string> heads = {
      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Content-Length: 5\r\nContent-Length: 5\r\n",
      "Content-Length: 5, 5\r\n",
      "Content-Length: +5\r\n",
      "Content-Length: 0x5\r\n",
      "Content-Length: -1\r\n",
      "Content-Length:\r\n",
      "Content-Length: 99999999999999999999\r\n",
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "X: a\r\n folded\r\n",
      " X: a\r\n",
      "X : a\r\n",
      ": a\r\n",
      "no colon\r\n",
      "X: a\nY: b\r\n",
      "X: a\rb\r\n",
      std::string("X: a\0b\r\n", 8),
  };
  for (const std::string& head : heads) {
    EXPECT_EQ(ReadAll("HTTP/1.1 200 OK\r\n" + head + "\r\nhello").state, State::kError) << head;
  }
}

TEST(ResponseParserTest, RefusesWhatIsNoStatusLine) {
  for (const char* line :
       {"HTTP/2 200 OK", "HTTP/1.2 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 OK",
        "HTTP/1.1  200 OK", "ICY 200 OK", "", "garbage", "HTTP/1.1 101 Switching Protocols"}) {
    EXPECT_EQ(ReadAll(std::string(line) + "\r\n\r\n").state, State::kError) << line;
  }
}

TEST(ResponseParserTest, AnEndlessHeadIsRefusedAtItsBound) {
  EXPECT_EQ(ReadAll("HTTP/1.1 200 OK\r\n" + std::string(5000, 'x')).state, State::kError);
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 1000; ++i) many += "a:b\r\n";
  EXPECT_EQ(ReadAll(many).state, State::kError);
}

TEST(ResponseParserTest, AWrongChunkIsAnError) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* body :
       {"x\r\n", "3\r\nabcd\r\n", "3\nabc\r\n", "-1\r\n", "\r\n", "11111111111111111\r\n"}) {
    EXPECT_EQ(ReadAll(head + body).state, State::kError) << body;
  }
}

}  // namespace
}  // namespace portico::net
