// A request that is being answered: it owns its exchange and its generation, and lives in its shard's table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net/http/exchange.h"
#include "net/loop/shard.h"

namespace portico::api {

class Call {
 public:
  virtual ~Call() = default;
  // Ends the generation early; the client gets finish_reason "abort".
  virtual void Abort() = 0;
  // Ends what bears this rid: the whole call, or one prompt of a batch.
  virtual void AbortRid(std::string_view name) {
    if (rid == name) Abort();
  }
  // Gives its rids back, for it is about to go away: another request may come within the turn.
  virtual void FreeRids() {}

  // What /abort_request calls it; no two running calls have the same (service/active_rids.h).
  std::string rid;
  // Names the call in its table; 0 before Add().
  uint64_t serial = 0;
};

// What was asked to be aborted before it was known who bears which rid.
struct EarlyAborts {
  bool all = false;
  std::vector<std::string> rids;
};

// The live calls of one shard, on it only.
class CallTable {
 public:
  explicit CallTable(net::Shard& shard) : shard_(shard) {}

  // The call's serial.
  uint64_t Add(std::unique_ptr<Call> call);
  // Null if that call is gone.
  Call* Find(uint64_t serial);
  // Frees the call's rids, and destroys it at the end of the turn: it may be on the stack now.
  // Twice is once.
  void Remove(Call* call);
  // Every call of that rid, or all.
  void Abort(std::string_view rid, bool all);
  // The same among the calls that were added after the one of that serial.
  void AbortSince(uint64_t serial, const EarlyAborts& aborts);
  uint64_t last_serial() const { return last_serial_; }
  size_t size() const { return calls_.size(); }
  // At shutdown, on the shard or after its thread has ended.
  void Clear() { calls_.clear(); }

 private:
  net::Shard& shard_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Call>> calls_;
  std::vector<uint64_t> leaving_;
  uint64_t last_serial_ = 0;
  bool posted_ = false;
};

}  // namespace portico::api
