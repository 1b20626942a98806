// The addresses of the sockets that SGLang's schedulers connect to, and who may.
//
// Unix sockets are in a folder that only this user enters. TCP ports of the loopback are held by the launcher for as long as
// the schedulers run (python/portico/sglang_sockets.py): a port that nobody held between two front ends could be taken by
// anyone, who would get the requests. It hands them to one front end at a time. Every user of the machine can connect to
// them, and the schedulers neither say nor ask who they are; so the link asks the kernel (tcp_peers.h) before it speaks with
// anyone. Other addresses are SGLang's own choice (--dist-init-addr): SGLANG_ZMQ_ALLOWED_PEERS says who may connect to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/sglang/launch/facts.h"

namespace portico::sglang {

// An IP address and port, "tcp://…"; others are Unix sockets.
bool IsTcpAddress(std::string_view address);
bool IsLoopbackAddress(std::string_view address);

// FAILED_PRECONDITION: others could reach the sockets of that SGLang.
Status CheckSocketAddresses(const Facts& facts);

class Listeners {
 public:
  Listeners() = default;  // none: every socket is bound to its address
  ~Listeners();
  Listeners(Listeners&& other) noexcept { Swap(&other); }
  Listeners& operator=(Listeners&& other) noexcept {
    Swap(&other);
    return *this;
  }

  // Has the launcher at this Unix socket hand the sockets of that SGLang over; they are this object's until it ends, with
  // descriptors where they are TCP ports of the loopback. Blocks for 30 seconds at most, and for `patience` while another
  // front end has them: it may be about to end. UNAVAILABLE: it still has them.
  static StatusOr<Listeners> TakeOver(const Facts& facts, Duration patience);

  // In the order scheduler input, tokenizer, detokenizer; each once, and the caller's from then on. -1: there is none.
  int Take(size_t index);

 private:
  // `busy`: whether it fails because another front end has them.
  static StatusOr<Listeners> Ask(const Facts& facts, bool* busy);
  void Swap(Listeners* other);

  int lease_ = -1;  // the connection to the launcher
  std::vector<int> descriptors_;
};

}  // namespace portico::sglang
