// How a typed message becomes an array (or map) of the wire: a table of the fields that Portico writes, bound at start to
// the positions and types that the installed package has. What the package has beyond the table keeps its default.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "message/msgpack/writer.h"
#include "message/sglang/schema.h"

namespace portico::sglang {

// One field of a typed message `From`. Plain data, so that tables are constants.
template <typename From>
struct PlanField {
  std::string_view name;
  // The types, as manifests write them, for which `write` is right; separated by a blank.
  std::string_view types;
  // Whether the message says something here; false: the package's own default.
  bool (*given)(const From&);
  void (*write)(const From&, msgpack::Writer*);
};

template <typename From>
class StructPlan {
 public:
  // Binds the table to a struct of the schema, which outlives the plan. FAILED_PRECONDITION names all fields that the
  // package requires and the table lacks, and those whose types it does not know.
  static StatusOr<StructPlan> Make(const Schema& schema, std::string_view struct_name,
                                   std::span<const PlanField<From>> table) {
    StructPlan plan;
    plan.layout_ = schema.Find(struct_name);
    if (plan.layout_ == nullptr) {
      return Error(StatusCode::kFailedPrecondition,
                   fmt::format("SGLang {} has no {}", schema.sglang_version(), struct_name));
    }
    std::string wrong;
    for (const Field& field : plan.layout_->fields) {
      const PlanField<From>* entry = nullptr;
      for (const PlanField<From>& each : table) {
        if (each.name == field.name) entry = &each;
      }
      const bool fits = entry != nullptr && Lists(entry->types, field.type_text);
      if ((entry != nullptr && !fits) || (entry == nullptr && field.required) ||
          (entry == nullptr && !field.default_known)) {
        fmt::format_to(std::back_inserter(wrong), "{}{} ({})", wrong.empty() ? "" : ", ",
                       field.name, field.type_text);
      }
      plan.slots_.push_back(fits ? entry : nullptr);
    }
    if (!wrong.empty()) {
      return Error(StatusCode::kFailedPrecondition,
                   fmt::format("SGLang {} lays out {} in a way that Portico does not know: {}",
                               schema.sglang_version(), struct_name, wrong));
    }
    for (const PlanField<From>& each : table) {
      if (plan.layout_->IndexOf(each.name) < 0) plan.absent_.push_back(&each);
    }
    return plan;
  }

  // The name of a field that the message gives and the package does not have; empty: there is none, and Append() writes
  // all that the message says.
  std::string_view Missing(const From& from) const {
    for (const PlanField<From>* field : absent_) {
      if (field->given(from)) return field->name;
    }
    return {};
  }

  bool Has(std::string_view field) const { return layout_->IndexOf(field) >= 0; }

  // Appends the shortest encoding.
  void Append(const From& from, msgpack::Writer* writer) const {
    if (!layout_->array_like) return AppendMap(from, writer);
    size_t length = slots_.size();
    while (layout_->first() + length > layout_->min_length && !Given(length - 1, from)) --length;
    writer->Array(layout_->first() + length);
    if (!layout_->tag.empty()) writer->Str(layout_->tag);
    for (size_t i = 0; i < length; ++i) {
      if (Given(i, from) || (slots_[i] != nullptr && layout_->fields[i].required)) {
        slots_[i]->write(from, writer);
      } else {
        writer->Raw(layout_->fields[i].default_binary);
      }
    }
  }

 private:
  static bool Lists(std::string_view types, std::string_view type) {
    while (!types.empty()) {
      const size_t end = std::min(types.find(' '), types.size());
      if (types.substr(0, end) == type) return true;
      types.remove_prefix(std::min(end + 1, types.size()));
    }
    return false;
  }

  bool Given(size_t i, const From& from) const {
    return slots_[i] != nullptr && slots_[i]->given(from);
  }

  void AppendMap(const From& from, msgpack::Writer* writer) const {
    size_t written = 0;
    for (size_t i = 0; i < slots_.size(); ++i) written += Given(i, from) ? 1 : 0;
    writer->Map(written);
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!Given(i, from)) continue;
      writer->Str(layout_->fields[i].name);
      slots_[i]->write(from, writer);
    }
  }

  const StructLayout* layout_ = nullptr;
  std::vector<const PlanField<From>*> slots_;   // one a field; null: always the default
  std::vector<const PlanField<From>*> absent_;  // of the table
};

}  // namespace portico::sglang
