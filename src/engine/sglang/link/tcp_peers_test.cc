#include "engine/sglang/link/tcp_peers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace portico::sglang {
namespace {

constexpr std::string_view kPeerHeading =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";
constexpr uint16_t kPeerPort = 0x1F90;
const std::vector<uint16_t> kPeerPorts = {kPeerPort};

std::string PeerLine(std::string_view local, std::string_view remote, std::string_view state,
                     int user, int inode) {
  return "   0: " + std::string(local) + " " + std::string(remote) + " " + std::string(state) +
         " 00000000:00000000 00:00000000 00000000  " + std::to_string(user) + "        0 " +
         std::to_string(inode) + " 1 0000000000000000 20 4 30 10 -1\n";
}

// A listener of user 1000 at 127.0.0.1:8080.
std::string PeerTable(const std::string& more) {
  return std::string(kPeerHeading) + PeerLine("0100007F:1F90", "00000000:0000", "0A", 1000, 7) +
         more;
}

// Both ends of a connection to it.
std::string PeerPair(std::string_view port, int user) {
  const std::string peer = "0100007F:" + std::string(port);
  return PeerLine(peer, "0100007F:1F90", "01", user, 8) +
         PeerLine("0100007F:1F90", peer, "01", 0, 0);
}

TEST(TcpPeers, ConnectionsOfOneUserAreThatUsers) {
  EXPECT_EQ(
      UsersConnected(PeerTable(PeerPair("C000", 1000) + PeerPair("C001", 1000)), kPeerPorts, 1000),
      PeerUsers::kOne);
}

TEST(TcpPeers, WithoutAnyConnectionThereIsNobodyToAdmit) {
  EXPECT_EQ(UsersConnected(PeerTable(""), kPeerPorts, 1000), PeerUsers::kUnclear);
  EXPECT_EQ(UsersConnected("", kPeerPorts, 1000), PeerUsers::kUnclear);
}

TEST(TcpPeers, AConnectionOfAnotherUserIsSeenInEveryStateInWhichItCouldRead) {
  const std::string own = PeerPair("C000", 1000);
  EXPECT_EQ(UsersConnected(PeerTable(own + PeerPair("C001", 0)), kPeerPorts, 1000),
            PeerUsers::kOthers);
  for (const std::string_view state : {"01", "02", "04", "05"}) {
    const std::string other = PeerLine("0100007F:C001", "0100007F:1F90", state, 1001, 9);
    EXPECT_EQ(UsersConnected(PeerTable(own + other), kPeerPorts, 1000), PeerUsers::kOthers)
        << state;
  }
}

TEST(TcpPeers, AnIpv6SocketOfAnotherUserIsSeenToo) {
  const std::string mapped = PeerLine("0000000000000000FFFF00000100007F:C001",
                                      "0000000000000000FFFF00000100007F:1F90", "01", 1001, 9);
  EXPECT_EQ(UsersConnected(PeerTable(PeerPair("C000", 1000) + mapped), kPeerPorts, 1000),
            PeerUsers::kOthers);
  const std::string own = PeerLine("0000000000000000FFFF00000100007F:C001",
                                   "0000000000000000FFFF00000100007F:1F90", "01", 1000, 9) +
                          PeerLine("0100007F:1F90", "0100007F:C001", "01", 0, 0);
  EXPECT_EQ(UsersConnected(PeerTable(own), kPeerPorts, 1000), PeerUsers::kOne);
}

TEST(TcpPeers, AConnectionWhoseOtherEndIsNotShownIsNotTaken) {
  const std::string half = PeerLine("0100007F:1F90", "0100007F:C001", "01", 0, 0);
  EXPECT_EQ(UsersConnected(PeerTable(PeerPair("C000", 1000) + half), kPeerPorts, 1000),
            PeerUsers::kUnclear);
}

TEST(TcpPeers, OneSourcePortMayHaveConnectionsToSeveralListeners) {
  const std::string two = PeerLine("0100007F:1F91", "00000000:0000", "0A", 1000, 10) +
                          PeerPair("C000", 1000) +
                          PeerLine("0100007F:C000", "0100007F:1F91", "01", 1000, 11) +
                          PeerLine("0100007F:1F91", "0100007F:C000", "01", 0, 0);
  const std::vector<uint16_t> both = {kPeerPort, kPeerPort + 1};
  EXPECT_EQ(UsersConnected(PeerTable(two), both, 1000), PeerUsers::kOne);
}

TEST(TcpPeers, WhatIsOverWasSentAwayOrGoesElsewhereDoesNotCount) {
  const std::string over = PeerLine("0100007F:C001", "0100007F:1F90", "06", 0, 0) +
                           PeerLine("0100007F:C002", "0100007F:1F90", "05", 0, 0);
  const std::string sent_away = PeerLine("0100007F:C005", "0100007F:1F90", "08", 1001, 12);
  const std::string elsewhere = PeerLine("0100007F:C003", "0100007F:1F91", "01", 1001, 9) +
                                PeerLine("0200000A:C004", "0300000A:1F90", "01", 1001, 9);
  EXPECT_EQ(UsersConnected(PeerTable(PeerPair("C000", 1000) + over + sent_away + elsewhere),
                           kPeerPorts, 1000),
            PeerUsers::kOne);
}

// Such a peer was refused in silence, and requests waited without end.
TEST(TcpPeers, WhoStaysUnclearForLongIsToldOfOnce) {
  using std::chrono::seconds;
  const TimePoint start = Clock::now();
  UnclearPeers peers;
  for (const int at : {0, 4, 9}) {
    EXPECT_FALSE(peers.Add(PeerUsers::kUnclear, start + seconds(at))) << at;
  }
  EXPECT_TRUE(peers.Add(PeerUsers::kUnclear, start + seconds(10)));
  EXPECT_FALSE(peers.Add(PeerUsers::kUnclear, start + seconds(25)));
}

TEST(TcpPeers, WhatIsUnclearForAMomentIsNotToldOf) {
  using std::chrono::seconds;
  const TimePoint start = Clock::now();
  UnclearPeers peers;
  EXPECT_FALSE(peers.Add(PeerUsers::kUnclear, start));
  EXPECT_FALSE(peers.Add(PeerUsers::kOne, start + seconds(6)));
  EXPECT_FALSE(peers.Add(PeerUsers::kUnclear, start + seconds(12)));
  EXPECT_FALSE(peers.Add(PeerUsers::kUnclear, start + seconds(60))) << "another one";
  EXPECT_TRUE(peers.Add(PeerUsers::kUnclear, start + seconds(70)));
}

TEST(TcpPeers, TheKernelShowsTheConnectionsOfThisProcess) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size), 0);
  const std::vector<uint16_t> ports = {ntohs(name.sin_port)};
  EXPECT_FALSE(ListenersAreVisible(ports));
  ASSERT_EQ(listen(listener, 4), 0);
  EXPECT_TRUE(ListenersAreVisible(ports));
  EXPECT_EQ(OwnUserConnected(ports), PeerUsers::kUnclear);
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(peer, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  EXPECT_EQ(OwnUserConnected(ports), PeerUsers::kOne);
  close(peer);
  close(listener);
}

TEST(TcpPeers, OnOtherAddressesThePeersThatSglangsOwnListNamesAreAdmitted) {
  setenv("SGLANG_ZMQ_ALLOWED_PEERS", "10.0.0.2, fd00:0:0::1", 1);
  auto admits = AdmissionTo({"tcp://10.0.0.1:1234"});
  ASSERT_TRUE(admits.ok());
  EXPECT_TRUE((*admits)("10.0.0.2"));
  EXPECT_TRUE((*admits)("::ffff:10.0.0.2"));
  EXPECT_TRUE((*admits)("fd00::1"));
  EXPECT_FALSE((*admits)("10.0.0.3"));
  EXPECT_FALSE((*admits)(""));
  unsetenv("SGLANG_ZMQ_ALLOWED_PEERS");
  EXPECT_FALSE((*admits)("10.0.0.2"));
}

TEST(TcpPeers, PortsWhereNobodyListensAreNotGuarded) {
  EXPECT_EQ(AdmissionTo({"tcp://127.0.0.1:1"}).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(AdmissionTo({"tcp://127.0.0.1:none"}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace portico::sglang
