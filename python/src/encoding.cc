#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "tokenizer.h"

namespace portico::python {
namespace {

using Positions = std::optional<std::pair<size_t, size_t>>;

template <typename List, typename Make>
nb::list MakeList(const List& values, Make make) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(values.size()));
  if (list == nullptr) throw nb::python_error();
  for (size_t i = 0; i < values.size(); ++i) {
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), make(values[i]));
  }
  return nb::steal<nb::list>(list);
}

PyObject* IntOrNone(int32_t value) {
  return value == Encoding::kNone ? Py_NewRef(Py_None) : PyLong_FromLong(value);
}

PyObject* SpanTuple(const Span& span) { return Py_BuildValue("(II)", span.begin, span.end); }

nb::object Pair(const Positions& pair) {
  if (!pair) return nb::none();
  return nb::make_tuple(pair->first, pair->second);
}

bool Inside(const Encoding& e, size_t token) { return token < e.size(); }

std::optional<size_t> CharToToken(const Encoding& e, size_t character, int32_t sequence) {
  for (size_t i = 0; i < e.size(); ++i) {
    if (e.sequence_ids[i] == sequence && e.offsets[i].begin <= character &&
        character < e.offsets[i].end) {
      return i;
    }
  }
  return std::nullopt;
}

Positions WordToTokens(const Encoding& e, int32_t word, int32_t sequence) {
  Positions out;
  for (size_t i = 0; i < e.size(); ++i) {
    if (e.sequence_ids[i] != sequence || e.word_ids[i] != word) continue;
    if (!out) out = {i, i + 1};
    out->second = i + 1;
  }
  return out;
}

nb::object TokenToWord(const Encoding& e, size_t token) {
  if (!Inside(e, token) || e.word_ids[token] == Encoding::kNone) return nb::none();
  return nb::cast(e.word_ids[token]);
}

nb::object TokenToChars(const Encoding& e, size_t token) {
  if (!Inside(e, token) || e.sequence_ids[token] == Encoding::kNone) return nb::none();
  return nb::steal(SpanTuple(e.offsets[token]));
}

int32_t Sequences(const Encoding& e) {
  return e.sequence_ranges.empty() ? 1 : static_cast<int32_t>(e.sequence_ranges.size());
}

}  // namespace

PyEncoding::PyEncoding(std::vector<TokenId> ids, std::shared_ptr<const Tokenizer> tokenizer,
                       std::shared_ptr<const TextLimits> limits, Tokenizer::EncodeOptions options,
                       nb::object text)
    : ids_(std::move(ids)),
      tokenizer_(std::move(tokenizer)),
      limits_(std::move(limits)),
      options_(options),
      text_(std::move(text)) {}

PyEncoding::PyEncoding(Encoding whole)
    : full_(std::make_shared<const Encoding>(std::move(whole))) {}

const Encoding& PyEncoding::full() {
  if (!full_) {
    std::string_view text = TextOf(text_, "a text");
    std::shared_ptr<const Encoding> made;
    Status status;
    Unlocked(text.size(), [&] {
      StatusOr<Encoding> encoding = tokenizer_->EncodeFull(text, nullptr, options_);
      status = encoding.status();
      if (encoding.ok()) made = std::make_shared<const Encoding>(*std::move(encoding));
    });
    Check(status);
    full_ = std::move(made);
  }
  return *full_;
}

const std::vector<Span>& PyEncoding::offsets() {
  if (full_) return full_->offsets;
  if (!offsets_) {
    std::string_view text = TextOf(text_, "a text");
    auto made = std::make_shared<std::vector<Span>>();
    Status status;
    Unlocked(text.size(), [&] {
      std::vector<TokenId> ids;
      status = tokenizer_->EncodeOffsets(text, options_, OffsetUnit::kCodePoints, &ids, made.get());
    });
    Check(status);
    offsets_ = std::move(made);
  }
  return *offsets_;
}

