#include "template/syntax/fold.h"

#include <string>
#include <vector>

#include "template/value/bigint.h"
#include "template/value/dict.h"

namespace portico::jinja {
namespace {

bool IsConst(const Expr* expr) { return expr->kind == ExprKind::kConst; }
Value ConstOf(const Expr* expr) { return static_cast<const ConstExpr*>(expr)->value; }
bool IsText(const Expr* expr) { return IsConst(expr) && ConstOf(expr).is_string(); }

Expr* Constant(Value value, int line, Arena* arena) {
  auto* node = arena->New<ConstExpr>();
  node->kind = ExprKind::kConst;
  node->line = line;
  node->value = value;
  return node;
}

Expr* FoldSequence(ListExpr* list, Arena* arena) {
  for (const Expr* item : list->items) {
    if (!IsConst(item)) return list;
  }
  Value* data = arena->NewArray<Value>(list->items.size());
  for (size_t i = 0; i < list->items.size(); ++i) data[i] = ConstOf(list->items[i]);
  Kind kind = list->kind == ExprKind::kList ? Kind::kList : Kind::kTuple;
  return Constant(Value::Of(kind, arena->New<Items>(data, list->items.size())), list->line, arena);
}

Expr* FoldDict(DictExpr* dict, Arena* arena) {
  for (size_t i = 0; i < dict->keys.size(); ++i) {
    if (!IsText(dict->keys[i]) || !IsConst(dict->values[i])) return dict;
  }
  Dict* folded = arena->New<Dict>();
  for (size_t i = 0; i < dict->keys.size(); ++i) {
    DictSet(folded, ConstOf(dict->keys[i]), ConstOf(dict->values[i]), arena);
  }
  return Constant(Value::Of(folded), dict->line, arena);
}

// Strings side by side in a + or ~ chain.
Expr* FoldChain(ListExpr* chain, Arena* arena) {
  std::vector<Expr*> items;
  for (Expr* item : chain->items) {
    if (!items.empty() && IsText(items.back()) && IsText(item)) {
      std::string joined(ConstOf(items.back()).str());
      joined += ConstOf(item).str();
      items.back() = Constant(Value::String(arena->Copy(joined)), item->line, arena);
    } else {
      items.push_back(item);
    }
  }
  if (items.size() == 1 && IsText(items[0])) return items[0];
  std::copy(items.begin(), items.end(), chain->items.begin());
  chain->items = chain->items.first(items.size());
  return chain;
}

Expr* FoldNegate(UnaryExpr* node, Arena* arena) {
  if (!IsConst(node->operand)) return node;
  Value value = ConstOf(node->operand);
  if (value.is(Kind::kFloat)) return Constant(Value::Float(-value.d), node->line, arena);
  if (!IsInteger(value)) return node;
  return Constant(NegateInteger(value, arena), node->line, arena);
}

}  // namespace

Expr* Fold(Expr* expr, Arena* arena) {
  switch (expr->kind) {
    case ExprKind::kList:
    case ExprKind::kTuple:
      return FoldSequence(static_cast<ListExpr*>(expr), arena);
    case ExprKind::kDict:
      return FoldDict(static_cast<DictExpr*>(expr), arena);
    case ExprKind::kAdd:
    case ExprKind::kConcat:
      return FoldChain(static_cast<ListExpr*>(expr), arena);
    case ExprKind::kNegate:
      return FoldNegate(static_cast<UnaryExpr*>(expr), arena);
    default:
      return expr;
  }
}

std::span<OutputItem> MergeText(std::span<OutputItem> items, Arena* arena) {
  std::vector<OutputItem> merged;
  for (OutputItem item : items) {
    if (item.expr != nullptr && IsText(item.expr)) {
      item = {ConstOf(item.expr).str(), nullptr};
    }
    if (item.expr == nullptr && !merged.empty() && merged.back().expr == nullptr) {
      std::string joined(merged.back().text);
      joined += item.text;
      merged.back().text = arena->Copy(joined);
    } else {
      merged.push_back(item);
    }
  }
  std::copy(merged.begin(), merged.end(), items.begin());
  return items.first(merged.size());
}

}  // namespace portico::jinja
