// The Unix socket between a pipeline and a stage process of this host: whole datagrams
// (SOCK_SEQPACKET), each with at most one descriptor. What it holds is gone with its processes.
#pragma once

#include <memory>

#include "base/status.h"
#include "pipeline/blob.h"
#include "pipeline/process/channel.h"
#include "pipeline/process/message.h"

namespace portico::pipeline {

std::unique_ptr<Channel> MakeUnixChannel(Fd socket);

enum class Sent { kYes, kFull, kGone };

// The process's end, which may wait. Thread safe as sendmsg() is. `wait`: kFull does not come.
Sent SendDatagram(int socket, const Datagram& datagram, bool wait);

// INVALID_ARGUMENT: longer than kMaxDatagram, with more than one descriptor, or one that is no sealed
// memfd. Never empty with `wait`. One thread.
StatusOr<Received> ReceiveDatagram(int socket, bool wait);

}  // namespace portico::pipeline
