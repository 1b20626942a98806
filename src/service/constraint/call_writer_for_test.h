// A model for tests that writes what the grammars of calls admit.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/compile/grammar_text.h"
#include "grammar/mask/compiled_grammar.h"
#include "grammar/mask/mask_tensor.h"
#include "parser/collector.h"
#include "parser/output_parser.h"
#include "service/constraint/call_constraint.h"
#include "service/idle_engine_for_test.h"
#include "service/output/output_plan.h"

namespace portico {

// A model whose tokens are bytes, pieces of the family's form, and what of it is special.
class CallGrammarWriter {
 public:
  CallGrammarWriter(const std::string& family, const std::vector<std::string>& special) {
    for (int byte = 0; byte < 256; ++byte) Add(std::string(1, static_cast<char>(byte)));
    stop_ = Add("\xFF<stop>");
    vocabulary_.stops = {stop_};
    vocabulary_.special = {stop_};
    std::string added;
    for (const std::string& text : special) {
      const TokenId id = Add("\xFF" + text);
      vocabulary_.special.push_back(id);
      std::string quoted = Json(text).Dump();
      added += fmt::format(
          R"({}{{"id":{},"content":{},"special":true,"single_word":false,"lstrip":false,)"
          R"("rstrip":false,"normalized":false}})",
          added.empty() ? "" : ",", id, quoted);
    }
    EngineInfo info;
    info.can.compiles_grammars = true;
    model_.engine = std::make_unique<IdleEngine>(std::move(info));
    std::string words;
    for (TokenId id = 0; id <= stop_; ++id) {
      words += fmt::format(R"({}"w{}":{})", id == 0 ? "" : ",", id, id);
    }
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","truncation":null,"padding":null,"normalizer":null,)"
        R"("post_processor":null,"decoder":null,"added_tokens":[)" +
        added +
        R"(],"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"w0","vocab":{)" +
        words + "}}}");
    OutputFormatSource source;
    source.tool_call_parser = family;
    source.reasoning_parser = family == "beam" ? "beam" : "none";
    model_.output = *MakeOutputFormat(source, *model_.tokenizer);
    if (const auto& form = model_.output.form) {
      for (const std::string& text :
           {form->section, form->end, form->section_end, form->separator, form->members.end}) {
        const bool plain = std::none_of(special.begin(), special.end(), [&](const auto& token) {
          return text.find(token) != std::string::npos;
        });
        if (text.size() > 1 && plain) Add(text);
      }
    }
    for (const char* piece : {"\"", "}", "]", "a<b", "12", "null", "]}", "</x>"}) Add(piece);
  }

  const ServingModel& model() const { return model_; }

  StatusOr<xgrammar::CompiledGrammar> Compile(const ChatRequest& request) const {
    PORTICO_ASSIGN_OR_RETURN(const std::shared_ptr<const Constraint> constraint,
                             ChatConstraint(model_, request, ReasoningStart::kNone, nullptr));
    if (constraint == nullptr) return InvalidArgument("", "there is no constraint");
    return grammar::CompileText({grammar::GrammarKind::kStructuralTag, constraint->text},
                                vocabulary_, grammar::MakeTokenizerInfo(vocabulary_));
  }

  // A text that the grammar takes, or "" where it came to no end. `begin`: it begins so.
  std::string Draw(const xgrammar::CompiledGrammar& grammar, std::mt19937* random,
                   std::string_view begin) const {
    xgrammar::GrammarMatcher matcher(grammar);
    std::vector<uint32_t> mask(grammar::MaskWords(vocabulary_.texts.size()));
    grammar::MaskTensor tensor(mask);
    std::string text;
    for (int step = 0; step < 1000; ++step) {
      if (!matcher.FillNextTokenBitmask(tensor.get())) std::fill(mask.begin(), mask.end(), ~0u);
      std::vector<TokenId> pieces;
      std::vector<TokenId> bytes;
      std::vector<TokenId> others;  // bytes that only fixed text needs
      for (TokenId id = 0; id < static_cast<TokenId>(vocabulary_.texts.size()); ++id) {
        if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) == 0 || id == stop_) continue;
        const bool plain = id == '\n' || (id >= 0x20 && id < 0x7f);
        (id > 255 ? pieces : plain ? bytes : others).push_back(id);
      }
      if (pieces.empty() && bytes.empty()) bytes = others;
      TokenId next = -1;
      if (text.size() < begin.size()) {
        const std::string_view left = begin.substr(text.size());
        for (const auto* from : {&pieces, &bytes, &others}) {
          for (const TokenId id : *from) {
            if (next < 0 && left.starts_with(TextOf(id))) next = id;
          }
        }
        if (next < 0) return "";
      } else if ((mask[static_cast<size_t>(stop_) / 32] >> (stop_ % 32) & 1) != 0 &&
                 ((*random)() % 4 == 0 || (pieces.empty() && bytes.empty()))) {
        return text;
      } else {
        if (pieces.empty() && bytes.empty()) return "";
        const bool piece = bytes.empty() || (!pieces.empty() && (*random)() % 2 == 0);
        const std::vector<TokenId>& from = piece ? pieces : bytes;
        next = from[(*random)() % from.size()];
      }
      EXPECT_TRUE(matcher.AcceptToken(next));
      text += TextOf(next);
    }
    return "";
  }

  bool Takes(const xgrammar::CompiledGrammar& grammar, std::string_view text) const {
    xgrammar::GrammarMatcher matcher(grammar);
    while (!text.empty()) {
      TokenId next = static_cast<uint8_t>(text.front());
      for (const TokenId id : vocabulary_.special) {
        if (id != stop_ && text.starts_with(TextOf(id))) next = id;
      }
      if (!matcher.AcceptToken(next)) return false;
      text.remove_prefix(TextOf(next).size());
    }
    return matcher.AcceptToken(stop_);
  }

  parser::Collector Read(const std::string& text, const ChatRequest& request) const {
    const auto plan = PlanOutput(model_.output, request, ReasoningStart::kNone, false);
    parser::Collector got;
    const auto reader = parser::OutputParser::Make(plan->format, plan->tools, &got);
    reader->Feed(text);
    reader->Finish();
    return got;
  }

 private:
  TokenId Add(std::string text) {
    vocabulary_.texts.push_back(std::move(text));
    return static_cast<TokenId>(vocabulary_.texts.size()) - 1;
  }
  std::string_view TextOf(TokenId id) const {
    std::string_view text = vocabulary_.texts[static_cast<size_t>(id)];
    if (text.starts_with('\xFF')) text.remove_prefix(1);
    return text;
  }

  grammar::Vocabulary vocabulary_;
  TokenId stop_ = -1;
  ServingModel model_;
};

struct DrawnFamily {
  const char* name;
  std::vector<std::string> special = {};
};

}  // namespace portico
