#include "api/stream_form.h"

#include <fmt/format.h>

namespace portico::api {

StatusOr<bool> WantsCumulative(std::string_view form, std::string_view kind, bool otherwise) {
  if (form.empty()) return otherwise;
  if (form == "cumulative") return true;
  if (form == "delta") return false;
  return InvalidArgument(kStreamForm,
                         fmt::format("the {} {} must be delta or cumulative", kind, kStreamForm));
}

}  // namespace portico::api
