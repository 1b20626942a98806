#include "api/call.h"

namespace portico::api {

uint64_t CallTable::Add(std::unique_ptr<Call> call) {
  call->serial = ++last_serial_;
  calls_.emplace(last_serial_, std::move(call));
  return last_serial_;
}

Call* CallTable::Find(uint64_t serial) {
  auto it = calls_.find(serial);
  return it == calls_.end() ? nullptr : it->second.get();
}

void CallTable::Remove(Call* call) {
  call->FreeRids();
  leaving_.push_back(call->serial);
  if (posted_) return;
  posted_ = true;
  shard_.AtEndOfTurn([this] {
    posted_ = false;
    std::vector<uint64_t> leaving;
    leaving.swap(leaving_);
    for (uint64_t serial : leaving) calls_.erase(serial);
  });
}

void CallTable::Abort(std::string_view rid, bool all) {
  for (auto& [serial, call] : calls_) {
    if (all) {
      call->Abort();
    } else {
      call->AbortRid(rid);
    }
  }
}

void CallTable::AbortSince(uint64_t serial, const EarlyAborts& aborts) {
  if (!aborts.all && aborts.rids.empty()) return;
  while (++serial <= last_serial_) {
    Call* call = Find(serial);
    if (call == nullptr) continue;
    if (aborts.all) {
      call->Abort();
      continue;
    }
    for (const std::string& rid : aborts.rids) call->AbortRid(rid);
  }
}

}  // namespace portico::api
