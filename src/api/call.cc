#include "api/call.h"

namespace portico::api {

Call* CallTable::Add(std::unique_ptr<Call> call) {
  Call* pointer = call.get();
  calls_.emplace(pointer, std::move(call));
  return pointer;
}

void CallTable::Remove(Call* call) {
  leaving_.push_back(call);
  if (posted_) return;
  posted_ = true;
  shard_.AtEndOfTurn([this] {
    posted_ = false;
    std::vector<Call*> leaving;
    leaving.swap(leaving_);
    for (Call* gone : leaving) calls_.erase(gone);
  });
}

void CallTable::Abort(std::string_view rid, bool all) {
  for (auto& [call, owned] : calls_) {
    if (all || call->rid == rid) call->Abort();
  }
}

}  // namespace portico::api
