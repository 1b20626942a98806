// Whether tests run with a sanitizer, where random ones take fewer rounds.
#pragma once

namespace portico {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// The rounds of a random test that has `usual` ones without a sanitizer.
constexpr int RandomRounds(int usual) { return kSanitized ? (usual + 4) / 5 : usual; }

}  // namespace portico
