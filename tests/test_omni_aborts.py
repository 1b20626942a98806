"""A client that leaves stops every stage of its request, in whichever process it is. Steps are counted, from the profile's events."""
import json
import socket

from conftest import wait_until
from omni_stages import ENCODE, pipeline, python  # noqa: F401 (pipeline is a fixture)
from profiles import folder, recorded  # noqa: F401 (folder is a fixture)

WORKERS = ("inside", "native", "spell")
STAGES = [
    "name: start, factory_path: portico.pass, stream_to: [inside, native, spell]",
    "name: inside, factory_path: portico.mock, factory: {chunks: 10000, delay_ms: 20, text: false}, stream_to: [inside_taken]",
    "name: native, factory_path: portico.mock, factory: {chunks: 10000, delay_ms: 20, text: false}, process: p, stream_to: [native_taken]",
    python("spell", "spell", "factory: {delay: 0.02}, stream_to: [spell_taken]"),
    *(f"name: {name}_taken, factory_path: portico.pass, stream_to: [join]" for name in WORKERS),
    "name: join, factory_path: portico.merge, wait_for: [inside_taken, native_taken, spell_taken], merge_fn: portico.in_order, stream_to: [encode]",
    ENCODE,
]


def leave_while_all_work(server):
    def taken():
        return {stage: server.metric("portico_hop_seconds_count", source=stage, target=stage + "_taken") for stage in WORKERS}
    before = taken()
    body = json.dumps({"input": "w " * 10_000, "response_format": "pcm"})
    head = f"POST /v1/audio/speech HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall((head + body).encode())
        wait_until(lambda: all(count > before[stage] + 3 for stage, count in taken().items()), "not all stages work")
    server.wait_for("portico_pipeline_requests_running", 0)


def leave_twice(server):
    leave_while_all_work(server)
    leave_while_all_work(server)


def test_a_client_that_leaves_stops_the_work_of_every_stage(folder, pipeline):
    """A process learns of the first request's end before it gets the second one, so what it does for the second comes behind all that
    it does for the first. (A process that learned of no end would take 256 more steps, some five seconds, and wait for room.)"""
    server = pipeline(*STAGES)
    events = recorded(server, "aborts", lambda: leave_twice(server))
    ends = {event["request_id"]: event["metadata"]["monotonic_ns"] for event in events if event["event_name"] == "terminal_response"}
    first, second = sorted(ends, key=ends.get)
    for stage in WORKERS:
        steps = {request: sorted(event["metadata"]["monotonic_ns"] for event in events
                                 if (event["request_id"], event["stage"], event["event_name"]) == (request, stage, "stage_stream_chunk_sent"))
                 for request in (first, second)}
        assert len(steps[first]) > 3 and len(steps[second]) > 3, stage
        if stage == "inside":
            assert steps[first][-1] <= ends[first], "it took a step after the end"
        # The last step may be under way while its process learns of the end.
        late = sum(step > steps[second][0] for step in steps[first][:-1])
        assert not late, f"{stage} took {late} steps for the first request while it worked on the second"
