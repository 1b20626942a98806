// A channel over a connection between hosts, plain or through TLS.
#pragma once

#include <memory>

#include "net/socket/transport.h"
#include "pipeline/blob.h"
#include "pipeline/process/channel.h"

namespace portico::pipeline {

// After the greeting (greeting.h). `transport` is that of `socket`, which does not block.
std::unique_ptr<Channel> MakeTcpChannel(Fd socket, std::unique_ptr<net::Transport> transport);

}  // namespace portico::pipeline
