// Truncation and padding of portico.Tokenizer, and its state for pickle.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "tokenizer.h"
#include "tokenizer/pipeline.h"

namespace portico::python {
namespace {

using tokenizer::Padding;
using tokenizer::Truncation;
using Strategy = Truncation::Strategy;

constexpr std::pair<const char*, Strategy> kStrategies[] = {
    {"longest_first", Strategy::kLongestFirst},
    {"only_first", Strategy::kOnlyFirst},
    {"only_second", Strategy::kOnlySecond}};

bool IsLeft(const std::string& direction) {
  if (direction != "left" && direction != "right") {
    throw nb::value_error("direction must be \"left\" or \"right\"");
  }
  return direction == "left";
}

void EnableTruncation(PyTokenizer& self, uint64_t max_length, uint64_t stride,
                      const std::string& strategy, const std::string& direction) {
  Truncation rule;
  bool known = false;
  for (const auto& [name, value] : kStrategies) {
    if (strategy != name) continue;
    rule.strategy = value;
    known = true;
  }
  if (!known) throw nb::value_error("strategy must be longest_first, only_first or only_second");
  rule.max_length = max_length;
  rule.stride = stride;
  rule.left = IsLeft(direction);
  size_t added = 0;
  if (const auto& processor = self.tokenizer()->pipeline().parts().post_processor) {
    added = processor->AddedTokens(false);
  }
  uint64_t room = max_length - std::min<uint64_t>(max_length, added);
  if (room > 0 && stride > 0 && room <= stride) {
    throw nb::value_error("stride must be less than max_length without the special tokens");
  }
  self.set_limits({rule, self.limits()->padding});
}

void EnablePadding(PyTokenizer& self, const std::string& direction, TokenId pad_id,
                   uint32_t pad_type_id, const std::string& pad_token,
                   std::optional<uint64_t> length, std::optional<uint64_t> pad_to_multiple_of) {
  Padding rule;
  rule.fixed = length;
  rule.multiple_of = pad_to_multiple_of;
  rule.left = IsLeft(direction);
  rule.id = pad_id;
  rule.type_id = pad_type_id;
  rule.token = pad_token;
  self.set_limits({self.limits()->truncation, rule});
}

nb::object TruncationOf(const PyTokenizer& self) {
  const auto& rule = self.limits()->truncation;
  if (!rule) return nb::none();
  nb::dict out;
  out["max_length"] = rule->max_length;
  out["stride"] = rule->stride;
  for (const auto& [name, value] : kStrategies) {
    if (rule->strategy == value) out["strategy"] = name;
  }
  out["direction"] = rule->left ? "left" : "right";
  return out;
}

nb::object PaddingOf(const PyTokenizer& self) {
  const auto& rule = self.limits()->padding;
  if (!rule) return nb::none();
  nb::dict out;
  out["length"] = rule->fixed;
  out["pad_to_multiple_of"] = rule->multiple_of;
  out["pad_id"] = rule->id;
  out["pad_token"] = rule->token;
  out["pad_type_id"] = rule->type_id;
  out["direction"] = rule->left ? "left" : "right";
  return out;
}

nb::tuple State(const PyTokenizer& self) {
  nb::bytes source(self.source().data(), self.source().size());
  return nb::make_tuple(self.is_path(), source, TruncationOf(self), PaddingOf(self),
                        self.encode_special_tokens);
}

void SetState(PyTokenizer& self, nb::tuple state) {
  auto source = nb::cast<nb::bytes>(state[1]);
  std::string text(source.c_str(), source.size());
  bool is_path = nb::cast<bool>(state[0]);
  std::shared_ptr<const Tokenizer> made =
      Take(is_path ? Tokenizer::Load(text, {.added_tokens = AddedTokensRule::kFile})
                   : Tokenizer::FromJson(text));
  new (&self) PyTokenizer(std::move(made), is_path, std::move(text));
  self.set_limits({});
  if (!state[2].is_none()) {
    auto rule = nb::cast<nb::dict>(state[2]);
    EnableTruncation(self, nb::cast<uint64_t>(rule["max_length"]),
                     nb::cast<uint64_t>(rule["stride"]), nb::cast<std::string>(rule["strategy"]),
                     nb::cast<std::string>(rule["direction"]));
  }
  if (!state[3].is_none()) {
    auto rule = nb::cast<nb::dict>(state[3]);
    using Length = std::optional<uint64_t>;
    EnablePadding(self, nb::cast<std::string>(rule["direction"]), nb::cast<TokenId>(rule["pad_id"]),
                  nb::cast<uint32_t>(rule["pad_type_id"]), nb::cast<std::string>(rule["pad_token"]),
                  nb::cast<Length>(rule["length"]), nb::cast<Length>(rule["pad_to_multiple_of"]));
  }
  self.encode_special_tokens = nb::cast<bool>(state[4]);
}

}  // namespace

void BindLimits(nb::class_<PyTokenizer>& tokenizer) {
  tokenizer
      .def("enable_truncation", &EnableTruncation, nb::arg("max_length"), nb::arg("stride") = 0,
           nb::arg("strategy") = "longest_first", nb::arg("direction") = "right")
      .def("enable_padding", &EnablePadding, nb::arg("direction") = "right", nb::arg("pad_id") = 0,
           nb::arg("pad_type_id") = 0, nb::arg("pad_token") = "[PAD]",
           nb::arg("length") = nb::none(), nb::arg("pad_to_multiple_of") = nb::none())
      .def("no_truncation",
           [](PyTokenizer& self) { self.set_limits({std::nullopt, self.limits()->padding}); })
      .def("no_padding",
           [](PyTokenizer& self) { self.set_limits({self.limits()->truncation, std::nullopt}); })
      .def_prop_ro("truncation", &TruncationOf)
      .def_prop_ro("padding", &PaddingOf)
      .def("__getstate__", &State)
      .def("__setstate__", &SetState);
}

}  // namespace portico::python
