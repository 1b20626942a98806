// Arguments of a call to something built in, and how they meet its parameters.
#pragma once

#include <initializer_list>
#include <string_view>

#include "template/value/value.h"

namespace portico::jinja {

struct NamedValue {
  std::string_view name;
  Value value;
};

struct CallArguments {
  const Value* positional = nullptr;
  size_t count = 0;
  const NamedValue* named = nullptr;
  size_t named_count = 0;
  // The call block's body, handed to the macro called; else missing.
  Value caller;
};

// Arguments by parameter: positional ones first, then by name. Throws Failure for too many, doubled or unknown ones.
class Parameters {
 public:
  // `required` of the parameters must be given. At most 6 names; those before `positional_only` have no keyword.
  Parameters(const CallArguments& arguments, std::string_view function,
             std::initializer_list<std::string_view> names, size_t required = 0,
             size_t positional_only = 0);

  bool Has(size_t i) const { return !values_[i].is(Kind::kMissing); }
  // The value, or the fallback where it was not given.
  Value Get(size_t i, Value fallback = Value::None()) const {
    return Has(i) ? values_[i] : fallback;
  }

 private:
  Value values_[6];
};

}  // namespace portico::jinja
