#include "tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <filesystem>
#include <utility>

#include "tokenizer/pipeline.h"

namespace portico::python {
namespace {

using tokenizer::Padding;
using tokenizer::Truncation;

std::unique_ptr<PyTokenizer> FromPath(const std::string& path) {
  StatusOr<std::shared_ptr<const Tokenizer>> made = std::shared_ptr<const Tokenizer>();
  {
    nb::gil_scoped_release release;
    // The package `tokenizers` reads no other file.
    made = Tokenizer::Load(path, {.added_tokens = AddedTokensRule::kFile});
  }
  return std::make_unique<PyTokenizer>(Take(std::move(made)), true, path);
}

std::unique_ptr<PyTokenizer> FromJson(std::string json) {
  StatusOr<std::shared_ptr<const Tokenizer>> made = std::shared_ptr<const Tokenizer>();
  {
    nb::gil_scoped_release release;
    made = Tokenizer::FromJson(json);
  }
  return std::make_unique<PyTokenizer>(Take(std::move(made)), false, std::move(json));
}

std::unique_ptr<PyTokenizer> FromPretrained(nb::handle identifier, nb::handle, nb::handle) {
  std::string path = nb::cast<std::string>(nb::str(identifier));
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    Raise(Error(StatusCode::kNotFound,
                "there is no folder " + path + "; give a model's folder on this machine"));
  }
  return FromPath(path);
}

void RefuseWords(bool is_pretokenized) {
  if (is_pretokenized) {
    Raise(
        Error(StatusCode::kUnimplemented, "is_pretokenized=True is not supported: give the text"));
  }
}

PyEncoding EncodeOne(PyTokenizer& self, nb::object sequence, nb::object pair, bool is_pretokenized,
                     bool add_special_tokens) {
  RefuseWords(is_pretokenized);
  std::shared_ptr<const TextLimits> limits = self.limits();
  Tokenizer::EncodeOptions options = PyTokenizer::Options(*limits, add_special_tokens);
  options.parse_special = !self.encode_special_tokens;
  std::string_view text = TextOf(sequence, "sequence");
  Status status;
  if (!pair.is_none()) {
    std::string_view second = TextOf(pair, "pair");
    StatusOr<Encoding> made = Encoding();
    Unlocked(text.size() + second.size(),
             [&] { made = self.tokenizer()->EncodeFull(text, &second, options); });
    return PyEncoding(Take(std::move(made)));
  }
  std::vector<TokenId> ids;
  Unlocked(text.size(), [&] { status = self.tokenizer()->EncodeWith(text, options, &ids); });
  Check(status);
  return PyEncoding(std::move(ids), self.tokenizer(), std::move(limits), options,
                    std::move(sequence));
}

nb::object EncodeIds(PyTokenizer& self, nb::handle sequence, bool add_special_tokens,
                     bool as_numpy) {
  std::string_view text = TextOf(sequence, "sequence");
  std::shared_ptr<const TextLimits> limits = self.limits();
  Tokenizer::EncodeOptions options = PyTokenizer::Options(*limits, add_special_tokens);
  options.parse_special = !self.encode_special_tokens;
  std::vector<TokenId> ids;
  Status status;
  const BatchTokenizer& batch = self.batch();
  Unlocked(text.size(), [&] { status = batch.EncodeIds(text, options, &ids); });
  Check(status);
  return as_numpy ? ToNumpy(std::move(ids)) : nb::object(ToList(ids));
}

// The texts of a batch, kept alive while it runs.
struct Inputs {
  std::vector<nb::object> kept;
  std::vector<std::string_view> texts;
  std::vector<BatchTokenizer::Input> inputs;
  bool has_pairs = false;

