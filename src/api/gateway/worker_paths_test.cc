#include "api/gateway/worker_paths.h"

#include <gtest/gtest.h>

#include "api/route_table.h"

namespace portico::api {
namespace {

// What the gateway answers itself and asks no worker for.
bool IsGatewaysOwn(const std::string& path) {
  return path == "/health" || path == "/readiness" || path == "/ping" || path == "/metrics" ||
         path == "/get_load";
}

TEST(WorkerPathsTest, EveryRouteOfTheServerIsSomebodysAtTheGateway) {
  // Half of SGLang's controls were 404 at the gateway.
  const RouteTable table = MakeRouteTable();
  for (const auto& route : table.routes()) {
    if (IsGatewaysOwn(route->path)) continue;
    const std::string path = route->path.ends_with("*")
                                 ? route->path.substr(0, route->path.size() - 1) + "x"
                                 : route->path;
    EXPECT_NE(RecipientsOf(path), Recipients::kNone) << path;
    if (path.starts_with("/v1/audio/voices"))
      continue;  // for clients to read, for operators to change
    // The gateway sends its own key to workers: a client's key must not do there what it may not do here.
    EXPECT_EQ(IsControlPath(path), route->access == Access::kAdmin) << path;
  }
}

TEST(WorkerPathsTest, EveryPathOfTheGatewayIsTheServersOrKnownToBeAnothers) {
  const RouteTable table = MakeRouteTable();
  const auto has = [&](std::string_view path) {
    for (const auto& route : table.routes()) {
      if (route->path == path) return true;
    }
    return false;
  };
  for (const std::string_view path : NamedWorkerPaths()) {
    EXPECT_NE(has(path), IsOthersPath(path)) << path;
  }
}

TEST(WorkerPathsTest, ASessionIsForAllWorkersAndForClients) {
  for (const char* path : {"/open_session", "/close_session"}) {
    EXPECT_EQ(RecipientsOf(path), Recipients::kAll);
    EXPECT_FALSE(IsControlPath(path));
  }
  EXPECT_EQ(RecipientsOf("/get_weights_by_name"), Recipients::kOne);
  EXPECT_EQ(RecipientsOf("/nothing"), Recipients::kNone);
  EXPECT_EQ(RecipientsOf("/generate/"), Recipients::kNone);
}

TEST(WorkerPathsTest, WhatConcernsTheRanksOfOneServerIsItsOwn) {
  for (const char* path : {"/scale_elastic_ep", "/fault_tolerance/apply", "/dumper/x"}) {
    EXPECT_EQ(RecipientsOf(path), Recipients::kItself) << path;
    EXPECT_TRUE(IsControlPath(path)) << path;
  }
}

TEST(WorkerPathsTest, VllmsUpdateOfWeightsIsForAllWorkersAndForOperators) {
  for (const char* path :
       {"/abort_requests", "/init_weight_transfer_engine", "/start_weight_update",
        "/start_draft_weight_update", "/update_weights", "/finish_weight_update", "/weight_checker",
        "/reset_mm_cache", "/reset_encoder_cache", "/collective_rpc"}) {
    EXPECT_EQ(RecipientsOf(path), Recipients::kAll) << path;
    EXPECT_TRUE(IsControlPath(path)) << path;
    EXPECT_FALSE(GetOnlyReads(path)) << path;
  }
  for (const char* path :
       {"/is_paused", "/is_sleeping", "/get_world_size", "/load", "/weight_info"}) {
    EXPECT_EQ(RecipientsOf(path), Recipients::kAll) << path;
    EXPECT_TRUE(IsControlPath(path)) << path;
    EXPECT_TRUE(GetOnlyReads(path)) << path;
  }
}

}  // namespace
}  // namespace portico::api
