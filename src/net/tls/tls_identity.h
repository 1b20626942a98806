// The certificate that a side of TLS shows, server or client.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

struct ssl_ctx_st;

namespace portico::net {

// From PEM files: a certificate with its chain, and its key. Fails with a sentence that names the
// file. `password` is that of an encrypted key, or empty.
Status UseTlsIdentity(ssl_ctx_st* context, const std::string& certificate, const std::string& key,
                      const std::string& password);

// "cannot use the TLS `what` `path`: " and OpenSSL's reason.
Status CannotUseTlsFile(std::string_view what, const std::string& path);

}  // namespace portico::net
