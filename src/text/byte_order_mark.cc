#include "text/byte_order_mark.h"

#include <string_view>

namespace portico {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
// UTF-32 in the machine's usual order begins with the second.
constexpr std::string_view kOtherMarks[] = {"\xFE\xFF", "\xFF\xFE", {"\0\0\xFE\xFF", 4}};

}  // namespace

Status DropByteOrderMark(std::string* body) {
  if (body->starts_with(kUtf8Mark)) body->erase(0, kUtf8Mark.size());
  for (const std::string_view mark : kOtherMarks) {
    if (!body->starts_with(mark)) continue;
    return InvalidArgument(
        "", "the body begins with the byte order mark of UTF-16 or UTF-32; it must be UTF-8");
  }
  return OkStatus();
}

}  // namespace portico
