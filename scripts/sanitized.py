"""Which tests of tests/ a run with a sanitizer leaves out, and why: what they prove, ./dev test has proved without one. With
PORTICO_CI=extended it leaves none out. What it leaves out of the GoogleTest programs is in .ci/run.
"""
import os

# reason: names of files without test_ and .py, or file::test.
EITHER = {
    "it starts no program that is built with a sanitizer": "test_runner",
    "its servers and requests are those of other files": "docs_commands dev_run grpc_examples install",
    "what computes are PocketSphinx and flite, which are built without a sanitizer": """
        omni::test_what_is_said_is_heard_again_in_every_format
        omni_bars::test_recordings_are_heard_as_by_pocketsphinx_batch
        omni_chaos::test_each_stage_of_speech_may_die_and_only_its_requests_notice""",
}
# Other files' requests come at once, over the same way: a checker of threads finds nothing here.
ONE_AFTER_THE_OTHER = "its requests come one after the other"
TSAN = {
    ONE_AFTER_THE_OTHER: """added_tokens answer_texts api_key command_line demo_model embedding_models embeddings end_tokens
        gateway_addresses gateway_aliases gateway_liars gateway_wire generated_outputs gguf_attention gguf_rerankers
        grpc_embeddings grpc_structured_output grpcurl json_schema judging_models omni omni_bars omni_chats
        omni_cloning omni_media omni_recorded openai_javascript openai_python proto recorded_outputs reference_models
        relevance_and_classes reported_faults request_bodies request_fields route_flags sentence_folders sglang_reasoning
        sglang_routes simulated_engine structured_output templates tool_clients tool_constraints tools""",
}


def left_out(file, test):
    """Why this test is not to run, or None: test_FILE.py, its function's name."""
    sanitizer = os.environ.get("PORTICO_SANITIZED")
    if not sanitizer or os.environ.get("PORTICO_CI") == "extended":
        return None
    name = file.removeprefix("test_").removesuffix(".py")
    for reasons in (EITHER, TSAN) if sanitizer == "tsan" else (EITHER,):
        for reason, names in reasons.items():
            if {name, f"{name}::{test}"} & set(names.split()):
                return reason
    return None
