// Jinja2 for chat templates: a template is parsed once to a tree and rendered many times.
//
// The language is Jinja2 3.1.6 as Hugging Face transformers sets it up: an immutable sandbox with
// trim_blocks and lstrip_blocks, loopcontrols ({% break %}, {% continue %}), the {% generation %}
// tag, `tojson` as json.dumps without HTML escapes, raise_exception and strftime_now. Values follow
// Python. Templates are hostile input: include, import and extends are refused, private attributes
// are unreachable, and every render has limits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/json.h"

namespace portico {

namespace jinja {
struct Program;
}  // namespace jinja

struct RenderOptions {
  uint64_t max_steps = 20'000'000;              // statements, expressions and items of loops
  int max_depth = 200;                          // calls, loops and lazy results inside each other
  size_t max_output_bytes = 64u << 20;          // of the text
  size_t max_memory_bytes = size_t{256} << 20;  // of everything the render builds
  // Receives the ranges [from, to) of the text inside {% generation %} blocks, in code points, in
  // order.
  std::vector<std::pair<size_t, size_t>>* generation_spans = nullptr;
  // Seconds since the epoch for strftime_now, which shows it in the local time zone; unset: the
  // clock, or the environment's PORTICO_FIXED_TIME (ISO 8601, local) where that is set.
  const int64_t* now = nullptr;
};

// Immutable and safe to use from any thread.
class Template {
 public:
  using RenderOptions = portico::RenderOptions;

  // INVALID_ARGUMENT with a sentence that names the line, for a template that Jinja2 would not
  // compile.
  static StatusOr<std::shared_ptr<const Template>> Parse(std::string source);

  ~Template();
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  // `context` is an object: the variables. It must not change during the call. Errors:
  //   INVALID_ARGUMENT     the template called raise_exception; the message is the template's own,
  //   unchanged FAILED_PRECONDITION  any other error of the template (undefined values, wrong
  //   types, forbidden access) RESOURCE_EXHAUSTED   a limit of `options` was reached
  StatusOr<std::string> Render(const Json& context, const RenderOptions& options = {}) const;
  // The same with the variables one by one, the last of a name winning; saves the copy that an object would need.
  using Variables = std::vector<std::pair<std::string_view, const Json*>>;
  StatusOr<std::string> Render(const Variables& variables, const RenderOptions& options = {}) const;

  const std::string& source() const { return source_; }

 private:
  Template();

  std::string source_;
  std::unique_ptr<const jinja::Program> program_;
};

}  // namespace portico