  explicit Inputs(nb::handle list) {
    for (nb::handle item : list) {
      bool pair = nb::isinstance<nb::tuple>(item) || nb::isinstance<nb::list>(item);
      if (!pair) {
        std::string_view text = TextOf(item, "a text of the batch");
        kept.push_back(nb::borrow(item));
        texts.push_back(text);
        inputs.push_back({text, std::nullopt});
        continue;
      }
      if (nb::len(item) != 2) throw nb::type_error("an input must be a str or a pair of str");
      has_pairs = true;
      kept.push_back(nb::borrow(item[0]));
      std::string_view text = TextOf(kept.back(), "a text of the batch");
      kept.push_back(nb::borrow(item[1]));
      texts.push_back(text);
      inputs.push_back({text, TextOf(kept.back(), "a text of the batch")});
    }
  }
};

nb::list EncodeBatch(PyTokenizer& self, nb::handle input, bool is_pretokenized,
                     bool add_special_tokens) {
  RefuseWords(is_pretokenized);
  Inputs inputs(input);
  std::shared_ptr<const TextLimits> limits = self.limits();
  Tokenizer::EncodeOptions options = PyTokenizer::Options(*limits, add_special_tokens);
  options.parse_special = !self.encode_special_tokens;
  const BatchTokenizer& batch = self.batch();
  nb::list out;
  if (inputs.has_pairs || limits->padding) {
    StatusOr<std::vector<Encoding>> made = std::vector<Encoding>();
    {
      nb::gil_scoped_release release;
      made = batch.Encode(inputs.inputs, options);
    }
    for (Encoding& e : Take(std::move(made))) out.append(PyEncoding(std::move(e)));
    return out;
  }
  StatusOr<std::vector<std::vector<TokenId>>> made = std::vector<std::vector<TokenId>>();
  {
    nb::gil_scoped_release release;
    made = batch.EncodeIds(inputs.texts, options);
  }
  std::vector<std::vector<TokenId>> lists = Take(std::move(made));
  for (size_t i = 0; i < lists.size(); ++i) {
    out.append(PyEncoding(std::move(lists[i]), self.tokenizer(), limits, options, inputs.kept[i]));
  }
  return out;
}

nb::list EncodeBatchIds(PyTokenizer& self, nb::handle input, bool add_special_tokens,
                        bool as_numpy) {
  Inputs inputs(input);
  if (inputs.has_pairs)
    throw nb::type_error("encode_batch_ids takes texts; encode_batch takes pairs");
  std::shared_ptr<const TextLimits> limits = self.limits();
  Tokenizer::EncodeOptions options = PyTokenizer::Options(*limits, add_special_tokens);
  options.parse_special = !self.encode_special_tokens;
  const BatchTokenizer& batch = self.batch();
  StatusOr<std::vector<std::vector<TokenId>>> made = std::vector<std::vector<TokenId>>();
  {
    nb::gil_scoped_release release;
    made = batch.EncodeIds(inputs.texts, options);
  }
  nb::list out;
  for (std::vector<TokenId>& ids : Take(std::move(made))) {
    out.append(as_numpy ? ToNumpy(std::move(ids)) : nb::object(ToList(ids)));
  }
  return out;
}

nb::object Decode(PyTokenizer& self, nb::handle ids, bool skip_special_tokens) {
  std::vector<TokenId> list = IdsOf(ids);
  std::string text;
  Unlocked(list.size(), [&] { text = self.tokenizer()->Decode(list, skip_special_tokens); });
  return ToStr(text);
}

nb::list DecodeBatch(PyTokenizer& self, nb::handle sequences, bool skip_special_tokens) {
  std::vector<std::vector<TokenId>> lists;
  for (nb::handle ids : sequences) lists.push_back(IdsOf(ids));
  std::vector<std::span<const TokenId>> views(lists.begin(), lists.end());
  const BatchTokenizer& batch = self.batch();
  std::vector<std::string> texts;
  {
    nb::gil_scoped_release release;
    texts = batch.Decode(views, skip_special_tokens);
  }
  nb::list out;
  for (const std::string& text : texts) out.append(ToStr(text));
  return out;
}

nb::object IdToToken(const PyTokenizer& self, int64_t id) {
  const tokenizer::Pipeline& pipeline = self.tokenizer()->pipeline();
  if (id < 0 || id >= pipeline.vocab_size() || !pipeline.HasToken(static_cast<TokenId>(id))) {
    return nb::none();
  }
  return ToStr(pipeline.IdToToken(static_cast<TokenId>(id)));
}

nb::dict Vocab(const PyTokenizer& self, bool with_added_tokens) {
  const tokenizer::Pipeline& pipeline = self.tokenizer()->pipeline();
  const tokenizer::Vocabulary& model = pipeline.parts().model->vocabulary();
  nb::dict out;
  for (TokenId id = 0; id <= model.max_id(); ++id) {
    if (model.Has(id)) out[ToStr(model.Spelling(id))] = id;
  }
  if (!with_added_tokens) return out;
  for (const auto& [id, entry] : pipeline.added_tokens().entries()) {
    out[ToStr(entry.token.content)] = id;
  }
  return out;
}

size_t VocabSize(const PyTokenizer& self, bool with_added_tokens) {
  const tokenizer::Pipeline& pipeline = self.tokenizer()->pipeline();
  const tokenizer::Vocabulary& model = pipeline.parts().model->vocabulary();
  size_t count = model.size();
  if (!with_added_tokens) return count;
  for (const auto& [id, entry] : pipeline.added_tokens().entries()) {
    if (!model.Find(entry.token.content)) ++count;
  }
  return count;
}

size_t NumSpecialTokens(const PyTokenizer& self, bool is_pair) {
  const auto& processor = self.tokenizer()->pipeline().parts().post_processor;
  return processor ? processor->AddedTokens(is_pair) : 0;
}

}  // namespace

