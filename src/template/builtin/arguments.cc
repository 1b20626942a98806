#include "template/builtin/arguments.h"

#include <string>

#include "template/run/failure.h"

namespace portico::jinja {

Parameters::Parameters(const CallArguments& arguments, std::string_view function,
                       std::initializer_list<std::string_view> names, size_t required,
                       size_t positional_only) {
  auto fail = [&](std::string message) { Fail(function, "() ", message); };
  if (arguments.count > names.size()) {
    fail("takes at most " + std::to_string(names.size()) + " arguments (" +
         std::to_string(arguments.count) + " given)");
  }
  for (size_t i = 0; i < arguments.count; ++i) values_[i] = arguments.positional[i];
  for (size_t i = 0; i < arguments.named_count; ++i) {
    const NamedValue& named = arguments.named[i];
    size_t at = 0;
    while (at < names.size() && names.begin()[at] != named.name) ++at;
    if (at == names.size() || at < positional_only) {
      fail("got an unexpected keyword argument '" + std::string(named.name) + "'");
    }
    if (Has(at)) fail("got multiple values for argument '" + std::string(named.name) + "'");
    values_[at] = named.value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!Has(i)) fail("missing required argument '" + std::string(names.begin()[i]) + "'");
  }
}

}  // namespace portico::jinja
