// What the gateway says when it answers itself, in OpenAI's form. Never a worker's address.
#pragma once

#include <string>
#include <string_view>

namespace portico::router {

// {"error":{"message":…,"type":…,"param":…,"code":…}}; `field`: the one at fault, null if it is empty.
std::string GatewayErrorBody(int status, std::string_view message, std::string_view code,
                             std::string_view field = {});

// The end of a stream that is cut: an event with the error in the form of the API behind `path`,
// and the mark that ends its streams.
std::string CutEvents(std::string_view path, std::string_view message, std::string_view code);

}  // namespace portico::router
