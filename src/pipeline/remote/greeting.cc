#include "pipeline/remote/greeting.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "pipeline/remote/address.h"

namespace portico::pipeline {
namespace {

constexpr Duration kGreetingPatience = std::chrono::seconds(5);
constexpr std::string_view kStageHost = "stage's host";
constexpr size_t kRandom = 32;
constexpr size_t kProof = 32;
constexpr size_t kName = sizeof("portico stage ") - 1;  // of kGreeting; the version follows

using net::IoResult;

// Whole pieces in both directions, within the time of a greeting.
class Greeter {
 public:
  explicit Greeter(const GreetingPeer& peer) : peer_(peer) {}

  Status Read(size_t size, std::string* to) {
    to->resize(size);
    return Move(size, POLLIN,
                [&](size_t at) { return peer_.transport.Read(to->data() + at, size - at); });
  }
  Status Write(std::string_view bytes) {
    return Move(bytes.size(), POLLOUT, [&](size_t at) {
      const iovec part{const_cast<char*>(bytes.data()) + at, bytes.size() - at};
      return peer_.transport.Write(&part, 1);
    });
  }

 private:
  template <typename Step>
  Status Move(size_t size, short way, Step step) {
    for (size_t at = 0; at < size;) {
      const IoResult result = step(at);
      if (result.kind == IoResult::kDone) {
        at += result.bytes;
        continue;
      }
      if (result.kind != IoResult::kBlocked) {
        const std::string why = peer_.transport.Failure();
        return Error(StatusCode::kUnavailable,
                     why.empty() ? "the connection ended within the greeting" : why);
      }
      const short events = result.opposite ? static_cast<short>(POLLIN | POLLOUT) & ~way : way;
      if (!WaitFor(peer_.fd, static_cast<short>(events), deadline_, peer_.stopping)) {
        return Error(StatusCode::kUnavailable, "no greeting came in time");
      }
    }
    return OkStatus();
  }

  const GreetingPeer& peer_;
  const TimePoint deadline_ = Clock::now() + kGreetingPatience;
};

Status MakeRandom(std::string* random) {
  random->resize(kRandom);
  if (getrandom(random->data(), kRandom, 0) == static_cast<ssize_t>(kRandom)) return OkStatus();
  return Error(StatusCode::kUnavailable, "no random bytes");
}

std::string ProofOf(std::string_view who, std::string_view token, std::string_view stage_random,
                    std::string_view server_random) {
  const std::string text = fmt::format("{}{}{}", who, stage_random, server_random);
  std::string proof(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const char* key = token.empty() ? "" : token.data();
  if (HMAC(EVP_sha256(), key, static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &size) == nullptr) {
    size = 0;
  }
  proof.resize(size);
  return proof;
}

bool SameProof(std::string_view one, std::string_view other) {
  return one.size() == kProof && other.size() == kProof &&
         CRYPTO_memcmp(one.data(), other.data(), kProof) == 0;
}

// `wanted`: what should be at the other end.
Status CheckGreeting(std::string_view greeting, std::string_view wanted) {
  if (greeting == kGreeting) return OkStatus();
  if (greeting.substr(0, kName) == kGreeting.substr(0, kName)) {
    return Error(StatusCode::kFailedPrecondition,
                 "the other end runs another version: both need the same program");
  }
  return Error(StatusCode::kFailedPrecondition, fmt::format("the other end is not a {}", wanted));
}

Status WrongToken() {
  return Error(StatusCode::kUnauthenticated, "the two ends have different tokens");
}

}  // namespace

Status CheckToken(std::string_view token) {
  if (token.empty() || token.size() >= kMinToken) return OkStatus();
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{} must have at least {} characters", kTokenVariable, kMinToken));
}

Status GreetStageHost(const GreetingPeer& peer) {
  Greeter greeter(peer);
  std::string theirs;
  PORTICO_RETURN_IF_ERROR(greeter.Read(kGreeting.size(), &theirs));
  PORTICO_RETURN_IF_ERROR(CheckGreeting(theirs, kStageHost));
  std::string stage_random;
  PORTICO_RETURN_IF_ERROR(greeter.Read(kRandom, &stage_random));
  std::string random;
  PORTICO_RETURN_IF_ERROR(MakeRandom(&random));
  PORTICO_RETURN_IF_ERROR(greeter.Write(fmt::format(
      "{}{}{}", kGreeting, random, ProofOf("server", peer.token, stage_random, random))));
  std::string verdict;
  PORTICO_RETURN_IF_ERROR(greeter.Read(1, &verdict));
  if (verdict == "v") return CheckGreeting(kGreeting.substr(0, kName), kStageHost);
  if (verdict != "+") return WrongToken();
  std::string proof;
  PORTICO_RETURN_IF_ERROR(greeter.Read(kProof, &proof));
  if (!SameProof(proof, ProofOf("stage", peer.token, stage_random, random))) return WrongToken();
  return OkStatus();
}

Status GreetServer(const GreetingPeer& peer) {
  Greeter greeter(peer);
  std::string random;
  PORTICO_RETURN_IF_ERROR(MakeRandom(&random));
  PORTICO_RETURN_IF_ERROR(greeter.Write(fmt::format("{}{}", kGreeting, random)));
  std::string theirs;
  PORTICO_RETURN_IF_ERROR(greeter.Read(kGreeting.size(), &theirs));
  if (Status other = CheckGreeting(theirs, "server with stages"); !other.ok()) {
    const Status ignored = greeter.Write("v");
    static_cast<void>(ignored);
    return other;
  }
  std::string answer;
  PORTICO_RETURN_IF_ERROR(greeter.Read(kRandom + kProof, &answer));
  const std::string_view server_random = std::string_view(answer).substr(0, kRandom);
  if (!SameProof(std::string_view(answer).substr(kRandom),
                 ProofOf("server", peer.token, random, server_random))) {
    const Status ignored = greeter.Write("-");
    static_cast<void>(ignored);
    return WrongToken();
  }
  return greeter.Write("+" + ProofOf("stage", peer.token, random, server_random));
}

}  // namespace portico::pipeline
