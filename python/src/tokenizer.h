// portico.Tokenizer and portico.Encoding.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "convert.h"
#include "tokenizer/batch.h"
#include "tokenizer/encoding_ops.h"
#include "tokenizer/tokenizer.h"

namespace portico::python {

// Truncation and padding as they stand now; replaced as a whole, so that an Encoding keeps those it was made with.
struct TextLimits {
  std::optional<tokenizer::Truncation> truncation;
  std::optional<tokenizer::Padding> padding;
};

class PyTokenizer {
 public:
  PyTokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool is_path, std::string source);

  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  const std::shared_ptr<const TextLimits>& limits() const { return limits_; }
  void set_limits(TextLimits limits) {
    limits_ = std::make_shared<const TextLimits>(std::move(limits));
  }
  // The options of an encode now; they point into `limits`.
  static Tokenizer::EncodeOptions Options(const TextLimits& limits, bool add_special_tokens);
  const BatchTokenizer& batch();

  // What it was made from: a path, or the text of a tokenizer.json.
  bool is_path() const { return is_path_; }
  const std::string& source() const { return source_; }

  bool encode_special_tokens = false;  // special tokens in a text are plain text

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const TextLimits> limits_;
  bool is_path_;
  std::string source_;
  std::once_flag batch_made_;
  std::unique_ptr<const BatchTokenizer> batch_;
};

// An encode's result. The ids are there at once; the rest is found when it is first asked for.
class PyEncoding {
 public:
  PyEncoding(std::vector<TokenId> ids, std::shared_ptr<const Tokenizer> tokenizer,
             std::shared_ptr<const TextLimits> limits, Tokenizer::EncodeOptions options,
             nb::object text);
  explicit PyEncoding(Encoding whole);

  size_t size() const { return full_ ? full_->size() : ids_.size(); }
  std::span<const TokenId> ids() const { return full_ ? std::span(full_->ids) : std::span(ids_); }
  const Encoding& full();
  const std::vector<Span>& offsets();

 private:
  std::vector<TokenId> ids_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const TextLimits> limits_;
  Tokenizer::EncodeOptions options_;
  nb::object text_;
  std::shared_ptr<const Encoding> full_;
  std::shared_ptr<const std::vector<Span>> offsets_;
};

// The threads for batches and long texts: as many as PORTICO_THREADS says, or as the machine has, the caller
// included; null where that is one, or where TOKENIZERS_PARALLELISM says no. A forked child gets its own.
CpuPool* Pool();

void BindTokenizer(nb::module_& module);
void BindLimits(nb::class_<PyTokenizer>& tokenizer);
void BindEncoding(nb::module_& module);
void BindDecodeStream(nb::module_& module);
void BindChatTemplate(nb::module_& module);

}  // namespace portico::python
