# portico_protos(NAME DIR folder FILES...): the static library NAME of the C++ code that protoc makes of folder/FILES.
# Included as "<path below the folder>.pb.h". Warnings in it are nobody's business. A Debug build does not optimize it:
# under a sanitizer that takes four times as long.
function(portico_protos name)
  cmake_parse_arguments(PROTO "" "DIR" "FILES" ${ARGN})
  set(made "${CMAKE_BINARY_DIR}/${name}")
  file(MAKE_DIRECTORY "${made}")
  set(sources "")
  foreach(proto IN LISTS PROTO_FILES)
    string(REGEX REPLACE "\\.proto$" ".pb" stem "${made}/${proto}")
    add_custom_command(
      OUTPUT "${stem}.cc" "${stem}.h"
      COMMAND protobuf::protoc -I "${PROTO_DIR}" "--cpp_out=${made}" "${proto}"
      DEPENDS "${PROTO_DIR}/${proto}"
      VERBATIM)
    list(APPEND sources "${stem}.cc")
  endforeach()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC "${made}")
  target_compile_options(${name} PRIVATE -w $<$<CONFIG:Debug>:-O0>)
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()

file(GLOB_RECURSE portico_proto_files CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/proto" "${CMAKE_SOURCE_DIR}/proto/*.proto")
portico_protos(portico_proto DIR "${CMAKE_SOURCE_DIR}/proto" FILES ${portico_proto_files})
