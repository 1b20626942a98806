"""A client that leaves stops every stage of its request, in whichever process it is. Steps are counted, from the profile's events."""
import json
import socket

from conftest import wait_until
from omni_stages import ENCODE, pipeline, python  # noqa: F401 (pipeline is a fixture)
from profiles import folder, recorded  # noqa: F401 (folder is a fixture)

# Steps. A stage in a process of its own sends at most 256 parts that nobody has taken (stage_worker.cc).
MOST = {"inside": 2, "native": 256, "spell": 256}
STAGES = [
    "name: start, factory_path: portico.pass, stream_to: [inside, native, spell]",
    "name: inside, factory_path: portico.mock, factory: {chunks: 10000, delay_ms: 5, text: false}, stream_to: [inside_taken]",
    "name: native, factory_path: portico.mock, factory: {chunks: 10000, delay_ms: 5, text: false}, process: p, stream_to: [native_taken]",
    python("spell", "spell", "factory: {delay: 0.005}, stream_to: [spell_taken]"),
    *(f"name: {name}_taken, factory_path: portico.pass, stream_to: [join]" for name in MOST),
    "name: join, factory_path: portico.merge, wait_for: [inside_taken, native_taken, spell_taken], merge_fn: portico.in_order, stream_to: [encode]",
    ENCODE,
]


def leave_while_all_work(server):
    body = json.dumps({"input": "w " * 10_000, "response_format": "pcm"})
    head = f"POST /v1/audio/speech HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall((head + body).encode())
        wait_until(lambda: all(server.metric("portico_hop_seconds_count", source=stage, target=stage + "_taken") > 3 for stage in MOST), "not all stages work")
    server.wait_for("portico_pipeline_requests_running", 0)


def test_a_client_that_leaves_stops_the_work_of_every_stage(folder, pipeline):
    server = pipeline(*STAGES)
    events = recorded(server, "aborts", lambda: leave_while_all_work(server))
    aborted, = (event["metadata"]["monotonic_ns"] for event in events if event["event_name"] == "terminal_response")
    for stage, most in MOST.items():
        steps = [event["metadata"]["monotonic_ns"] for event in events
                 if event["stage"] == stage and event["event_name"] == "stage_stream_chunk_sent"]
        assert len(steps) > 3, stage
        after = sum(step > aborted for step in steps)
        assert after <= most, f"{stage} took {after} steps after the abort"
