#include "engine/llama/layers/encoder_graph.h"

#include <algorithm>
#include <cstring>

#include "engine/llama/attention/custom_operation.h"
#include "engine/llama/layers/text_attention.h"
#include "ggml-cpu.h"

namespace portico::llama {
namespace {

// One thread's part of a tensor's GELU.
void ComputeGelu(ggml_tensor* to, int thread, int threads, void* graph) {
  const auto* from = static_cast<const float*>(to->src[0]->data);
  auto* values = static_cast<float*>(to->data);
  const int64_t count = ggml_nelements(to);
  const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
  if (values != from) std::copy(from + begin, from + end, values + begin);
  GeluInPlace(static_cast<const EncoderGraph*>(graph)->gelu, values + begin,
              static_cast<size_t>(end - begin));
}

// Rows [begin, begin + count) of a head's 16-bit keys or values.
void LoadHead(const ggml_tensor* from, int64_t head, int64_t begin, int64_t count,
              std::vector<float>* to) {
  const int64_t size = from->ne[0];
  to->resize(static_cast<size_t>(count * size));
  const char* data = static_cast<const char*>(from->data) +
                     static_cast<size_t>(head) * from->nb[2] +
                     static_cast<size_t>(begin) * from->nb[1];
  for (int64_t i = 0; i < count; ++i, data += from->nb[1]) {
    ggml_cpu_fp16_to_fp32(reinterpret_cast<const ggml_fp16_t*>(data), to->data() + i * size, size);
  }
}

// One thread's part of a layer's attention. Queries are [columns, tokens, heads] in float32, keys and values so in 16
// bits, perhaps with fewer heads; the result is [columns, heads, tokens].
void ComputeAttention(ggml_tensor* to, int thread, int threads, void* self) {
  thread_local AttentionScratch scratch;
  thread_local std::vector<float> keys, values;
  const auto& graph = *static_cast<const EncoderGraph*>(self);
  const ggml_tensor *q = to->src[0], *k = to->src[1], *v = to->src[2];
  const int64_t size = q->ne[0], heads = q->ne[2], heads_a_key = heads / k->ne[2];
  const auto texts = static_cast<int64_t>(graph.text_begins.size()) - 1;
  for (int64_t i = thread; i < texts * heads; i += threads) {
    const int64_t head = i % heads;
    const auto text = static_cast<size_t>(i / heads);
    const int64_t begin = graph.text_begins[text], count = graph.text_begins[text + 1] - begin;
    LoadHead(k, head / heads_a_key, begin, count, &keys);
    LoadHead(v, head / heads_a_key, begin, count, &values);
    const char* queries = static_cast<const char*>(q->data) + static_cast<size_t>(head) * q->nb[2] +
                          static_cast<size_t>(begin) * q->nb[1];
    Attend(reinterpret_cast<const float*>(queries), q->nb[1] / sizeof(float), keys.data(),
           values.data(), static_cast<size_t>(count), static_cast<size_t>(size),
           graph.attention_scale, static_cast<float*>(to->data) + (begin * heads + head) * size,
           static_cast<size_t>(heads * size), &scratch);
  }
}

bool IsGelu(const ggml_tensor* tensor) {
  if (tensor->op != GGML_OP_UNARY || ggml_get_unary_op(tensor) != GGML_UNARY_OP_GELU) return false;
  const ggml_tensor* from = tensor->src[0];
  return tensor->type == GGML_TYPE_F32 && from->type == GGML_TYPE_F32 &&
         ggml_is_contiguous(tensor) && ggml_is_contiguous(from);
}

// Attention in the form that ComputeAttention() reads, with nothing in it but a scale and a mask.
bool IsPlainAttention(const ggml_tensor* tensor, const EncoderGraph& graph, float* scale) {
  if (tensor->op != GGML_OP_FLASH_ATTN_EXT || graph.text_begins.empty()) return false;
  const ggml_tensor *q = tensor->src[0], *k = tensor->src[1], *v = tensor->src[2];
  float params[3];  // scale, ALiBi's slope, soft cap
  std::memcpy(params, tensor->op_params, sizeof(params));
  *scale = params[0];
  const int64_t tokens = graph.text_begins.back();
  return params[1] == 0 && params[2] == 0 && tensor->src[4] == nullptr &&
         q->type == GGML_TYPE_F32 && k->type == GGML_TYPE_F16 && v->type == GGML_TYPE_F16 &&
         q->ne[0] == k->ne[0] && q->ne[0] == v->ne[0] && q->ne[1] == tokens && k->ne[1] == tokens &&
         v->ne[1] == tokens && k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0 && q->ne[3] == 1 &&
         q->nb[0] == sizeof(float) && k->nb[0] == sizeof(ggml_fp16_t) &&
         v->nb[0] == sizeof(ggml_fp16_t) && ggml_is_contiguous(tensor);
}

}  // namespace

bool EncoderGraph::OnTensor(ggml_tensor* tensor, bool ask, void* self) {
  auto* graph = static_cast<EncoderGraph*>(self);
  if (!ask) return true;
  if (IsGelu(tensor)) {
    BecomeCustom(tensor, &ComputeGelu, graph);
  } else if (IsPlainAttention(tensor, *graph, &graph->attention_scale)) {
    BecomeCustom(tensor, &ComputeAttention, graph);
  }
  return false;
}

}  // namespace portico::llama
