// Reading streams of server-sent events in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "text/json.h"

namespace portico::api::openai {

// The data of each event. Fails the test if the stream is not made of whole `data:` events that hold JSON, apart
// from a last [DONE].
inline std::vector<std::string> DataOf(std::string_view stream) {
  std::vector<std::string> data;
  while (!stream.empty()) {
    size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos);
    EXPECT_EQ(stream.substr(0, 6), "data: ");
    if (end == std::string_view::npos) return data;
    data.emplace_back(stream.substr(6, end - 6));
    stream.remove_prefix(end + 2);
    const bool is_done = data.back() == "[DONE]";
    EXPECT_TRUE(!is_done || stream.empty());
    EXPECT_TRUE(is_done || Json::Parse(data.back()).ok()) << data.back();
  }
  return data;
}

// The first choice of an event.
inline Json ChoiceOf(const std::string& event) {
  auto json = Json::Parse(event);
  if (!json.ok() || !json->Find("choices") || json->Find("choices")->as_array().empty()) return {};
  return json->Find("choices")->as_array()[0];
}

}  // namespace portico::api::openai
