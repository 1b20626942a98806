// Keys in the headers of requests.
#pragma once

#include <openssl/crypto.h>

#include <cstddef>
#include <string_view>

namespace portico::net {

// Takes as long for any wrong key of the same length; the length itself is no secret.
inline bool SameKey(std::string_view given, std::string_view expected) {
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

// The token of an `authorization` whose scheme is Bearer, in any case (RFC 6750, 2.1; RFC 9110, 11.1). Empty: there is none.
inline std::string_view BearerToken(std::string_view authorization) {
  constexpr std::string_view kBearer = "bearer ";
  if (authorization.size() <= kBearer.size()) return {};
  for (size_t i = 0; i < kBearer.size(); ++i) {
    char c = authorization[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != kBearer[i]) return {};
  }
  return authorization.substr(kBearer.size());
}

}  // namespace portico::net
