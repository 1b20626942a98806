#include "net/zmq/zmq_guard.h"

#include <string>
#include <utility>
#include <vector>

namespace portico::net {
namespace {

constexpr std::string_view kVersion = "1.0";
// Of a request: version, id, domain, address, the peer's name, mechanism, credentials.
enum RequestPart { kRequestId = 1, kAddress = 3, kRequestParts = 6 };

}  // namespace

StatusOr<ZmqGuard> ZmqGuard::Bind(const ZmqContext& context, Admits admits) {
  ZmqGuard guard;
  PORTICO_ASSIGN_OR_RETURN(guard.socket_, ZmqSocket::BindReply(context, "inproc://zeromq.zap.01"));
  guard.admits_ = std::move(admits);
  return guard;
}

void ZmqGuard::Answer() {
  if (!socket_.is_open()) return;
  while (AnswerOne()) {
  }
}

bool ZmqGuard::AnswerOne() {
  std::vector<std::string> parts;
  std::string_view part;
  do {
    if (!socket_.Receive(&part)) return false;
    parts.emplace_back(part);
  } while (socket_.HasMore());
  const bool whole = parts.size() >= kRequestParts && parts[0] == kVersion;
  const bool admitted = whole && admits_(parts[kAddress]);
  // 300 and not 400, which libzmq's sockets would take for the end of all attempts.
  return socket_.SendParts({kVersion, whole ? std::string_view(parts[kRequestId]) : "",
                            admitted ? "200" : "300", "", "", ""});
}

}  // namespace portico::net
