"""Which tests of tests/ a run with a sanitizer leaves out, and why: what they prove, ./dev test has proved without one. With
PORTICO_CI=extended it leaves none out. What it leaves out of the GoogleTest programs is in .ci/run.
"""
import os
import pathlib

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"

# reason: names of files without test_ and .py, or file::test, or file::test[values].
EITHER = {
    "it starts no program that is built with a sanitizer": "omni_disconnects proto sglang_helpers test_runner",
    "its servers and requests are those of other files": """docs_commands dev_run gateway_demo grpc_clients grpc_examples grpcurl
        install omni_asgi openai_javascript openai_python sglang_backend smg_program tool_clients""",
    "its programs end before they serve, and what they start with is read in app_test": """api_key::test_an_empty_key_is_refused
        command_line route_flags sglang_starts""",
    "the rooms' own tests compute this with the sanitizer": """added_tokens embedding_models end_tokens generated_outputs gguf_attention
        gguf_rerankers json_schema judging_models recorded_outputs reference_models sentence_folders simulated_engine
        tool_constraints::test_the_calls_of_each_form_hold_their_schemas""",
    "what computes are PocketSphinx, flite and coders, which are built without a sanitizer": """omni_bars
        omni::test_the_openai_client_speaks_and_listens omni::test_transcripts_have_times_in_every_form
        omni::test_what_is_said_is_heard_again_in_every_format
        omni_chaos::test_each_stage_of_speech_may_die_and_only_its_requests_notice""",
    "the storms of omni_chaos meet the same faults": """omni_faults
        omni_chaos::test_a_process_in_a_storm_harms_no_request_that_does_not_need_it[encode]
        omni_chaos::test_a_process_in_a_storm_harms_no_request_that_does_not_need_it[think]
        omni_chaos::test_a_python_stage_in_a_storm_harms_no_request_that_does_not_need_it[same]
        omni_chaos::test_a_process_on_another_host_in_a_storm_harms_no_request_that_does_not_need_it[encode]
        omni_chaos::test_a_process_on_another_host_in_a_storm_harms_no_request_that_does_not_need_it[say]""",
    "gateway_chaos kills and stops workers as it does": "gateway_deaths",
    "its stages are Python's, as those of omni_functions": "omni_schedulers",
    "sglang starts and loses engines as it does": "sglang_lives",
}
# Other files' requests come at once, over the same way: a checker of threads finds nothing here.
ONE_AFTER_THE_OTHER = "its requests come one after the other"
TSAN = {
    ONE_AFTER_THE_OTHER: """answer_texts api_key call_answers contract control_routes demo_model embeddings gateway_addresses
        gateway_aliases gateway_controls gateway_keys gateway_liars gateway_sessions gateway_wire gateway_workers grpc_embeddings
        grpc_errors grpc_every_method grpc_interop grpc_services grpc_structured_output health_generate limits models
        native_generate omni omni_chats omni_cloning omni_command omni_functions omni_media omni_recorded relevance_and_classes
        reported_faults request_bodies request_fields sglang_grpc sglang_reasoning sglang_routes start structured_output templates
        tool_constraints tools""",
    "omni_chaos, omni_remote and omni_sockets cross these threads": """omni_addresses omni_batch omni_idle omni_library omni_processes
        omni_turns""",
    "gateway_chaos, gateway_mixed, gateway_stalls and gateway_streams cross these threads": """gateway_bodies gateway_busy_workers
        gateway_hostile gateway_pauses gateway_ranks gateway_signals gateway_tells gateway_vllm_stalls""",
    "sglang, sglang_controls and sglang_ranks cross these threads": "sglang_choices sglang_lora sglang_tcp",
    "grpc_load, grpc_early_ends and grpc_transport cross these threads": "grpc_compression grpc_interop_client",
}


def left_out(file, *names):
    """Why the test with these names, without its values and with them, is not to run; None where it is. No names: all tests of the file."""
    sanitizer = os.environ.get("PORTICO_SANITIZED")
    if not sanitizer or os.environ.get("PORTICO_CI") == "extended":
        return None
    file = file.removeprefix("test_").removesuffix(".py")
    for reasons in (EITHER, TSAN) if sanitizer == "tsan" else (EITHER,):
        for reason, listed in reasons.items():
            if {file, *(f"{file}::{name}" for name in names)} & set(listed.split()):
                return reason
    return None


def files_left_out():
    """The names of the files of which no test is to run."""
    return {path.name for path in TESTS.glob("test_*.py") if left_out(path.name)}
