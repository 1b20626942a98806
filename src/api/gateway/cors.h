// Cross-origin requests (the Fetch standard, 3.2): browsers may read answers only if they name the
// page's origin.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "net/http/exchange.h"

namespace portico::api {

// What answers to the request must say so that its page may read them; empty if `origins` does not name the
// page's.
net::Headers CorsHeaders(const net::HttpRequest& request, std::span<const std::string> origins);

// Whether HandleCors() answers the request itself.
bool IsPreflight(const net::HttpRequest& request, std::span<const std::string> origins);

// Answers a preflight and returns null, or returns the exchange, whose answer will say that the page may
// read it. `origins` is not empty; requests of other origins get no such header, which browsers take as
// a no.
std::unique_ptr<net::Exchange> HandleCors(std::unique_ptr<net::Exchange> exchange,
                                          std::span<const std::string> origins);

}  // namespace portico::api
