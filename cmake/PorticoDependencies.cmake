# Debian packages, and libllama from build/deps (scripts/llama.sh).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
add_library(pcre2 ALIAS PkgConfig::PCRE2)
add_library(utf8proc ALIAS PkgConfig::UTF8PROC)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(xxhash_headers INTERFACE)
target_include_directories(xxhash_headers SYSTEM INTERFACE "${XXHASH_INCLUDE_DIR}")

if(PORTICO_PYTHON)
  return()  # the rooms below net need no more
endif()
find_package(OpenSSL REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
add_library(nghttp2 ALIAS PkgConfig::NGHTTP2)
find_package(Boost 1.81 REQUIRED)
find_package(Protobuf REQUIRED)

# A sanitizer sees only what was built with it: the engine's own threads need an instrumented libllama.
set(portico_llama_dir "${PORTICO_DEPS}/llama")
if(PORTICO_SANITIZE STREQUAL "thread")
  set(portico_llama_dir "${PORTICO_DEPS}/llama-thread")
endif()
list(PREPEND CMAKE_PREFIX_PATH "${portico_llama_dir}")
find_package(llama REQUIRED)

if(PORTICO_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  enable_testing()
  include(GoogleTest)
endif()

# Takes malloc's place in a program: a whole answer of the mock engine costs an eighth less CPU than with glibc's.
find_library(MIMALLOC_LIBRARY mimalloc REQUIRED)
add_library(portico_allocator INTERFACE)
target_link_libraries(portico_allocator INTERFACE
                      "-Wl,--push-state,--no-as-needed" "${MIMALLOC_LIBRARY}" "-Wl,--pop-state")
