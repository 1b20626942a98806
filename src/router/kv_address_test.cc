#include "router/kv_address.h"

#include <gtest/gtest.h>

namespace portico::router {
namespace {

KvAddress Parsed(std::string_view text) {
  auto address = ParseKvAddress(text);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.ok() ? *address : KvAddress{};
}

KvAddress OfServer(std::string_view info) { return KvAddressOfServer(*Json::Parse(info)); }

TEST(KvAddressTest, AnEndpointIsEnoughAndTheServersOwnConfigurationIsUnderstood) {
  EXPECT_EQ(Parsed("tcp://10.0.0.1:5557").endpoint, "tcp://10.0.0.1:5557");
  EXPECT_EQ(Parsed("ipc:///run/kv").endpoint, "ipc:///run/kv");
  const KvAddress address = Parsed(
      R"({"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:6000", "topic": "kv",
          "replay_endpoint": "tcp://*:7000", "hwm": 5, "bind": null, "dp_size": 4})");
  EXPECT_EQ(address, (KvAddress{"tcp://*:6000", "kv", "tcp://*:7000", 4}));
  EXPECT_EQ(Parsed(R"({"publisher": "zmq"})").endpoint, "tcp://*:5557") << "the servers' default";
}

TEST(KvAddressTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"10.0.0.1:5557", "endpoint"},
      {"tcp://10.0.0.1", "endpoint"},
      {"tcp://10.0.0.1:70000", "endpoint"},
      {"tcp://:5557", "endpoint"},
      {R"({"endpoint": 5})", "endpoint"},
      {R"({"publisher": "null"})", "publisher"},
      {R"({"bind": false})", "bind"},
      {R"({"replay_endpoint": "tcp://*"})", "replay_endpoint"},
      {R"({"endpoint": "tcp://*:65535", "dp_size": 2})", "endpoint"},
      {R"({"endpoint": "ipc:///run/kv", "dp_size": 2})", "endpoint"},
      {R"({"dp_size": 0})", "dp_size"},
      {R"({"topics": "a"})", "topics"},
  };
  for (const auto& [text, member] : kWrong) {
    const auto address = ParseKvAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(FieldOf(address.status()), member) << text;
  }
}

TEST(KvAddressTest, ServersNameTheirPortsAndNeverAnotherHost) {
  EXPECT_EQ(OfServer(R"({"kv_events": {"publisher": "zmq", "endpoint_host": "10.9.9.9",
                         "endpoint_port_base": 5557, "topic": "kv", "block_size": 64, "dp_size": 2,
                         "replay_endpoint_port_base": 5600}})"),
            (KvAddress{"tcp://*:5557", "kv", "tcp://*:5600", 2}));
  EXPECT_EQ(OfServer(R"({"dp_size": 2, "kv_events_config":
                         "{\"publisher\": \"zmq\", \"endpoint\": \"tcp://0.0.0.0:5557\"}"})"),
            (KvAddress{"tcp://*:5557", "", "", 2}));
  for (const char* none :
       {R"({})", R"({"kv_events": null})", R"({"kv_events": {"endpoint_port_base": 99999}})",
        R"({"kv_events_config": null})", R"({"kv_events_config": "{}}"})",
        R"({"kv_events_config": "{\"publisher\": \"null\"}"})",
        R"({"kv_events_config": "{\"publisher\": \"zmq\", \"endpoint\": \"tcp://10.0.0.1:5\"}"})",
        R"({"kv_events": {"endpoint_port_base": 65535, "dp_size": 2}})", R"([])"}) {
    EXPECT_TRUE(OfServer(none).empty()) << none;
  }
}

TEST(KvAddressTest, AWildcardIsTheWorkersHostAndEachRankHasAPort) {
  EXPECT_EQ(KvEndpointOf("tcp://*:5557", "10.0.0.1", 0), "tcp://10.0.0.1:5557");
  EXPECT_EQ(KvEndpointOf("tcp://[::]:5557", "::1", 3), "tcp://[::1]:5560");
  EXPECT_EQ(KvEndpointOf("tcp://other:5557", "10.0.0.1", 1), "tcp://other:5558");
  EXPECT_EQ(KvEndpointOf("ipc:///run/kv", "10.0.0.1", 0), "ipc:///run/kv");
}

}  // namespace
}  // namespace portico::router
