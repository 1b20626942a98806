# portico_fuzzer(NAME SOURCE LIBRARIES...): a libFuzzer program. The preset `fuzz` builds them all, the preset `asan`, whose
# libraries are the same, where the target `fuzzers` is asked for.
#   build/fuzz/http_parser_fuzz -max_total_time=60
# scripts/fuzz.py runs each for a while.
if(PORTICO_TESTS)
  add_custom_target(fuzzers)
else()
  add_custom_target(fuzzers ALL)
endif()
function(portico_fuzzer name source)
  add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/${source}")
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endfunction()

portico_fuzzer(json_fuzz fuzz/json_fuzz.cc portico_text)
portico_fuzzer(http_parser_fuzz fuzz/http_parser_fuzz.cc portico_net)
portico_fuzzer(grpc_wire_fuzz fuzz/grpc_wire_fuzz.cc portico_net)
portico_fuzzer(grpc_client_fuzz fuzz/grpc_client_fuzz.cc portico_net)
portico_fuzzer(http2_session_fuzz fuzz/http2_session_fuzz.cc portico_net)
portico_fuzzer(decode_chat_fuzz fuzz/decode_chat_fuzz.cc portico_api)
portico_fuzzer(grpc_decode_fuzz fuzz/grpc_decode_fuzz.cc portico_api)
portico_fuzzer(template_render_fuzz fuzz/template_render_fuzz.cc portico_template)
portico_fuzzer(template_source_fuzz fuzz/template_source_fuzz.cc portico_template)
foreach(part IN ITEMS load encode regex compiled)
  portico_fuzzer(tokenizer_${part}_fuzz fuzz/tokenizer_${part}_fuzz.cc portico_tokenizer)
endforeach()
