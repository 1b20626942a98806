// What a client's JSGF grammar may cost. PocketSphinx writes each reference to a rule out, so that
// twenty lines can stand for a million words, and its time grows with the third power of the
// optional parts in a row (300 of `[a]`: a minute and more), without a way to stop it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::pipeline {

inline constexpr size_t kMaxJsgfBytes = 64 << 10;
inline constexpr size_t kMaxJsgfItems = 4096;  // words, groups and references, written out
inline constexpr size_t kMaxJsgfSkips = 96;    // of these `[…]`, `*` and <NULL>

// The grammar without comments, tags and quotes, so that the recognizer reads exactly what has been
// counted here. Refuses what exceeds the bounds, rules that are missing, defined twice or recursive
// other than at their ends, and imports, which read files. The error's field is `stage_params`.
// Takes time in proportion to `grammar`; other faults in it are for the recognizer to find.
StatusOr<std::string> BoundedJsgf(std::string_view grammar);

}  // namespace portico::pipeline
