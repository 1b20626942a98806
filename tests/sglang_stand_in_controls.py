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
                 "admin_api_key": "another secret", "weight_version": self.weight_version}
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
        print(f"profile {message.req_type}: {message.output_dir}, {message.num_steps} steps, {message.activities}",
              file=sys.stderr)
        self.reply(message, "ProfileReqOutput", success=True, message=f"profile {message.req_type}")

    def on_OpenSessionReqInput(self, message):
        fresh = self.sessions.setdefault(message.session_id, {}) == {}
        self.reply(message, "OpenSessionReqOutput", session_id=message.session_id if fresh else None, success=fresh)

    def on_CloseSessionReqInput(self, message):
        del self.sessions[message.session_id]

    def on_LoadLoRAAdapterReqInput(self, message):
        good = os.path.isdir(message.lora_path)
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
        good = self.loras.pop(message.lora_name, ("", ""))[0] == message.lora_id
        self.reply_loras(message, None if good else "not loaded")

    def reply_loras(self, message, error):
        self.reply(message, "LoRAUpdateOutput", success=error is None, error_message=error,
                   loaded_adapters={name: path for name, (_, path) in self.loras.items()})
