#include "net/tls/tls_reload.h"

#include <sys/stat.h>

#include <utility>

#include "base/log.h"

namespace portico::net {

TlsReloader::TlsReloader(Shard& shard, TlsOptions options, bool http2)
    : shard_(shard), options_(std::move(options)), http2_(http2) {}

TlsReloader::~TlsReloader() = default;

TlsReloader::Stamps TlsReloader::Look() const {
  Stamps stamps;
  const std::string* files[] = {&options_.certificate, &options_.key, &options_.client_ca};
  for (size_t i = 0; i < stamps.size(); ++i) {
    struct stat now = {};
    // A file that is gone has the stamp 0, and is loaded when it comes again.
    if (files[i]->empty() || stat(files[i]->c_str(), &now) != 0) continue;
    stamps[i] = {now.st_mtim.tv_sec * 1'000'000'000 + now.st_mtim.tv_nsec, now.st_size, now.st_ino};
  }
  return stamps;
}

StatusOr<std::shared_ptr<const TlsContext>> TlsReloader::Load() {
  // Before the files are read: what changes meanwhile is seen at the next look.
  stamps_ = Look();
  PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<TlsContext> loaded, TlsContext::Load(options_, http2_));
  return std::shared_ptr<const TlsContext>(std::move(loaded));
}

void TlsReloader::Watch(OnChange on_change) {
  on_change_ = std::move(on_change);
  Check();
}

void TlsReloader::Check() {
  timer_ = shard_.After(options_.reload_period, [this] { Check(); });
  if (Look() == stamps_) return;
  auto loaded = Load();
  if (!loaded.ok()) {
    LogWarning("TLS keeps using the previous files: {}", MessageOf(loaded.status()));
    return;
  }
  LogInfo("TLS uses the changed files of {}", options_.certificate);
  on_change_(*std::move(loaded));
}

}  // namespace portico::net
