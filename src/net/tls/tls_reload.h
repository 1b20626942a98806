// Watches the files of TLS and loads them anew when they change.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "net/loop/shard.h"
#include "net/tls/tls.h"

namespace portico::net {

class TlsReloader {
 public:
  using OnChange = std::function<void(std::shared_ptr<const TlsContext> context)>;

  TlsReloader(Shard& shard, TlsOptions options, bool http2);
  ~TlsReloader();  // on the shard, or before Watch()

  // The files as they are now. Any thread, before Watch().
  StatusOr<std::shared_ptr<const TlsContext>> Load();
  // On the shard. `on_change` gets what has been loaded anew; what cannot be is logged, once a
  // change, so that a certificate may come before its key.
  void Watch(OnChange on_change);

 private:
  struct Stamp {
    int64_t modified = 0;  // ns
    off_t size = 0;
    ino_t inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;

  Stamps Look() const;
  void Check();

  Shard& shard_;
  const TlsOptions options_;
  const bool http2_;
  Stamps stamps_;
  OnChange on_change_;
  std::unique_ptr<Shard::Timer> timer_;
};

}  // namespace portico::net