void BindEncoding(nb::module_& module) {
  nb::class_<PyEncoding>(module, "Encoding")
      .def("__len__", &PyEncoding::size)
      .def("__repr__",
           [](const PyEncoding& e) {
             return "Encoding(num_tokens=" + std::to_string(e.size()) +
                    ", attributes=[ids, type_ids, tokens, offsets, attention_mask, "
                    "special_tokens_mask, overflowing])";
           })
      .def_prop_ro("ids", [](const PyEncoding& e) { return ToList(e.ids()); })
      .def_prop_ro("ids_numpy",
                   [](const PyEncoding& e) {
                     return ToNumpy(std::vector<TokenId>(e.ids().begin(), e.ids().end()));
                   })
      .def_prop_ro("tokens",
                   [](PyEncoding& e) {
                     return MakeList(e.full().tokens, [](std::string_view token) {
                       return ToStr(token).release().ptr();
                     });
                   })
      .def_prop_ro("offsets", [](PyEncoding& e) { return MakeList(e.offsets(), SpanTuple); })
      .def_prop_ro(
          "type_ids",
          [](PyEncoding& e) { return MakeList(e.full().type_ids, PyLong_FromUnsignedLong); })
      .def_prop_ro(
          "attention_mask",
          [](PyEncoding& e) { return MakeList(e.full().attention_mask, PyLong_FromUnsignedLong); })
      .def_prop_ro("special_tokens_mask",
                   [](PyEncoding& e) {
                     return MakeList(e.full().special_tokens_mask, PyLong_FromUnsignedLong);
                   })
      .def_prop_ro("word_ids", [](PyEncoding& e) { return MakeList(e.full().word_ids, IntOrNone); })
      .def_prop_ro("words", [](PyEncoding& e) { return MakeList(e.full().word_ids, IntOrNone); })
      .def_prop_ro("sequence_ids",
                   [](PyEncoding& e) { return MakeList(e.full().sequence_ids, IntOrNone); })
      .def_prop_ro("n_sequences", [](PyEncoding& e) { return Sequences(e.full()); })
      .def_prop_ro("overflowing",
                   [](PyEncoding& e) {
                     nb::list out;
                     for (const Encoding& part : e.full().overflowing) out.append(PyEncoding(part));
                     return out;
                   })
      .def(
          "char_to_token",
          [](PyEncoding& e, size_t character, int32_t sequence) {
            return CharToToken(e.full(), character, sequence);
          },
          nb::arg("char_pos"), nb::arg("sequence_index") = 0)
      .def(
          "char_to_word",
          [](PyEncoding& e, size_t character, int32_t sequence) {
            auto token = CharToToken(e.full(), character, sequence);
            return token ? TokenToWord(e.full(), *token) : nb::none();
          },
          nb::arg("char_pos"), nb::arg("sequence_index") = 0)
      .def(
          "token_to_chars",
          [](PyEncoding& e, size_t token) { return TokenToChars(e.full(), token); },
          nb::arg("token_index"))
      .def(
          "token_to_word", [](PyEncoding& e, size_t token) { return TokenToWord(e.full(), token); },
          nb::arg("token_index"))
      .def(
          "token_to_sequence",
          [](PyEncoding& e, size_t token) -> nb::object {
            if (!Inside(e.full(), token)) return nb::none();
            return nb::steal(IntOrNone(e.full().sequence_ids[token]));
          },
          nb::arg("token_index"))
      .def(
          "word_to_tokens",
          [](PyEncoding& e, int32_t word, int32_t sequence) {
            return Pair(WordToTokens(e.full(), word, sequence));
          },
          nb::arg("word_index"), nb::arg("sequence_index") = 0)
      .def(
          "word_to_chars",
          [](PyEncoding& e, int32_t word, int32_t sequence) -> nb::object {
            const Encoding& all = e.full();
            Positions tokens = WordToTokens(all, word, sequence);
            if (!tokens) return nb::none();
            return nb::make_tuple(all.offsets[tokens->first].begin,
                                  all.offsets[tokens->second - 1].end);
          },
          nb::arg("word_index"), nb::arg("sequence_index") = 0);
}

}  // namespace portico::python
