// Where the events of an SSE stream end, so that a stream is relayed event by event: what of an
// event has come is held back until its end, and a stream that is cut can end with an event of the
// gateway's own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace portico::router {

class SseFrames {
 public:
  // What may be sent on now: all that has come up to the last end of an event. Valid until the next
  // call. An event beyond kMaxEvent is not held back.
  std::string_view Take(std::string_view bytes);
  // What is held back.
  std::string_view rest() const { return held_; }
  // What is held back is no event whose last empty line is missing, but a part of one.
  bool half() const;
  // A part of an event has been passed on that was too large to be held back: what follows would be more of it.
  bool within_event() const { return begun_; }
  // `data: [DONE]` has been passed on.
  bool done() const { return done_; }

  static constexpr size_t kMaxEvent = 1 << 20;

 private:
  std::string held_;
  std::string out_;
  bool done_ = false;
  bool begun_ = false;  // what is held back belongs to an event that was too large for that
};

// The position behind the last empty line of `bytes`, or 0: lines end in LF, CR LF or CR. It is known
// that there is none in the first `none_before` bytes.
size_t LastEventEnd(std::string_view bytes, size_t none_before = 0);

}  // namespace portico::router
