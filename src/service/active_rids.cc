#include "service/active_rids.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/mutex.h"

namespace portico {

RidLease::RidLease(RidLease&& other) noexcept
    : rids_(std::exchange(other.rids_, nullptr)), rid_(std::move(other.rid_)) {}

RidLease& RidLease::operator=(RidLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  rids_ = std::exchange(other.rids_, nullptr);
  rid_ = std::move(other.rid_);
  return *this;
}

void RidLease::Release() {
  ActiveRids* rids = std::exchange(rids_, nullptr);
  if (rids == nullptr) return;
  ActiveRids::Stripe& stripe = rids->StripeOf(rid_);
  const MutexLock lock(&stripe.mutex);
  stripe.rids.erase(rid_);
}

ActiveRids::Stripe& ActiveRids::StripeOf(std::string_view rid) {
  return stripes_[std::hash<std::string_view>()(rid) % stripes_.size()];
}

StatusOr<RidLease> ActiveRids::Take(std::string_view rid) {
  if (rid.empty()) return RidLease();
  Stripe& stripe = StripeOf(rid);
  const MutexLock lock(&stripe.mutex);
  if (!stripe.rids.emplace(rid).second) {
    return Error(StatusCode::kAlreadyExists,
                 fmt::format("rid {} names a request that is still running", rid), "rid");
  }
  return RidLease(this, std::string(rid));
}

}  // namespace portico
