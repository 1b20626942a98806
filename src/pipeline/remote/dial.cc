#include "pipeline/remote/dial.h"

#include <fmt/format.h>

#include <utility>

#include "net/socket/transport.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/greeting.h"
#include "pipeline/remote/tcp_channel.h"

namespace portico::pipeline {
namespace {

struct Dialer {
  std::vector<HostPort> hosts;
  std::string token;
  std::unique_ptr<net::TlsClientContext> tls;  // null: plain

  StatusOr<StageLink> Open(int index, const std::function<bool()>& stopping) const {
    const HostPort& host = hosts[static_cast<size_t>(index) % hosts.size()];
    PORTICO_ASSIGN_OR_RETURN(Fd socket, ConnectTo(host, token.empty(), stopping));
    std::unique_ptr<net::Transport> transport = tls != nullptr
                                                    ? tls->Connect(socket.get(), host.host)
                                                    : net::MakePlainTransport(socket.get());
    if (transport == nullptr) return Error(StatusCode::kUnavailable, "no memory for TLS");
    const Status greeted = GreetStageHost({socket.get(), *transport, token, stopping});
    if (!greeted.ok()) {
      return Error(greeted.code(), fmt::format("{}: {}", host.Text(), MessageOf(greeted)));
    }
    return StageLink{MakeTcpChannel(std::move(socket), std::move(transport)), -1, Fd()};
  }
};

}  // namespace

StatusOr<StageOpener> OpenByDialing(const ProcessConfig& process, std::string token) {
  auto dialer = std::make_shared<Dialer>();
  for (const std::string& host : process.hosts) {
    PORTICO_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(host));
    dialer->hosts.push_back(std::move(address));
  }
  PORTICO_RETURN_IF_ERROR(CheckToken(token));
  dialer->token = std::move(token);
  if (process.tls) {
    net::TlsClientOptions options;
    options.ca_file = process.tls_ca;
    options.protocol = net::TlsProtocol::kHttp1;
    PORTICO_ASSIGN_OR_RETURN(dialer->tls, net::TlsClientContext::Load(options));
  }
  return [dialer](int index, const std::function<bool()>& stopping) {
    return dialer->Open(index, stopping);
  };
}

}  // namespace portico::pipeline
