#include "net/socket/host_addresses.h"

#include <gtest/gtest.h>

namespace portico::net {
namespace {

TEST(HostAddressesTest, AddressesOfThisMachineAndOfPrivateNetworksAreNotPublic) {
  for (const char* address : {"127.0.0.1",
                              "127.8.8.8",
                              "0.0.0.0",
                              "10.1.2.3",
                              "100.64.0.1",
                              "100.127.255.255",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.0.0.8",
                              "192.0.2.1",
                              "192.168.1.1",
                              "198.18.0.1",
                              "198.19.255.255",
                              "198.51.100.7",
                              "203.0.113.9",
                              "224.0.0.1",
                              "239.255.255.255",
                              "240.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "::ffff:127.0.0.1",
                              "::ffff:10.0.0.1",
                              "::127.0.0.1",
                              "64:ff9b::7f00:1",
                              "fc00::1",
                              "fd12:3456::1",
                              "fe80::1",
                              "fe80::1%1",
                              "ff02::1",
                              "100::1",
                              "2001::1",
                              "2001:1ff::1",
                              "2001:db8::1",
                              "2002:7f00:1::1",
                              "3fff:fff::1",
                              "",
                              "x",
                              "localhost",
                              "1.2.3",
                              "1.2.3.4.5",
                              "0x7f.1"}) {
    EXPECT_FALSE(IsPublicAddress(address)) << address;
  }
}

TEST(HostAddressesTest, OtherAddressesArePublic) {
  for (const char* address :
       {"1.1.1.1",        "8.8.8.8",        "9.255.255.255",        "11.0.0.0",
        "100.63.255.255", "100.128.0.0",    "126.255.255.255",      "128.0.0.1",
        "169.253.1.1",    "172.15.255.255", "172.32.0.0",           "192.0.1.1",
        "192.167.0.1",    "198.17.0.1",     "198.20.0.1",           "223.255.255.255",
        "::ffff:8.8.8.8", "2001:200::1",    "2001:4860:4860::8888", "2606:4700::1111",
        "2a00:1450::1"}) {
    EXPECT_TRUE(IsPublicAddress(address)) << address;
  }
}

}  // namespace
}  // namespace portico::net
