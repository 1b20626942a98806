// Reads the file of a run's records.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/events/record_file.h"
#include "base/events/request_names.h"
#include "base/status.h"

namespace portico::events::internal {

struct RecordsFacts {
  RecordsHead head;
  std::string run_id;
};
// INVALID_ARGUMENT: it is no such file.
StatusOr<RecordsFacts> ReadRecordsFacts(const std::string& path);

// Each event with the name of its request, empty where it has none; nearly in the order in which
// they were recorded. `names` knows the requests of former runs of the process. A file that ends
// within a record ends before it.
Status ReadRecords(const std::string& path, RequestNames* names, const TakeLine& take);

}  // namespace portico::events::internal
