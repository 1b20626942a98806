// Whether somebody who pauses has finished: what semantic_vad asks.
#pragma once

#include <string_view>

namespace portico::api::openai {

// By the end of what has been recognized since the pause before. A sentence's mark ends it, where the recognizer
// writes marks; a comma, a dash or dots do not. Without a mark it goes on behind a word that English puts before
// others and seldom at the end (an article, a conjunction …) and behind a sound of hesitation. Nothing recognized: not
// finished. Other languages are judged by their marks alone.
bool LooksFinished(std::string_view text);

}  // namespace portico::api::openai
