#include "net/http/body_budget.h"

#include <utility>

namespace portico::net {

bool BodyBudget::HasRoomFor(size_t body_bytes) {
  if (body_bytes <= kSmallBody || taken() + body_bytes <= bytes_) return true;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool BodyBudget::Take(size_t bytes) {
  if (taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_) return true;
  GiveBack(bytes);
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

BodyLease::BodyLease(BodyLease&& other) noexcept
    : budget_(std::move(other.budget_)), taken_(std::exchange(other.taken_, 0)) {}

BodyLease& BodyLease::operator=(BodyLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  budget_ = std::move(other.budget_);
  taken_ = std::exchange(other.taken_, 0);
  return *this;
}

bool BodyLease::Hold(const std::shared_ptr<BodyBudget>& budget, size_t body_bytes) {
  const size_t wanted = body_bytes <= BodyBudget::kSmallBody ? 0 : body_bytes;
  if (wanted > taken_) {
    if (!budget->Take(wanted - taken_)) return false;
    budget_ = budget;
  } else if (wanted < taken_) {
    budget_->GiveBack(taken_ - wanted);
  }
  taken_ = wanted;
  return true;
}

void BodyLease::Release() {
  if (taken_ > 0) budget_->GiveBack(std::exchange(taken_, 0));
  budget_.reset();
}

}  // namespace portico::net