PyTokenizer::PyTokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool is_path,
                         std::string source)
    : tokenizer_(std::move(tokenizer)), is_path_(is_path), source_(std::move(source)) {
  const tokenizer::PipelineParts& parts = tokenizer_->pipeline().parts();
  limits_ = std::make_shared<const TextLimits>(TextLimits{parts.truncation, parts.padding});
}

Tokenizer::EncodeOptions PyTokenizer::Options(const TextLimits& limits, bool add_special_tokens) {
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = add_special_tokens;
  options.truncation_and_padding = true;
  options.truncation = &limits.truncation;
  options.padding = &limits.padding;
  return options;
}

const BatchTokenizer& PyTokenizer::batch() {
  std::call_once(batch_made_,
                 [&] { batch_ = std::make_unique<BatchTokenizer>(tokenizer_, Pool()); });
  return *batch_;
}

void BindTokenizer(nb::module_& module) {
  auto tokenizer = nb::class_<PyTokenizer>(module, "Tokenizer");
  tokenizer.def_static("from_file", &FromPath, nb::arg("path"))
      .def_static(
          "from_str", [](nb::handle json) { return FromJson(std::string(TextOf(json, "json"))); },
          nb::arg("json"))
      .def_static(
          "from_buffer",
          [](nb::bytes buffer) { return FromJson(std::string(buffer.c_str(), buffer.size())); },
          nb::arg("buffer"))
      .def_static("from_pretrained", &FromPretrained, nb::arg("identifier"),
                  nb::arg("revision") = "main", nb::arg("token") = nb::none())
      .def("encode", &EncodeOne, nb::arg("sequence"), nb::arg("pair") = nb::none(),
           nb::arg("is_pretokenized") = false, nb::arg("add_special_tokens") = true)
      .def("encode_batch", &EncodeBatch, nb::arg("input"), nb::arg("is_pretokenized") = false,
           nb::arg("add_special_tokens") = true)
      .def("encode_batch_fast", &EncodeBatch, nb::arg("input"), nb::arg("is_pretokenized") = false,
           nb::arg("add_special_tokens") = true)
      .def("encode_ids", &EncodeIds, nb::arg("sequence"), nb::arg("add_special_tokens") = true,
           nb::arg("as_numpy") = false)
      .def("encode_batch_ids", &EncodeBatchIds, nb::arg("input"),
           nb::arg("add_special_tokens") = true, nb::arg("as_numpy") = false)
      .def("decode", &Decode, nb::arg("ids"), nb::arg("skip_special_tokens") = true)
      .def("decode_batch", &DecodeBatch, nb::arg("sequences"),
           nb::arg("skip_special_tokens") = true)
      .def(
          "token_to_id",
          [](const PyTokenizer& self, nb::handle token) {
            return self.tokenizer()->TokenToId(TextOf(token, "token"));
          },
          nb::arg("token"))
      .def("id_to_token", &IdToToken, nb::arg("id"))
      .def("get_vocab", &Vocab, nb::arg("with_added_tokens") = true)
      .def("get_vocab_size", &VocabSize, nb::arg("with_added_tokens") = true)
      .def("num_special_tokens_to_add", &NumSpecialTokens, nb::arg("is_pair") = false)
      .def("describe", [](const PyTokenizer& self) { return self.tokenizer()->Describe(); })
      .def_rw("encode_special_tokens", &PyTokenizer::encode_special_tokens)
      .def("__repr__", [](const PyTokenizer& self) {
        return "Tokenizer(" + self.tokenizer()->Describe() + ")";
      });
  BindLimits(tokenizer);
}

}  // namespace portico::python
