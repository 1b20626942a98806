#include "parser/harmony/harmony_parser.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "text/white_space.h"

namespace portico::parser {
namespace {

constexpr size_t kMaxHeader = 1024;
constexpr std::string_view kFunctions = "functions.";

std::string_view TextOf(HarmonyToken token) {
  return HarmonyMarkers().text(static_cast<size_t>(token));
}

constexpr std::string_view kTo = "to=";

// To whom a header speaks: the word behind `to=`, up to white space or a marker. Where there is none: npos.
struct Recipient {
  size_t at = std::string_view::npos;
  std::string_view word = {};
};

Recipient RecipientOf(std::string_view header) {
  Recipient to;
  to.at = header.find(kTo);
  if (to.at == std::string_view::npos) return to;
  const std::string_view behind = header.substr(to.at + kTo.size());
  size_t end = 0;
  while (end < behind.size() && static_cast<unsigned char>(behind[end]) > ' ' &&
         behind[end] != '<') {
    ++end;
  }
  to.word = behind.substr(0, end);
  return to;
}

// Tools that models have been trained with. Other recipients that nobody offers are words.
bool IsBuiltIn(std::string_view recipient) {
  recipient = recipient.substr(0, recipient.find('.'));
  return recipient == "browser" || recipient == "python" || recipient == "container";
}

bool IsRole(std::string_view word) {
  return word == "assistant" || word == "user" || word == "system" || word == "developer" ||
         word == "tool";
}

bool IsChannel(std::string_view word) {
  return word == "analysis" || word == "commentary" || word == "final";
}

// The channel: the last that is named.
std::string_view ChannelOf(std::string_view header) {
  const char mark = static_cast<char>(static_cast<int>(HarmonyToken::kChannel) + 1);
  size_t at = header.rfind(mark);
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at);
  rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find_first_not_of(kWhiteSpace), rest.size()));
  size_t end = 0;
  while (end < rest.size() && static_cast<unsigned char>(rest[end]) > ' ') ++end;
  return rest.substr(0, end);
}

// Words of a header without its recipient that mean nothing there, as they stand. A role is one word, a channel is followed by
// at most one, the type of the content.
std::string StrayWords(std::string_view header) {
  std::string stray;
  while (!header.empty()) {
    const bool marked = static_cast<unsigned char>(header[0]) < 8;
    const auto token = static_cast<HarmonyToken>(header[0] - 1);
    if (marked) header.remove_prefix(1);
    const auto* const next = std::find_if(header.begin(), header.end(),
                                          [](char c) { return static_cast<unsigned char>(c) < 8; });
    const std::string_view part = header.substr(0, static_cast<size_t>(next - header.begin()));
    header.remove_prefix(part.size());
    std::vector<std::string_view> words;
    for (size_t at = part.find_first_not_of(kWhiteSpace); at != std::string_view::npos;) {
      const size_t end = std::min(part.find_first_of(kWhiteSpace, at), part.size());
      words.push_back(part.substr(at, end - at));
      at = part.find_first_not_of(kWhiteSpace, end);
    }
    const bool channel = marked && token == HarmonyToken::kChannel;
    const bool known = !words.empty() && (IsRole(words[0]) || IsChannel(words[0]) ||
                                          (marked && token == HarmonyToken::kConstrain));
    size_t meant = words.size() <= 1 || known ? 1 : 0;
    if (channel && known && words.size() == 2 && !words[1].starts_with(kTo)) meant = 2;
    if (words.size() <= meant) continue;
    const char* const begin = words[meant].data();
    stray.append(begin, static_cast<size_t>(words.back().data() + words.back().size() - begin));
  }
  return stray;
}

}  // namespace

const MarkerSet& HarmonyMarkers() {
  static const MarkerSet* const kMarkers =
      new MarkerSet({"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>",
                     "<|call|>", "<|return|>"});
  return *kMarkers;
}

HarmonyParser::HarmonyParser(const ToolSet& tools, Options options, Sink* sink)
    : call_(tools, sink), options_(std::move(options)), sink_(sink), object_(&call_) {
  if (options_.begins_in_body) {
    kind_ = KindOf({}, options_.channel);
    at_ = At::kBody;
    begun_ = true;
  }
}

HarmonyParser::Kind HarmonyParser::KindOf(std::string_view recipient,
                                          std::string_view channel) const {
  if (recipient.starts_with(kFunctions)) return Kind::kCall;
  if (!recipient.empty() && recipient != "assistant" && recipient != "user") {
    return call_.tools().Takes(recipient) && call_.tools().Arguments(recipient) != nullptr
               ? Kind::kCall
               : Kind::kReasoning;
  }
  return channel == "analysis" ? Kind::kReasoning : Kind::kContent;
}

void HarmonyParser::Feed(std::string_view text) {
  std::string joined = std::move(waiting_);
  waiting_.clear();
  if (!joined.empty()) {
    joined.append(text);
    text = joined;
  }
  while (!text.empty()) {
    MarkerSet::Match match = HarmonyMarkers().Find(text, false);
    if (match.begin > 0) FeedPlain(text.substr(0, match.begin));
    text.remove_prefix(match.begin);
    if (match.kind == MarkerSet::Kind::kPartial) {
      waiting_ = text;
      return;
    }
    if (match.kind == MarkerSet::Kind::kFound) {
      FeedToken(static_cast<HarmonyToken>(match.marker));
      text.remove_prefix(match.length);
    }
  }
}

