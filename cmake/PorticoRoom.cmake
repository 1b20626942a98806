# portico_room(NAME [ROOMS lower rooms...] [LIBS libraries...] [LONG_TESTS])
#
# The static library portico_NAME from src/NAME/**.cc. Beside x.cc stand x_test.cc (all of a room's tests make
# the program NAME_test) and x_bench.cc (each its own program NAME_x_bench).
# Tests are not optimized, which would cost more to compile than it saves, but for LONG_TESTS, which compute much
# themselves.
include(PorticoUnity)

# What tests read of the tree; in an object of its own, so that ccache shares those of the tests between folders.
if(PORTICO_TESTS)
  add_library(portico_source_dir OBJECT "${CMAKE_SOURCE_DIR}/tests/source_dir.cc")
  target_link_libraries(portico_source_dir PRIVATE portico_flags)
  target_compile_definitions(portico_source_dir PRIVATE PORTICO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endif()

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
    portico_unite(units ${name} ${sources})
    add_library(portico_${name} STATIC ${units})
    target_link_libraries(portico_${name} PUBLIC portico_flags ${libs})
  else()
    add_library(portico_${name} INTERFACE)
    target_link_libraries(portico_${name} INTERFACE portico_flags ${libs})
  endif()

  if(NOT PORTICO_TESTS)
    return()
  endif()
  if(tests)
    portico_unite(units ${name}_test ${tests})
    add_executable(${name}_test ${units})
    target_link_libraries(${name}_test PRIVATE portico_${name} portico_source_dir GTest::gmock GTest::gtest_main)
    if(NOT ROOM_LONG_TESTS)
      target_compile_options(${name}_test PRIVATE -O0)
      # Where nothing is optimized simdjson adds members to its classes; the rooms are compiled without them.
      target_compile_definitions(${name}_test PRIVATE SIMDJSON_DEVELOPMENT_CHECKS=0)
    endif()
    add_test(NAME ${name}_test COMMAND ${name}_test WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  endif()
  foreach(bench IN LISTS benches)
    get_filename_component(stem "${bench}" NAME_WE)
    add_executable(${name}_${stem} EXCLUDE_FROM_ALL "${bench}")
    target_link_libraries(${name}_${stem} PRIVATE portico_${name} benchmark::benchmark_main)
  endforeach()
endfunction()
