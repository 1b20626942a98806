# Compiler and linker settings common to every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(portico_flags INTERFACE)
target_include_directories(portico_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(portico_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -fno-omit-frame-pointer
                       -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # False positives of GCC 12 and 13 on inlined std::string code at -O3 (GCC bugs 105329, 105651).
  target_compile_options(portico_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(PORTICO_WERROR)
  target_compile_options(portico_flags INTERFACE -Werror)
endif()
target_compile_definitions(portico_flags INTERFACE PORTICO_VERSION="${PROJECT_VERSION}")

if(PORTICO_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(PORTICO_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
if(PORTICO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# portico_native(TARGET): vectors of 32 bytes and the newer bit instructions, where this machine has them and may use
# them. Sums stay as they are written.
include(CheckCXXSourceRuns)
function(portico_native target)
  if(NOT PORTICO_NATIVE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR
     NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  check_cxx_source_runs("int main() { return !(__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"bmi2\") &&
                                               __builtin_cpu_supports(\"fma\")); }" PORTICO_HAS_X86_64_V3)
  if(PORTICO_HAS_X86_64_V3)
    target_compile_options(${target} PRIVATE -march=x86-64-v3 -ffp-contract=off)
  endif()
endfunction()
