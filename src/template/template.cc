#include "template/template.h"

#include <algorithm>

#include "template/run/interpreter.h"
#include "template/syntax/lexer.h"
#include "template/syntax/program.h"
#include "text/utf8.h"

namespace portico {
namespace {

// Most renders fit in here; the arena grows beyond it.
constexpr size_t kFirstBlock = size_t{64} << 10;

char* ThreadBlock() {
  static thread_local std::unique_ptr<char[]> block(new char[kFirstBlock]);
  return block.get();
}

// One render at a time may use a thread's block; renders do not nest.
class BlockUser {
 public:
  explicit BlockUser(jinja::Arena* arena) : owns_(!in_use) {
    if (!owns_) return;
    in_use = true;
    arena->UseFirst(ThreadBlock(), kFirstBlock);
  }
  ~BlockUser() {
    if (owns_) in_use = false;
  }
  BlockUser(const BlockUser&) = delete;
  BlockUser& operator=(const BlockUser&) = delete;

 private:
  static thread_local bool in_use;
  bool owns_;
};
thread_local bool BlockUser::in_use = false;

// About as much as a chat template writes of messages with a text each. Others grow the output where they write more.
size_t ExpectedBytes(const Template::Variables& variables) {
  constexpr size_t kAroundMessage = 64;
  size_t bytes = 2 * kAroundMessage;
  for (const auto& [name, value] : variables) {
    if (!value->is_array()) continue;
    for (const Json& message : value->as_array()) {
      const Json* content = message.Find("content");
      if (content == nullptr || !content->is_string()) continue;
      bytes += content->as_string().size() + kAroundMessage;
    }
  }
  return bytes;
}

}  // namespace

Template::Template() = default;
Template::~Template() = default;

StatusOr<std::shared_ptr<const Template>> Template::Parse(std::string source) {
  if (source.size() > (size_t{4} << 20)) {
    return Error(StatusCode::kInvalidArgument, "the chat template is larger than 4 MiB");
  }
  if (!IsValidUtf8(source)) {
    return Error(StatusCode::kInvalidArgument, "the chat template is not valid UTF-8");
  }
  auto program = std::make_unique<jinja::Program>();
  program->source = jinja::NormalizeSource(source);
  try {
    jinja::Compile(program.get());
  } catch (const jinja::Failure& failure) {
    return Error(StatusCode::kInvalidArgument, failure.message);
  } catch (const jinja::OutOfMemory&) {
    return Error(StatusCode::kResourceExhausted, "the chat template needs too much memory");
  }
  std::shared_ptr<Template> parsed(new Template());
  parsed->source_ = std::move(source);
  parsed->program_ = std::move(program);
  return std::shared_ptr<const Template>(std::move(parsed));
}

StatusOr<std::string> Template::Render(const Json& context, const RenderOptions& options) const {
  Variables variables;
  if (context.is_object()) {
    variables.reserve(context.as_object().size());
    for (const auto& [name, value] : context.as_object()) variables.emplace_back(name, &value);
  }
  return Render(variables, options);
}

StatusOr<std::string> Template::Render(const Variables& variables,
                                       const RenderOptions& options) const {
  std::string out;
  if (options.generation_spans != nullptr) options.generation_spans->clear();
  jinja::Arena arena(options.max_memory_bytes);
  BlockUser block(&arena);
  jinja::Interpreter interpreter(*program_, options, &arena);
  try {
    out.reserve(std::min(ExpectedBytes(variables), options.max_output_bytes));
    interpreter.Run(variables, &out);
  } catch (const jinja::Failure& failure) {
    if (failure.code != StatusCode::kFailedPrecondition) {
      return Error(failure.code, failure.message);
    }
    return Error(failure.code, failure.message + " (chat template, line " +
                                   std::to_string(interpreter.line()) + ")");
  } catch (const jinja::OutOfMemory&) {
    return Error(StatusCode::kResourceExhausted, "the chat template needs too much memory");
  }
  return out;
}

}  // namespace portico
