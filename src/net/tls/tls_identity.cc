#include "net/tls/tls_identity.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstring>

#include "net/tls/tls_transport.h"

namespace portico::net {
namespace {

int GivePassword(char* to, int size, int, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.size() > static_cast<size_t>(size)) return 0;
  std::memcpy(to, text.data(), text.size());
  return static_cast<int>(text.size());
}

}  // namespace

Status CannotUseTlsFile(std::string_view what, const std::string& path) {
  return Error(StatusCode::kInvalidArgument,
               "cannot use the TLS " + std::string(what) + " " + path + ": " + FirstTlsError());
}

Status UseTlsIdentity(SSL_CTX* context, const std::string& certificate, const std::string& key,
                      const std::string& password) {
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return CannotUseTlsFile("certificate", certificate);
  }
  // Without a callback of ours OpenSSL would ask at the terminal.
  std::string given = password;
  SSL_CTX_set_default_passwd_cb(context, GivePassword);
  SSL_CTX_set_default_passwd_cb_userdata(context, &given);
  const bool key_ok = SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  SSL_CTX_set_default_passwd_cb(context, nullptr);
  if (!key_ok) return CannotUseTlsFile("key", key);
  if (SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return Error(StatusCode::kInvalidArgument,
                 "the TLS key " + key + " does not belong to the certificate " + certificate);
  }
  return OkStatus();
}

}  // namespace portico::net
