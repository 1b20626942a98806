// Any bytes as JSON: refused, or a value whose text reads back as the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json =
      portico::Json::Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!json.ok()) return 0;
  const auto again = portico::Json::Parse(json->Dump());
  if (!again.ok() || !(*again == *json)) std::abort();
  return 0;
}
