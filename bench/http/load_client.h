// One connection of the load generator: sends a request and watches its answer go by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

class LoadClient {
 public:
  enum class Event { kWaiting, kDone, kFailed };

  // Appends every gap between reads that bring events, in nanoseconds, to `gaps`, which outlives this.
  void CollectGaps(std::vector<uint64_t>* gaps) { gaps_ = gaps; }

  // Connects (non-blocking) to 127.0.0.1. False if that fails at once.
  bool Open(int port);
  void Close();
  int fd() const { return fd_; }

  // Queues a request; the answer of the former must be complete.
  void Begin(std::string request, uint64_t now);
  // Sends on. True while bytes are left.
  bool Flush();
  // Reads what there is.
  Event Read(uint64_t now);

  bool busy() const { return busy_; }
  int status() const { return status_; }
  bool closing() const { return closing_; }  // the server ends the connection after this answer
  uint64_t began() const { return began_; }
  uint64_t first() const { return first_; }      // when the first event came; 0: none yet
  uint64_t largest_gap() const { return gap_; }  // between reads that brought events
  uint64_t events() const { return events_; }    // of this answer
  uint64_t body_bytes() const { return body_bytes_; }

 private:
  bool ReadHead();
  bool ReadBody(std::string_view bytes);

  int fd_ = -1;
  std::string out_;
  size_t sent_ = 0;
  std::string head_;
  std::string tail_;  // the last bytes of a chunked body, for its end
  bool busy_ = false;
  bool in_head_ = false;
  bool chunked_ = false;
  bool closing_ = false;
  size_t left_ = 0;
  int status_ = 0;
  uint64_t began_ = 0;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  uint64_t gap_ = 0;
  std::vector<uint64_t>* gaps_ = nullptr;
  uint64_t events_ = 0;
  uint64_t body_bytes_ = 0;
};
