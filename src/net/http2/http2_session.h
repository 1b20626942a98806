// HTTP/2 on a connection (RFC 9113), on nghttp2: frames, HPACK, flow control and the protocol's own
// rules are the library's; limits, time and the end of things are decided here.
//
// One turn of the loop gathers the frames of all streams and sends them at once. Output goes to the
// connection only as far as the kernel takes it; what flow control holds back stays with its
// stream, so a client that does not read a stream stalls only that.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/http2/http2_frame_heads.h"
#include "net/http2/http2_stream.h"
#include "net/socket/connection.h"
#include "net/socket/session.h"

namespace portico::net {

// Frames that cost us more than they cost the client may come in bursts, but not go on.
class FrameBudget {
 public:
  FrameBudget(int burst, int a_second) : burst_(burst), a_second_(a_second), left_(burst) {}
  // False once it is used up.
  bool Take(TimePoint now);
  // What does work earns some back: a client may ping to measure what it receives.
  void Earn() { left_ = left_ < burst_ ? left_ + 2 : left_; }

 private:
  int burst_;
  int a_second_;
  int left_;
  TimePoint since_{};
};

// Streams of one client share so many times what one of them may keep in memory.
inline constexpr size_t kSharedBounds = 4;
// What a stream may keep in memory counts as so much at least where whole answers are concerned.
inline constexpr size_t kLargeAnswer = 16 << 20;

class Http2Session final : public Session {
 public:
  explicit Http2Session(Connection& connection);
  ~Http2Session() override;

  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void OnTimeout(Wait wait) override;
  void OnSent() override;
  void OnEndOfTurn() override;
  void OnDrain() override;

  Connection& connection() { return connection_; }
  size_t streams() const { return streams_.size(); }

 private:
  friend class Http2Stream;
  friend struct Http2Callbacks;

  // From nghttp2, within OnBytes: 0, or one of its errors.
  int OnBeginFrame(const nghttp2_frame_hd& head);
  // The client uses a stream again that is closed, and not by us alone.
  bool IsForClosedStream(int32_t id) const;
  int OnBeginHeaders(int32_t id, bool of_request);
  int OnHeader(Http2Stream& stream, std::string_view name, std::string_view value);
  int OnFrame(const nghttp2_frame& frame);
  int OnPing();
  void OnHead(Http2Stream& stream, bool ended);
  void OnRequestEnd(Http2Stream& stream);
  int OnData(Http2Stream& stream, std::string_view bytes);
  void OnFrameSent(const nghttp2_frame& frame);
  void OnStreamClosed(Http2Stream& stream);
  // Within sending.
  int Send(std::string_view bytes);
  int SendData(Http2Stream& stream, const uint8_t* frame_head, size_t size);
  ssize_t OfferData(Http2Stream& stream, size_t max, uint32_t* flags);

  Http2Stream* Find(int32_t id);
  void Remove(Http2Stream& stream);
  void RememberReset(int32_t id);
  // Tells the user and cuts the stream off.
  void CutOff(Http2Stream& stream, Http2Error error);
  void TellAllGone();
  void Pump();
  int Count(FrameBudget& budget);
  // GOAWAY: every stream is lost.
  int Terminate(Http2Error error);
  // GOAWAY in two steps (RFC 9113, 6.8): streams that the client has already begun are served.
  void BeginShutdown();
  void FinishShutdown();

  // Whole answers wait that the client does not read, so many that it gets no other.
  bool HoldsEnoughAnswers() const;
  // Those that are over their own bound; of a connection that is over its bound, whoever holds most of what is
  // streamed. Whole answers count, but are not cut off once they wait.
  void CutOverBound();
  // Whom to cut off for the connection's sake, or null.
  Http2Stream* FurthestBehind() const;
  TimePoint EndOfAge() const;
  void Tick();
  void TickStreams();
  void TickKeepalive();
  void TickAge();

  Connection& connection_;
  nghttp2_session* nghttp2_ = nullptr;
  Http2FrameHeads received_;
  std::vector<std::unique_ptr<Http2Stream>> streams_;
  FrameBudget idle_frames_{1000, 50};  // PING, SETTINGS, empty DATA
  // Answers to PINGs, PRIORITY, WINDOW_UPDATE, unknown types. What is sent to a client earns it some back.
  FrameBudget light_frames_{5000, 500};
  // A reset is cheap for a client and has cost us a request (CVE-2023-44487).
  FrameBudget resets_{1000, 100};
  std::vector<int32_t> reset_by_us_;  // the last ones: frames for them may still be on their way
  size_t next_reset_ = 0;             // to be replaced
  size_t held_total_ = 0;             // Hold() of all streams
  size_t unsent_total_ = 0;           // of all streams

  TimePoint now_;  // coarse; as of the last call from the connection
  TimePoint last_tick_;
  TimePoint last_received_;
  TimePoint idle_since_;
  TimePoint head_since_;  // while a head, or the client's preface, is incomplete
  TimePoint ping_sent_;
  TimePoint end_of_age_;        // never: TimePoint::max()
  TimePoint shutdown_since_;    // once BeginShutdown() has been called
  size_t head_wire_bytes_ = 0;  // of an incomplete head
  int32_t head_stream_ = 0;     // of the last head
  bool in_head_ = true;
  bool settings_seen_ = false;
  bool pinging_ = false;
  bool some_over_bound_ = false;
  bool shutting_down_ = false;
  bool shutdown_finished_ = false;
  bool terminating_ = false;  // GOAWAY with an error is on its way; input is ignored
  bool ended_ = false;        // nothing more is said or heard
};

}  // namespace portico::net
