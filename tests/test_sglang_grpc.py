"""What SglangScheduler has beside tokens, before the stand-in for SGLang's scheduler."""
import contextlib
import json
import threading

import grpc
import pytest
from conftest import Server, wait_until

from grpc_client import Client, fields_at_fault
from test_grpc_services import generate
from test_sglang import DEMO, flags
from test_sglang import generate as post


def ask(server, **body):
    return post(server, **body, sampling_params={"max_new_tokens": 1}).status_code == 200


@pytest.fixture(scope="module")
def server():
    server = Server(*flags("--enable-lora", "--enable-return-hidden-states", "--disable-radix-cache",
                           "--enable-custom-logit-processor"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(server):
    return Client(f"127.0.0.1:{server.port}")


def test_hidden_states_come_with_chunks_and_of_every_position_at_the_end(client):
    chunks = generate(client, [500, 501], stream=True, return_hidden_states=True,
                      sampling_params={"max_new_tokens": 2, "ignore_eos": True})
    assert [list(m.chunk.hidden_states) for m in chunks[:-1]][-1] == [501.0, 0.5]
    states = chunks[-1].complete.all_hidden_states
    assert [(s.position, list(s.values)) for s in states] == [(0, [500.0, 0.25]), (1, [501.0, 0.25]), (2, [501.0, 0.5])]
    plain = generate(client, [500, 501], sampling_params={"max_new_tokens": 1})
    assert not plain[-1].complete.all_hidden_states


def test_adapters_are_loaded_listed_used_and_unloaded(client, tmp_path):
    loaded = client.scheduler.LoadLoRAAdapter(lora_name="a", lora_path=str(tmp_path))
    assert loaded.success and list(loaded.loaded_lora_ids) == ["a"]
    adapter, = client.scheduler.ListLoadedLoRAAdapters().loaded_adapters
    assert (adapter.lora_id, adapter.lora_name, adapter.lora_path) == ("a", "a", str(tmp_path))
    # The stand-in dies of an adapter that it does not have.
    assert generate(client, [500], lora_id="a", sampling_params={"max_new_tokens": 1})[-1].complete.output_ids == [500]
    refused = client.scheduler.LoadLoRAAdapter(lora_name="b", lora_path="/nowhere/at/all")
    assert not refused.success and refused.message == "no such folder"
    unloaded = client.scheduler.UnloadLoRAAdapter(lora_name="a")
    assert unloaded.success and not unloaded.loaded_lora_ids
    assert not client.scheduler.UnloadLoRAAdapter(lora_name="a").success
    with pytest.raises(grpc.RpcError) as nameless:
        client.scheduler.LoadLoRAAdapter(lora_path="x")
    assert fields_at_fault(nameless.value)[0] == ["lora_name"]


def test_custom_parameters_and_rows_of_numbers_reach_the_scheduler(client):
    done = generate(client, [500], custom_logit_processor='{"callable": "80"}',
                    sampling_params={"max_new_tokens": 1, "custom_params": {"bias": 3}})
    assert done[-1].complete.completion_tokens == 1
    width = json.loads((DEMO / "config.json").read_text())["hidden_size"]
    done = generate(client, [1, 1], input_embeds=[0.5] * (2 * width), sampling_params={"max_new_tokens": 1})
    assert list(done[-1].complete.output_ids) == [width]
    with pytest.raises(grpc.RpcError) as refused:
        generate(client, [1, 1], input_embeds=[0.5] * 3)
    assert fields_at_fault(refused.value)[0] == ["input_embeds"]


def test_what_the_prefix_cache_holds_reaches_subscribers(tmp_path, start):
    config = json.dumps({"publisher": "zmq", "endpoint": f"ipc://{tmp_path}/kv"})
    server = start(*flags("--kv-events-config", config))
    scheduler = Client(f"127.0.0.1:{server.port}").scheduler
    got = []
    stream = scheduler.SubscribeKvEvents(start_sequence_number=1)

    def read():
        with contextlib.suppress(grpc.RpcError):
            got.extend(iter(lambda: next(stream), None))

    reader = threading.Thread(target=read)
    reader.start()
    # The publisher's first messages are lost until it knows of its subscriber.
    wait_until(lambda: ask(server, input_ids=[500, 501, 502]) and len(got) > 1, "no event comes")
    assert [e.WhichOneof("data") for e in got[0].events] == ["cleared"]  # what a former engine had
    stored = got[1].events[0].stored
    assert [(b.block_hash, list(b.token_ids), b.block_size) for b in stored.blocks] == [(3, [500, 501, 502], 3)]
    assert not stored.HasField("parent_block_hash")
    server.settle()
    assert scheduler.FlushCache().success
    wait_until(lambda: got[-1].events[0].WhichOneof("data") == "cleared", "the flush is not told")
    assert [batch.sequence_number for batch in got] == list(range(1, len(got) + 1))
    again = scheduler.SubscribeKvEvents(start_sequence_number=2)
    assert next(again) == got[1]
    again.cancel()
    server.process.terminate()  # a drain ends subscribers
    reader.join(60)
    assert not reader.is_alive() and server.process.wait(60) == 0


def test_a_profile_has_the_fields_of_its_request(client, server):
    client.scheduler.StartProfile(output_dir="/tmp/there", num_steps=5, activities=["GPU"])
    wait_until(lambda: "profile 1: /tmp/there, 5 steps, ['GPU']" in server.output(), "the scheduler has not got them")
    client.scheduler.StopProfile()
    assert client.scheduler.StartProfile(profile_by_stage=True, num_steps=3).success
    wait_until(lambda: "3 steps, None, stages True, merged False" in server.output(), "the scheduler has not got the stages")
    with pytest.raises(grpc.RpcError) as refused:
        client.scheduler.StartProfile(profile_by_stage=True)
    assert fields_at_fault(refused.value)[0] == ["num_steps"]
