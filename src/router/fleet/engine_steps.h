// Whether an engine steps, from vLLM's GET /metrics: vLLM has no route that infers for a probe, and its /health
// answers 200 while its engine hangs. Its counters of tokens move with every step that ends a prefill or yields
// tokens, and its gauges (requests running and waiting, share of the KV cache in use) are set after every step,
// those within a long prefill too, which takes another part of the cache each (vllm/v1/metrics/loggers.py,
// record()). Nothing else moves them: two pages with equal values say that no step has ended in between.
//
// Where a server has several engines, or serves several models, the steps of all of them count: of one that
// hangs nothing is seen while another steps. A page says nothing if it has no counter of tokens
// (--disable-log-stats, another server), if all of them are zero: then no step has ever been counted, or if no request is
// running or waiting: the engine has nothing to do, while a body is on its way to the server or an answer from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace portico::router {

// Reads one page, in parts as they arrive, and keeps nothing of it but the beginning of a line.
class EngineSteps {
 public:
  static constexpr size_t kMaxLine = 16 << 10;  // longer ones are skipped

  void Add(std::string_view part);

  // At the end of the page. Whether it is one of vLLM's, with counters of tokens.
  bool known();
  // Equal values on two pages have equal marks, in whatever order the samples stand; a server that has restarted has
  // another one. Nothing as long as no step has been counted, and where the engine has no request.
  std::optional<uint64_t> mark();

 private:
  void Line(std::string_view line);
  void EndLine();

  std::string line_;    // what has come of one that is not complete
  bool skips_ = false;  // to its end
  bool known_ = false;
  bool stepped_ = false;
  bool busy_ = false;  // requests are running or waiting
  uint64_t mark_ = 0;
};

}  // namespace portico::router
