# xgrammar's C++ core as a static library: its own CMake files build Python bindings and turn warnings into errors. A few
# large units instead of 26 save much of the time to compile, most of which goes to headers. C++17: Clang finds incomplete types in
# it as C++20.
file(GLOB xgrammar_patches CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/scripts/xgrammar*.patch")
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/scripts/xgrammar.sh"
                                                           ${xgrammar_patches})
execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/xgrammar.sh" "${PORTICO_DEPS}/xgrammar" COMMAND_ERROR_IS_FATAL ANY)
set(xgrammar_dir "${PORTICO_DEPS}/xgrammar")
file(GLOB_RECURSE xgrammar_sources "${xgrammar_dir}/cpp/*.cc")
list(FILTER xgrammar_sources EXCLUDE REGEX "/cpp/tvm_ffi/")
set(units "")
set(index 0)
foreach(source IN LISTS xgrammar_sources)
  file(RELATIVE_PATH path "${xgrammar_dir}/cpp" "${source}")
  math(EXPR part "${index} / 7")
  string(APPEND text_${part} "#include \"${path}\"\n")
  math(EXPR index "${index} + 1")
endforeach()
foreach(number RANGE ${part})
  set(unit "${CMAKE_BINARY_DIR}/unity/xgrammar/${number}.cc")
  file(CONFIGURE OUTPUT "${unit}" CONTENT "${text_${number}}" @ONLY)
  list(APPEND units "${unit}")
endforeach()
add_library(xgrammar STATIC ${units})
target_include_directories(xgrammar PRIVATE "${xgrammar_dir}/cpp")
target_include_directories(xgrammar SYSTEM PUBLIC "${xgrammar_dir}/include" "${xgrammar_dir}/3rdparty/picojson"
                                                  "${xgrammar_dir}/3rdparty/dlpack/include")
target_compile_definitions(xgrammar PUBLIC XGRAMMAR_ENABLE_CPPTRACE=0)
target_compile_options(xgrammar PRIVATE -w $<$<NOT:$<CONFIG:Debug>>:-O2>)
if(PORTICO_SANITIZE STREQUAL "address")
  target_compile_options(xgrammar PRIVATE -fno-sanitize=undefined)  # its own affair
endif()
set_target_properties(xgrammar PROPERTIES CXX_STANDARD 17)

# For sources of ours that look inside the library: its own headers, its standard, no warnings.
function(portico_xgrammar_inside source)
  set(options -std=gnu++17 -w)
  if(PORTICO_SANITIZE STREQUAL "address")
    list(APPEND options -fno-sanitize=undefined)
  endif()
  set_source_files_properties("${CMAKE_SOURCE_DIR}/${source}" PROPERTIES
                              INCLUDE_DIRECTORIES "${xgrammar_dir}/cpp" COMPILE_OPTIONS "${options}")
endfunction()
