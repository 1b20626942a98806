#include "api/gateway/merge_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "absl/strings/numbers.h"
#include "text/utf8.h"

namespace portico::api {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

// A name that begins here; empty: there is none.
std::string_view NameAt(std::string_view text) {
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') return {};
  const auto* const end = std::find_if_not(text.begin(), text.end(), IsNameCharacter);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

bool IsText(std::string_view line) {
  const bool plain = std::all_of(line.begin(), line.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\t';
  });
  return plain && IsValidUtf8(line);
}

bool IsType(std::string_view type) {
  return type == "counter" || type == "gauge" || type == "histogram" || type == "summary" ||
         type == "untyped";
}

void SkipBlanks(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t"), text->size()));
}

std::string_view TakeWord(std::string_view* text) {
  SkipBlanks(text);
  const std::string_view word = text->substr(0, text->find_first_of(" \t"));
  text->remove_prefix(word.size());
  return word;
}

// Behind the quotes of a label's value that begins with one; npos: it is malformed.
size_t QuotedEnd(std::string_view text) {
  if (!text.starts_with('"')) return text.npos;
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] != '\\') continue;
    if (++at == text.size() || std::string_view("\\\"n").find(text[at]) == text.npos) break;
  }
  return text.npos;
}

// The labels in braces that begin `text`, each with a comma in front; false: they are malformed, or a name occurs
// twice. One of the worker's own that is called as the gateway's is renamed, as Prometheus does.
bool TakeLabels(std::string_view* text, std::string* labels) {
  std::vector<std::string_view> names = {"worker", "__name__"};
  text->remove_prefix(1);
  while (true) {
    SkipBlanks(text);
    if (text->starts_with('}')) break;
    std::string_view name = NameAt(*text);
    text->remove_prefix(name.size());
    SkipBlanks(text);
    if (name.empty() || name.find(':') != name.npos || !text->starts_with('=')) return false;
    text->remove_prefix(1);
    SkipBlanks(text);
    const size_t end = QuotedEnd(*text);
    if (end == text->npos) return false;
    if (name == "worker") name = "exported_worker";
    names.push_back(name);
    labels->append(",").append(name).append("=");
    labels->append(text->substr(0, end));
    text->remove_prefix(end);
    SkipBlanks(text);
    if (text->starts_with('}')) break;
    if (!text->starts_with(',')) return false;
    text->remove_prefix(1);
  }
  text->remove_prefix(1);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

// Whether all that stands behind the labels is a number, and perhaps a time.
bool IsValue(std::string_view text) {
  const std::string_view number = TakeWord(&text);
  double value = 0;
  if (!absl::SimpleAtod({number.data(), number.size()}, &value)) return false;
  // A reader makes no infinity of a number that is too large.
  if (!std::isfinite(value) && number.find_first_of("(0123456789") != number.npos) return false;
  const std::string_view time = TakeWord(&text);
  int64_t ignored = 0;
  SkipBlanks(&text);
  return text.empty() &&
         (time.empty() || absl::SimpleAtoi(absl::string_view(time.data(), time.size()), &ignored));
}

// Histograms and summaries name their samples after the metric.
bool IsOf(std::string_view sample, std::string_view family) {
  if (!sample.starts_with(family)) return false;
  const std::string_view rest = sample.substr(family.size());
  return rest.empty() || rest == "_bucket" || rest == "_sum" || rest == "_count" ||
         rest == "_total" || rest == "_created";
}

}  // namespace

MergedMetrics::Family& MergedMetrics::Of(std::string_view name) {
  const auto [at, added] = families_.try_emplace(std::string(name));
  if (added) names_.emplace_back(name);
  return at->second;
}

void MergedMetrics::Add(std::string_view worker, std::string_view text) {
  while (!text.empty()) AddPart(worker, &text, text.size());
  EndAnswer();
}

void MergedMetrics::AddPart(std::string_view worker, std::string_view* text, size_t bytes) {
  const size_t left = text->size() - std::min(bytes, text->size());
  while (text->size() > left) {
    std::string_view line = text->substr(0, text->find('\n'));
    text->remove_prefix(std::min(line.size() + 1, text->size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A reader refuses the whole text for one such line.
    if (line.size() <= kMaxLine && IsText(line)) AddLine(worker, line);
  }
}

void MergedMetrics::AddLine(std::string_view worker, std::string_view line) {
  const bool types = line.starts_with("# TYPE ");
  if (types || line.starts_with("# HELP ")) {
    std::string_view rest = line.substr(7);
    const std::string_view name = NameAt(rest);
    rest.remove_prefix(name.size());
    if (name.empty() || !(rest.empty() || rest.starts_with(' '))) return;
    family_ = name;
    if (types && !IsType(TakeWord(&rest))) return;
    SkipBlanks(&rest);
    if (types && !rest.empty()) return;
    std::string& kept = types ? Of(name).type : Of(name).help;
    if (kept.empty()) kept.append(line).append("\n");
    return;
  }
  const std::string_view name = NameAt(line);
  if (name.empty() || name.size() == line.size()) return;
  std::string_view rest = line.substr(name.size());
  std::string labels;
  SkipBlanks(&rest);
  if (rest.starts_with('{') ? !TakeLabels(&rest, &labels) : line[name.size()] > ' ') return;
  SkipBlanks(&rest);
  if (!IsValue(rest)) return;
  if (family_.empty() || !IsOf(name, family_)) family_ = name;
  fmt::format_to(std::back_inserter(Of(family_).samples), "{}{{worker=\"{}\"{}}} {}\n", name,
                 worker, labels, rest);
}

std::string MergedMetrics::Text() const {
  std::string text;
  for (const std::string& name : names_) {
    const Family& family = families_.at(name);
    if (!family.samples.empty())
      text.append(family.help).append(family.type).append(family.samples);
  }
  return text;
}

}  // namespace portico::api
