// What a parser made of a whole output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/core/sink.h"

namespace portico::parser {

class Collector final : public Sink {
 public:
  struct Call {
    std::string name;
    std::string id;  // the model's own
    std::string arguments = {};
    bool complete = false;
  };

  void Content(std::string_view text) override { content.append(text); }
  void Reasoning(std::string_view text) override { reasoning.append(text); }
  void BeginCall(std::string_view name, std::string_view id) override {
    calls.push_back(Call{.name = std::string(name), .id = std::string(id)});
  }
  void Arguments(std::string_view json) override { calls.back().arguments.append(json); }
  void EndCall(bool complete) override { calls.back().complete = complete; }

  std::string content;
  std::string reasoning;
  std::vector<Call> calls;
};

}  // namespace portico::parser
