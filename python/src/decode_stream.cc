#include <memory>
#include <string>

#include "tokenizer.h"
#include "tokenizer/decode/stream_decoder.h"

namespace portico::python {
namespace {

// The text of ids that come one at a time. It holds the tokenizer of its first step.
class PyDecodeStream {
 public:
  PyDecodeStream(nb::object ids, bool skip_special_tokens) : skip_(skip_special_tokens) {
    if (!ids.is_none()) prompt_ = IdsOf(ids);
  }

  nb::object Step(nb::handle tokenizer, nb::handle ids) {
    if (!decoder_) Start(tokenizer);
    if (!tokenizer_.is(tokenizer)) {
      throw nb::value_error("a stream is decoded by the tokenizer of its first step");
    }
    std::string text;
    if (PyLong_Check(ids.ptr())) [[likely]] {
      decoder_->Push(IdOf(ids), &text);
    } else {
      for (TokenId id : IdsOf(ids)) decoder_->Push(id, &text);
    }
    return text.empty() ? nb::none() : ToStr(text);
  }

  nb::object Flush() {
    std::string text;
    if (decoder_) decoder_->Flush(&text);
    return text.empty() ? nb::none() : ToStr(text);
  }

 private:
  void Start(nb::handle tokenizer) {
    tokenizer_ = nb::borrow(tokenizer);
    const auto& py = nb::cast<const PyTokenizer&>(tokenizer);
    decoder_ = std::make_unique<StreamDecoder>(*py.tokenizer(), skip_);
    std::string unused;
    for (TokenId id : prompt_) decoder_->Push(id, &unused);
  }

  bool skip_;
  std::vector<TokenId> prompt_;
  nb::object tokenizer_ = nb::none();
  std::unique_ptr<StreamDecoder> decoder_;
};

}  // namespace

void BindDecodeStream(nb::module_& module) {
  nb::class_<PyDecodeStream>(module, "DecodeStream")
      .def(nb::init<nb::object, bool>(), nb::arg("ids") = nb::none(),
           nb::arg("skip_special_tokens") = false)
      .def("step", &PyDecodeStream::Step, nb::arg("tokenizer"), nb::arg("id"))
      .def("flush", &PyDecodeStream::Flush);
}

}  // namespace portico::python
