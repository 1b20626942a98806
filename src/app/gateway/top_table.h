// What `portico top` shows of a gateway's GET /workers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "text/json.h"

namespace portico {

class TopTable {
 public:
  // The answer to GET /workers at `now`; rates are those since the one before. Lines of at most `width` columns, with
  // their ends. An answer of another form gives a line that says so.
  std::string Render(std::string_view url, const Json& answer, TimePoint now, size_t width);

 private:
  std::map<std::string, double> totals_;  // requests by worker, in the answer before
  TimePoint last_{};                      // of it; epoch: there was none
};

}  // namespace portico
