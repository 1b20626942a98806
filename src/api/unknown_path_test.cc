#include "api/unknown_path.h"

#include <gtest/gtest.h>

#include <string>

#include "api/route_table.h"

namespace portico::api {
namespace {

std::string TextOfUnknown(const std::string& method, const std::string& path) {
  static const RouteTable table = MakeRouteTable();
  const auto has = [](std::string_view wanted) {
    for (const auto& route : table.routes()) {
      if (route->path == wanted) return true;
    }
    return false;
  };
  return UnknownPath(method, path, has);
}

// Clients whose base URL lacks /v1, the commonest slip, got the path alone.
TEST(UnknownPath, NamesTheRouteOfABaseUrlThatHasNoVersionOrTwo) {
  constexpr char kMeant[] =
      "; did you mean /v1/chat/completions? (base URLs of OpenAI's clients end with /v1)";
  for (const char* path : {"/chat/completions", "/v1/v1/chat/completions", "/v1/chat/completions/",
                           "/chat/completions//"}) {
    EXPECT_EQ(TextOfUnknown("POST", path), "unknown path: POST " + std::string(path) + kMeant);
  }
  EXPECT_EQ(TextOfUnknown("POST", "/v1/generate"),
            "unknown path: POST /v1/generate; did you mean /generate?");
}

TEST(UnknownPath, NamesTheApiThatIsNotServed) {
  EXPECT_EQ(TextOfUnknown("POST", "/v1/responses"),
            "unknown path: POST /v1/responses; this server does not have the Responses API: use "
            "/v1/chat/completions");
  EXPECT_EQ(TextOfUnknown("GET", "/v1/responses/resp_1"),
            "unknown path: GET /v1/responses/resp_1; this server does not have the Responses API: "
            "use /v1/chat/completions");
  EXPECT_EQ(TextOfUnknown("POST", "/v1/messages/count_tokens"),
            "unknown path: POST /v1/messages/count_tokens; this server does not have Anthropic's "
            "API: use /v1/chat/completions");
  EXPECT_EQ(TextOfUnknown("GET", "/api/tags"),
            "unknown path: GET /api/tags; this server does not have Ollama's API: use /v1/models");
  EXPECT_EQ(TextOfUnknown("GET", "/api/ps"),
            "unknown path: GET /api/ps; this server does not have Ollama's API");
  EXPECT_EQ(TextOfUnknown("GET", "/props"),
            "unknown path: GET /props; this server does not have llama-server's /props: use "
            "/get_server_info");
}

TEST(UnknownPath, OfOtherPathsThereIsNothingMoreToSay) {
  for (const char* path : {"/", "//", "", "/v1", "/v1/", "/v1/messagesboard", "/apix", "/a/b"}) {
    EXPECT_EQ(TextOfUnknown("GET", path), "unknown path: GET " + std::string(path));
  }
  // A server of few routes names none that it does not have.
  EXPECT_EQ(UnknownPath("POST", "/v1/responses", [](std::string_view) { return false; }),
            "unknown path: POST /v1/responses; this server does not have the Responses API");
}

}  // namespace
}  // namespace portico::api
