// TLS on a server's ports: the PEM files.
#pragma once

#include <string>

#include "base/clock.h"

namespace portico::net {

struct TlsOptions {
  // Both or none; none: no TLS.
  std::string certificate;  // with its chain
  std::string key;
  std::string key_password;  // empty: the key is not encrypted
  // Certificates of authorities. Where given, a client must show a certificate of one of them.
  std::string client_ca;
  // How often the files are looked at; zero: never. Changed ones serve new connections; if they
  // cannot be used, the former stay.
  Duration reload_period = std::chrono::seconds(1);
};

}  // namespace portico::net