void HarmonyParser::FeedPlain(std::string_view text) {
  while (!text.empty() && at_ != At::kBody) {
    if (at_ == At::kHeader) {
      raw_.append(text);
      header_.append(text);
      if (raw_.size() > kMaxHeader || !MayBeHeader()) HeaderIsText();
      return;
    }
    // Between messages, or in front of the first, whose `<|start|>assistant` may be missing.
    if (begun_) {
      text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
      if (text.empty()) return;
    }
    // Text of nobody: a header perhaps, if a marker follows.
    at_ = At::kHeader;
  }
  if (!text.empty()) Body(text);
}

void HarmonyParser::FeedToken(HarmonyToken token) {
  std::string_view text = TextOf(token);
  switch (token) {
    case HarmonyToken::kMessage:
      if (at_ == At::kBody) return Body(text);
      raw_.append(text);
      return BeginBody();
    case HarmonyToken::kStart:
    case HarmonyToken::kChannel:
    case HarmonyToken::kConstrain: {
      // Within a body only the start of another message means anything: its end is missing.
      if (at_ == At::kBody && token == HarmonyToken::kConstrain) return Body(text);
      if (at_ == At::kBody) {
        if (begun_) ++repaired_;
        EndMessage(true);
      }
      if (at_ == At::kHeader && token == HarmonyToken::kStart && !raw_.empty()) HeaderIsText();
      if (at_ != At::kHeader) {
        at_ = At::kHeader;
        raw_.clear();
        header_.clear();
      }
      raw_.append(text);
      header_.push_back(static_cast<char>(static_cast<int>(token) + 1));
      return;
    }
    case HarmonyToken::kEnd:
    case HarmonyToken::kCall:
    case HarmonyToken::kReturn:
      if (at_ == At::kHeader) HeaderIsText();
      if (at_ == At::kBody) {
        if (verbatim_) sink_->Content(text);
        if (kind_ == Kind::kCall) call_.Raw(text);
        EndMessage(true);
      }
      return;
  }
}

// Whether what stands where a header begins may be one: once a marker was in it, it is.
bool HarmonyParser::MayBeHeader() const {
  if (header_.size() != raw_.size()) return true;  // a marker is one byte there
  std::string_view text = raw_;
  text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  for (std::string_view begin : {"assistant", "to="}) {
    if (text.starts_with(begin) || begin.starts_with(text)) return true;
  }
  return false;
}

// A header that is none is content.
void HarmonyParser::HeaderIsText() {
  at_ = At::kBody;
  kind_ = Kind::kContent;
  verbatim_ = false;
  begun_ = true;
  ++repaired_;
  std::string text = std::move(raw_);
  raw_.clear();
  header_.clear();
  if (!text.empty()) sink_->Content(text);
}

void HarmonyParser::BeginBody() {
  const Recipient to = RecipientOf(header_);
  std::string_view recipient = to.word;
  std::string_view channel = ChannelOf(header_);
  kind_ = KindOf(recipient, channel);
  at_ = At::kBody;
  begun_ = true;
  verbatim_ = kind_ == Kind::kReasoning && !options_.reasoning;
  if (kind_ == Kind::kCall) {
    call_.Begin();
    call_.Raw(raw_);
    if (!options_.calls) {
      call_.Reject();
    } else {
      if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
      if (recipient.empty()) {
        call_.Reject();
      } else if (call_.SetName(recipient)) {
        call_.Commit();
      }
    }
    object_.BeginArguments();
  } else if (verbatim_) {
    sink_->Content(raw_);
  }
  std::string others = header_;
  const bool meant = kind_ != Kind::kReasoning || recipient.empty() || IsBuiltIn(recipient) ||
                     recipient == "assistant" || recipient == "user";
  if (to.at != std::string::npos) others.replace(to.at, kTo.size() + to.word.size(), " ");
  std::string stray = StrayWords(others);
  if (!meant) stray = std::string(to.word) + (stray.empty() ? "" : " ") + stray;
  const bool is_call = kind_ == Kind::kCall;
  if (!stray.empty() && !verbatim_ && (!is_call || call_.committed())) {
    ++repaired_;
    kind_ == Kind::kReasoning ? sink_->Reasoning(stray) : call_.sink()->Content(stray);
  }
  raw_.clear();
  header_.clear();
}

void HarmonyParser::Body(std::string_view text) {
  if (kind_ == Kind::kCall) {
    CallBody(text);
  } else if (kind_ == Kind::kReasoning && !verbatim_) {
    sink_->Reasoning(text);
  } else {
    sink_->Content(text);
  }
}

void HarmonyParser::CallBody(std::string_view text) {
  while (!text.empty() && call_.committed() && object_.state() == CallObject::State::kOpen) {
    text.remove_prefix(object_.Push(text));
  }
  if (call_.committed()) object_.Stray(text);
  call_.Raw(text);
}

void HarmonyParser::EndMessage(bool complete) {
  if (kind_ == Kind::kCall) {
    const bool done = object_.arguments_done();
    if (complete && call_.committed() && !done && !object_.untouched()) object_.Close();
    if (!complete) object_.Cut();
    call_.End(complete || done);
  }
  at_ = At::kOutside;
  kind_ = Kind::kContent;
  verbatim_ = false;
}

void HarmonyParser::Finish() {
  if (!waiting_.empty()) {
    std::string left = std::move(waiting_);
    waiting_.clear();
    FeedPlain(left);
  }
  if (at_ == At::kHeader && !raw_.empty()) HeaderIsText();
  if (at_ == At::kBody) EndMessage(false);
}

}  // namespace portico::parser
