// The small grammar in which a manifest writes types.
#include <fmt/format.h>

#include <utility>

#include "message/sglang/schema.h"

namespace portico::sglang {
namespace {

constexpr int kMaxDepth = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  StatusOr<Type> Whole() {
    PORTICO_ASSIGN_OR_RETURN(Type type, Union(0));
    if (!rest_.empty()) return Wrong();
    return type;
  }

 private:
  Status Wrong() const {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("`{:.80}` is no type of a manifest", whole_));
  }
  bool Take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  StatusOr<Type> Union(int depth) {
    if (depth > kMaxDepth) return Wrong();
    PORTICO_ASSIGN_OR_RETURN(Type first, One(depth));
    if (rest_.empty() || rest_.front() != '|') return first;
    Type type;
    type.kind = Type::Kind::kUnion;
    type.parts.push_back(std::move(first));
    while (Take('|')) {
      PORTICO_ASSIGN_OR_RETURN(Type next, One(depth));
      type.parts.push_back(std::move(next));
    }
    return type;
  }

  std::string_view Word() {
    const size_t end = std::min(rest_.find_first_of("<>|,"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  StatusOr<Type> One(int depth) {
    constexpr std::pair<std::string_view, Type::Kind> kPlain[] = {
        {"nil", Type::Kind::kNil},     {"bool", Type::Kind::kBool}, {"int", Type::Kind::kInt},
        {"float", Type::Kind::kFloat}, {"str", Type::Kind::kStr},   {"bin", Type::Kind::kBin},
        {"any", Type::Kind::kAny}};
    constexpr std::pair<std::string_view, Buffer::Kind> kBuffers[] = {
        {"array", Buffer::Kind::kArray},
        {"tensor", Buffer::Kind::kTensor},
        {"ndarray", Buffer::Kind::kNdarray}};
    const std::string_view word = Word();
    Type type;
    for (const auto& [name, kind] : kPlain) {
      if (word != name) continue;
      type.kind = kind;
      return type;
    }
    for (const auto& [name, kind] : kBuffers) {
      if (word != name) continue;
      type.kind = Type::Kind::kBuffer;
      type.buffer = kind;
      return type;
    }
    if (word.starts_with("struct:") || word.starts_with("enum:")) {
      type.kind = word.front() == 's' ? Type::Kind::kStruct : Type::Kind::kEnum;
      type.name = word.substr(word.find(':') + 1);
      return type;
    }
    if (word == "literal") return Literal();
    if (word == "list" || word == "set") return Of(Type::Kind::kList, 1, 1, depth);
    if (word == "map") return Of(Type::Kind::kMap, 2, 2, depth);
    if (word == "tuple") return Of(Type::Kind::kTuple, 1, 64, depth);
    return Wrong();
  }

  StatusOr<Type> Of(Type::Kind kind, size_t min, size_t max, int depth) {
    Type type;
    type.kind = kind;
    if (!Take('<')) return Wrong();
    do {
      PORTICO_ASSIGN_OR_RETURN(Type part, Union(depth + 1));
      type.parts.push_back(std::move(part));
    } while (Take(','));
    if (!Take('>') || type.parts.size() < min || type.parts.size() > max) return Wrong();
    return type;
  }

  // literal<"a","b",3>: JSON values.
  StatusOr<Type> Literal() {
    Type type;
    type.kind = Type::Kind::kLiteral;
    if (!Take('<')) return Wrong();
    do {
      size_t end = 0;
      if (!rest_.empty() && rest_.front() == '"') {
        end = 1;
        while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
        ++end;
      } else {
        end = rest_.find_first_of(",>");
      }
      if (end > rest_.size()) return Wrong();
      const auto value = Json::Parse(rest_.substr(0, end));
      if (!value.ok()) return Wrong();
      if (value->is_string()) {
        type.values.emplace_back(value->as_string());
      } else if (value->is_int()) {
        type.values.emplace_back(value->as_int());
      } else {
        return Wrong();
      }
      rest_.remove_prefix(end);
    } while (Take(','));
    if (!Take('>')) return Wrong();
    return type;
  }

  std::string_view whole_;
  std::string_view rest_;
};

}  // namespace

StatusOr<Type> Type::Parse(std::string_view text) { return Parser(text).Whole(); }

}  // namespace portico::sglang
