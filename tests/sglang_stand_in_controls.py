"""What is asked of the scheduler that sglang_stand_in.py plays beside requests. Like SGLang it dies of what fails here."""
import gc
import os
import pickle
import sys


class Controls:
    def on_FlushCacheReqInput(self, message):
        idle = not self.running
        if idle:
            self.publish(type="AllBlocksCleared")
        self.reply(message, "FlushCacheReqOutput", success=idle, message="" if idle else "requests are running")

    def on_PauseGenerationReqInput(self, message):
        assert message.mode != "abort", "SGLang dies of this mode"
        self.in_cells = message.mode == "in_place" and (self.in_cells or bool(self.running) and not self.paused)
        self.paused = True

    def on_ContinueGenerationReqInput(self, message):
        assert not self.released, "requests without memory for them"
        print(f"continue: torch_empty_cache {message.torch_empty_cache}", file=sys.stderr)
        self.paused = self.in_cells = False

    def check_idle(self, what):
        assert not self.in_cells and (self.paused or not self.running), what + " while requests run"

    def on_ReleaseMemoryOccupationReqInput(self, message):
        self.check_idle("memory is released")
        tags = set(message.tags or ("kv_cache", "weights", "cuda_graph"))
        assert not tags & self.released, "memory is released twice"
        self.released |= tags
        self.reply(message, "ReleaseMemoryOccupationReqOutput")

    def on_ResumeMemoryOccupationReqInput(self, message):
        for tag in message.tags or ("kv_cache", "weights", "cuda_graph"):
            self.released.remove(tag)
        self.reply(message, "ResumeMemoryOccupationReqOutput")

    def on_FreezeGCReq(self, message):
        if message.gc_threshold is not None:
            gc.set_threshold(*message.gc_threshold)
        self.detokenizer.send(self.wire.encoder.encode(message))  # as SGLang's tells its detokenizer

    def on_UpdateWeightVersionReqInput(self, message):
        self.weight_version = message.new_version
        self.reply(message, "UpdateWeightVersionReqOutput")

    def on_GetInternalStateReq(self, message):
        state = {"effective_max_running_requests_per_dp": 256, "api_key": "the engine's secret",
                 "admin_api_key": "another secret", "weight_version": self.weight_version, "taken": self.taken, "rank": self.rank}
        self.reply(message, "GetInternalStateReqOutput", internal_state=state)

    def on_SetInternalStateReq(self, message):
        self.reply(message, "SetInternalStateReqOutput", updated=bool(message.server_args))

    def on_UpdateWeightFromDiskReqInput(self, message):
        assert message.load_format is not None
        if message.flush_cache:
            self.check_idle("the cache is flushed")
        print(f"weights: flush_cache {message.flush_cache}, token_step {message.token_step}, "
              f"torch_empty_cache {message.torch_empty_cache}", file=sys.stderr)
        good = os.path.isdir(message.model_path)
        if good and message.weight_version:
            self.weight_version = message.weight_version
        self.reply(message, "UpdateWeightFromDiskReqOutput", success=good,
                   message="Succeeded to update model weights." if good else "Failed to find the weights")

    def on_UpdateWeightsFromTensorReqInput(self, message):
        if message.flush_cache:
            self.check_idle("the cache is flushed")
        for tensors in message.serialized_named_tensors:
            pickle.loads(tensors)
        self.weight_version = message.weight_version or self.weight_version
        self.reply(message, "UpdateWeightsFromTensorReqOutput", success=True,
                   message=f"{sum(map(len, message.serialized_named_tensors))} bytes")

    def on_ProfileReq(self, message):
        print(f"profile {message.req_type}: {message.output_dir}, {message.num_steps} steps, {message.activities}"
              f", stages {message.profile_by_stage}, merged {message.merge_profiles}, prefix {message.profile_prefix}", file=sys.stderr)
        assert not message.profile_by_stage or message.num_steps, "the profiler counts the steps of a stage"
        self.reply(message, "ProfileReqOutput", success=True, message=f"profile {message.req_type}")

    def on_AttachHiCacheStorageReqInput(self, message):
        good = message.hicache_storage_backend == "file" and not self.running
        self.storage = message.hicache_storage_backend if good else self.storage
        self.reply(message, "AttachHiCacheStorageReqOutput", success=good, message="" if good else "Unsupported storage backend")

    def on_DetachHiCacheStorageReqInput(self, message):
        self.storage = None
        self.reply(message, "DetachHiCacheStorageReqOutput", success=True, message="HiCache storage backend is detached.")

    def on_ClearHiCacheReqInput(self, message):
        self.reply(message, "ClearHiCacheReqOutput", success=self.storage is not None)

    def on_AddExternalCorpusReqInput(self, message):
        assert message.documents is None and message.file_path is None, "the scheduler has no tokenizer for them"
        tokens = sum(map(len, message.token_chunks))
        self.corpora[message.corpus_id] = tokens
        self.reply(message, "AddExternalCorpusReqOutput", success=True, corpus_id=message.corpus_id, loaded_token_count=tokens)

    def on_RemoveExternalCorpusReqInput(self, message):
        good = self.corpora.pop(message.corpus_id, None) is not None
        self.reply(message, "RemoveExternalCorpusReqOutput", success=good, message="" if good else "no such corpus")

    def on_ListExternalCorporaReqInput(self, message):
        self.reply(message, "ListExternalCorporaReqOutput", success=True, corpus_token_counts=self.corpora)

    def on_InitWeightsSendGroupForRemoteInstanceReqInput(self, message):
        assert message.group_name and len(message.ports.split(",")) == 1, "SGLang asserts both"
        self.reply(message, "InitWeightsSendGroupForRemoteInstanceReqOutput", success=True, message=message.ports)

    def on_SendWeightsToRemoteInstanceReqInput(self, message):
        assert message.group_name and len(message.ports.split(",")) == 1, "SGLang asserts both"
        self.reply(message, "SendWeightsToRemoteInstanceReqOutput", success=False, message="no such group")

    def on_OpenSessionReqInput(self, message):
        fresh = self.sessions.setdefault(message.session_id, {}) == {}
        self.reply(message, "OpenSessionReqOutput", session_id=message.session_id if fresh else None, success=fresh)

    def on_CloseSessionReqInput(self, message):
        del self.sessions[message.session_id]

    def on_LoadLoRAAdapterReqInput(self, message):
        good = os.path.isdir(message.lora_path) and not os.path.exists(f"{message.lora_path}/not-rank-{self.rank}")
        if good:
            self.loras[message.lora_name] = (message.lora_id, message.lora_path)
        self.reply_loras(message, None if good else "no such folder")

    def on_LoadLoRAAdapterFromTensorsReqInput(self, message):
        pickle.loads(message.serialized_named_tensors[0])
        good = "r" in message.config_dict
        if good:
            self.loras[message.lora_name] = (message.lora_id, "__tensor__")
        self.reply_loras(message, None if good else "the configuration has no rank")

    def on_UnloadLoRAAdapterReqInput(self, message):
        assert all(r.message.lora_id != message.lora_id for r in self.running.values()), "an adapter in use is unloaded"
        has = self.loras.get(message.lora_name, ("", ""))[0]
        if has == message.lora_id:
            del self.loras[message.lora_name]
        self.reply_loras(message, None)  # as SGLang, also where it has none of that id

    def reply_loras(self, message, error):
        self.reply(message, "LoRAUpdateOutput", success=error is None, error_message=error,
                   loaded_adapters={name: path for name, (_, path) in self.loras.items()})
