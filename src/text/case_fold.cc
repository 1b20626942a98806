#include "text/case_fold.h"

#include <utf8proc.h>

#include <array>

#include "text/utf8.h"

namespace portico {

void AppendCaseFold(uint32_t code_point, std::string* out) {
  std::array<utf8proc_int32_t, 4> folded;
  int last = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), folded.data(),
                              folded.size(), UTF8PROC_CASEFOLD, &last);
  if (count < 1 || static_cast<size_t>(count) > folded.size()) return AppendUtf8(code_point, out);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    AppendUtf8(static_cast<uint32_t>(folded[i]), out);
  }
}

}  // namespace portico
