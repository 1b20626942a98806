# portico_unite(OUT NAME SOURCES...): what the target NAME compiles in place of the sources of a room: with PORTICO_UNITY
# those of a folder together, fourteen at most, and small folders with those that follow: what a unit includes costs as much to
# compile as eight or ten sources of it.
#
# The preset `dev` leaves it off: that build finds an include that a file forgot, and a changed file is compiled alone.
# CMake's own UNITY_BUILD writes absolute paths, so that ccache would miss in another folder.

# Compiled alone all the same: a name in the anonymous namespace is another file's too, or a macro or pragma would reach other files.
set(portico_alone
    api/grpc/native/generate_rpcs.cc api/grpc/native/native_messages.cc api/grpc/native/weights_rpc.cc
    api/grpc/scheduler/kv_events_rpc.cc api/grpc/scheduler/scheduler_embed.cc api/grpc/scheduler/tokenizer_call.cc
    api/openai/realtime/session_config.cc api/sglang/engine_routes.cc
    app/gateway/route_command.cc app/options/options_table.cc app/options/options_value.cc app/options/route_options.cc
    app/text/detokenize_command.cc app/text/render_command.cc
    engine/grpc/scheduler_wire.cc engine/grpc/tokenizer_fetch.cc engine/llama/attention/row_products.cc engine/mock/mock_pooling_engine.cc
    engine/mock/mock_pooling_engine_test.cc engine/mock/simulated_engine.cc engine/sampler/vocab_math.cc
    grammar/compile/compile_supervisor.cc grammar/compile/grammar_pack.cc grammar/compile/grammar_compiler_test.cc grammar/schema/validate.cc
    media/flac_encoder.cc media/helper_codecs.cc media/mp3_encoder.cc media/wav.cc media/opus_encoder.cc
    message/sglang/encode.cc message/sglang/type_text.cc message/sglang/kv_events_test.cc
    net/grpc/grpc_channel_tls_test.cc net/grpc/grpc_client_attack_test.cc net/grpc/grpc_client_call_test.cc
    net/http/http_text.cc net/http/request_parser.cc net/http/response_parser.cc net/http/http1_session_test.cc
    net/http/response_parser_test.cc net/http2/http2_session_test.cc net/socket/connection.cc net/tls/tls_client.cc
    net/tls/tls_test.cc
    parser/declared/declared_parser.cc parser/tool/families.cc pipeline/speech/recognizer.cc router/policy/policies_test.cc router/routed_pooling.cc
    service/plan/capability_checks_test.cc
    template/builtin/filters_text.cc template/builtin/filters_value.cc template/pair_template_test.cc
    template/value/bigint.cc template/value/operations.cc template/value/text_of.cc text/unicode.cc
    tokenizer/compiled/compiled_encoder_test.cc tokenizer/compiled/compiled_model_test.cc
    tokenizer/fused/unigram_encoder.cc tokenizer/load/load_sentencepiece.cc tokenizer/model/unigram.cc
    tokenizer/tokenizer_test.cc)

# Folders whose names (an alias of a namespace, say) are other folders' too: they share no unit with these.
set(portico_apart api_grpc_native api_grpc_scheduler api_openai_completion)

# portico_unit(LIST NAME UNIT PATHS...): appends to the caller's LIST the source that includes PATHS.
function(portico_unit units name unit)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
  list(JOIN lines "" text)
  set(file "${CMAKE_BINARY_DIR}/unity/${name}/${unit}.cc")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
  set(${units} ${${units}} "${file}" PARENT_SCOPE)
endfunction()

function(portico_unite out name)
  if(NOT PORTICO_UNITY)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(result "")
  set(folders "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH path "${CMAKE_SOURCE_DIR}/src" "${source}")
    if(path IN_LIST portico_alone)
      list(APPEND result "${source}")
      continue()
    endif()
    get_filename_component(folder "${path}" DIRECTORY)
    string(REPLACE "/" "_" folder "${folder}")
    list(APPEND folders ${folder})
    list(APPEND files_${folder} "${path}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(unit_files "")
  set(unit_name "")
  foreach(folder IN LISTS folders)
    list(LENGTH files_${folder} count)
    if(count GREATER_EQUAL 10 OR folder IN_LIST portico_apart)
      math(EXPR parts "(${count} + 13) / 14")
      math(EXPR last "${parts} - 1")
      foreach(part RANGE ${last})
        math(EXPR begin "${count} * ${part} / ${parts}")
        math(EXPR size "${count} * (${part} + 1) / ${parts} - ${begin}")
        list(SUBLIST files_${folder} ${begin} ${size} files)
        portico_unit(result ${name} ${folder}_${part} ${files})
      endforeach()
      continue()
    endif()
    list(LENGTH unit_files held)
    math(EXPR held "${held} + ${count}")
    if(held GREATER 14)
      portico_unit(result ${name} ${unit_name} ${unit_files})
      set(unit_files "")
    endif()
    if(NOT unit_files)
      set(unit_name ${folder})
    endif()
    list(APPEND unit_files ${files_${folder}})
  endforeach()
  if(unit_files)
    portico_unit(result ${name} ${unit_name} ${unit_files})
  endif()
  set(${out} ${result} PARENT_SCOPE)
endfunction()
