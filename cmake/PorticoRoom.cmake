# portico_room(NAME [ROOMS lower rooms...] [LIBS libraries...] [LONG_TESTS])
#
# The static library portico_NAME from src/NAME/**.cc. Beside x.cc stand x_test.cc (all of a room's tests make
# the program NAME_test) and x_bench.cc (each its own program NAME_x_bench).
# With PORTICO_PCH a room and its tests get precompiled headers: the standard library's, Abseil's and those that most
# of its files include. Presets that only CI builds use it: objects made with it cannot be shared between folders by
# ccache, and it would hide an include that a file forgot. Tests are not optimized, which would cost more to
# compile than it saves, but for LONG_TESTS, which compute much themselves.
set(portico_pch <algorithm> <atomic> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <span> <string>
                <string_view> <utility> <vector> <absl/container/flat_hash_map.h> <absl/container/inlined_vector.h>
                <absl/functional/any_invocable.h> <absl/status/statusor.h> <fmt/format.h>)
set(portico_pch_net <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp> <boost/asio/steady_timer.hpp>)
set(portico_pch_api <simdjson.h>)
function(portico_precompile target)
  if(NOT PORTICO_PCH)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${portico_pch} ${ARGN})
  # Clang: without the time in it a precompiled header is the same when it is made again, and ccache finds it.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

function(portico_room name)
  cmake_parse_arguments(ROOM "LONG_TESTS" "" "ROOMS;LIBS" ${ARGN})
  set(room_dir "${CMAKE_SOURCE_DIR}/src/${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${room_dir}/*.cc")
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")

  set(libs ${ROOM_LIBS} Threads::Threads)
  foreach(room IN LISTS ROOM_ROOMS)
    list(APPEND libs portico_${room})
  endforeach()
  if(sources)
    add_library(portico_${name} STATIC ${sources})
    target_link_libraries(portico_${name} PUBLIC portico_flags ${libs})
    portico_precompile(portico_${name} ${portico_pch_${name}})
  else()
    add_library(portico_${name} INTERFACE)
    target_link_libraries(portico_${name} INTERFACE portico_flags ${libs})
  endif()

  if(NOT PORTICO_TESTS)
    return()
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE portico_${name} GTest::gmock GTest::gtest_main)
    portico_precompile(${name}_test <gmock/gmock.h> <gtest/gtest.h>)
    if(NOT ROOM_LONG_TESTS)
      target_compile_options(${name}_test PRIVATE -O0)
    endif()
    target_compile_definitions(${name}_test PRIVATE PORTICO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_test(NAME ${name}_test COMMAND ${name}_test WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  endif()
  foreach(bench IN LISTS benches)
    get_filename_component(stem "${bench}" NAME_WE)
    add_executable(${name}_${stem} EXCLUDE_FROM_ALL "${bench}")
    target_link_libraries(${name}_${stem} PRIVATE portico_${name} benchmark::benchmark_main)
  endforeach()
endfunction()
