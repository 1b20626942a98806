"""SGLang's rarer routes: what its scheduler does for them, and what this server says where it has none of them."""
import pytest
import requests
from conftest import Server

from test_sglang import flags

ADMIN = {"Authorization": "Bearer operator"}


@pytest.fixture(scope="module")
def server():
    server = Server(*flags(portico=("--admin-api-key", "operator")))
    yield server
    server.stop()


def call(server, method, path, body=None):
    return requests.request(method, server.url + path, json=body, headers=ADMIN, timeout=60)


def test_the_storage_of_the_cache_is_attached_cleared_and_detached(server):
    storage = "/hicache/storage-backend"
    assert call(server, "POST", storage + "/clear").status_code == 400
    attached = call(server, "PUT", storage, {"hicache_storage_backend": "file", "hicache_write_policy": "write_through"})
    assert attached.status_code == 200 and attached.json()["success"], attached.text
    assert call(server, "POST", storage + "/clear").status_code == 200
    assert call(server, "POST", "/clear_hicache_storage_backend").status_code == 200
    detached = call(server, "DELETE", storage)
    assert detached.status_code == 200 and "detached" in detached.json()["message"], detached.text
    for body, field in [({}, "hicache_storage_backend"), ({"hicache_storage_backend": ""}, "hicache_storage_backend"),
                        ({"hicache_storage_backend": "file", "other": 1}, "other")]:
        refused = call(server, "PUT", storage, body)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == field, refused.text
    unknown = call(server, "PUT", storage, {"hicache_storage_backend": "tape"})
    assert unknown.status_code == 400 and "Unsupported" in unknown.text
    assert requests.put(server.url + storage, json={"hicache_storage_backend": "file"}, timeout=60).status_code == 401


def test_a_storage_is_for_servers_with_a_key_of_their_operators(start):
    server = start(*flags())
    refused = requests.put(server.url + "/hicache/storage-backend", json={"hicache_storage_backend": "file"}, timeout=60)
    assert refused.status_code == 400 and "--admin-api-key" in refused.text


def test_corpora_of_ids_are_added_listed_and_removed(server):
    added = call(server, "POST", "/add_external_corpus", {"corpus_id": "a", "token_chunks": [[500, 501], [502]]})
    assert added.status_code == 200 and added.json()["replies"][0]["loaded_token_count"] == 3, added.text
    listed = call(server, "GET", "/list_external_corpora").json()
    assert listed["replies"][0]["corpus_token_counts"] == {"a": 3}
    assert call(server, "POST", "/remove_external_corpus", {"corpus_id": "a"}).status_code == 200
    again = call(server, "POST", "/remove_external_corpus", {"corpus_id": "a"})
    assert again.status_code == 400 and "no such corpus" in again.text
    for path, body, field in [
            ("add", {"corpus_id": "a", "documents": ["x"]}, "documents"), ("add", {"corpus_id": "a", "file_path": "/etc/passwd"}, "file_path"),
            ("add", {"token_chunks": [[1]]}, "corpus_id"), ("add", {"corpus_id": "a"}, "token_chunks"),
            ("add", {"corpus_id": "a", "token_chunks": [[]]}, "token_chunks"),
            ("add", {"corpus_id": "a", "token_chunks": [[99999999]]}, "token_chunks"), ("remove", {}, "corpus_id"),
            ("remove", {"corpus_id": ""}, "corpus_id")]:
        refused = call(server, "POST", f"/{path}_external_corpus", body)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == field, (body, refused.text)


def test_weights_go_to_another_instance(server):
    group = {"master_address": "127.0.0.1", "ports": "29500", "group_rank": 0, "world_size": 2}
    made = call(server, "POST", "/init_weights_send_group_for_remote_instance", group)
    assert made.status_code == 200 and made.json()["message"] == "29500", made.text
    sent = call(server, "POST", "/send_weights_to_remote_instance", {"master_address": "127.0.0.1", "ports": "29500"})
    assert sent.status_code == 400 and "no such group" in sent.text
    for change, field in [({"ports": "1,2"}, "ports"), ({"ports": "x"}, "ports"), ({"ports": "70000"}, "ports"), ({"group_name": ""}, "group_name")]:
        refused = call(server, "POST", "/init_weights_send_group_for_remote_instance", {**group, **change})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == field, refused.text


@pytest.mark.parametrize("method, path, why", [
    ("POST", "/configure_logging", "--log-requests"), ("GET", "/set_trace_level?level=1", "traces"),
    ("POST", "/dumper/configure", "DUMPER_SERVER_PORT"), ("GET", "/hicache/storage-backend", "/get_internal_state"),
    ("GET", "/remote_instance_transfer_engine_info?rank=0", "--engine-info-bootstrap-port"),
    ("GET", "/get_remote_instance_transfer_engine_info?rank=0", "--engine-info-bootstrap-port"),
    ("POST", "/v1/decisions", "layouts"), ("POST", "/v1/systemone", "layouts")])
def test_what_is_not_served_says_why(server, method, path, why):
    refused = call(server, method, path, {} if method == "POST" else None)
    assert refused.status_code == 501 and why in refused.json()["error"]["message"], refused.text


def test_it_lives_through_all_of_them(server):
    assert requests.post(server.url + "/generate", json={"text": "x", "sampling_params": {"max_new_tokens": 1}}, timeout=60).status_code == 200
