# portico_protos(NAME FILES...): the static library NAME of the C++ code that protoc makes of proto/FILES. Included as
# "<path below proto>.pb.h". Warnings in it are nobody's business.
set(portico_proto_dir "${CMAKE_BINARY_DIR}/proto")
file(MAKE_DIRECTORY "${portico_proto_dir}")

function(portico_protos name)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" ".pb" stem "${portico_proto_dir}/${proto}")
    add_custom_command(
      OUTPUT "${stem}.cc" "${stem}.h"
      COMMAND protobuf::protoc -I "${CMAKE_SOURCE_DIR}/proto" "--cpp_out=${portico_proto_dir}" "${proto}"
      DEPENDS "${CMAKE_SOURCE_DIR}/proto/${proto}"
      VERBATIM)
    list(APPEND sources "${stem}.cc")
  endforeach()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC "${portico_proto_dir}")
  target_compile_options(${name} PRIVATE -w)
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()

file(GLOB_RECURSE portico_proto_files CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/proto" "${CMAKE_SOURCE_DIR}/proto/*.proto")
portico_protos(portico_proto ${portico_proto_files})
