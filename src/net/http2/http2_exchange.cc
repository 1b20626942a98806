#include "net/http2/http2_exchange.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/touched_objects.h"
#include "net/http/body_room.h"
#include "net/http2/http2_session.h"
#include "net/loop/out_of_memory.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

// As for HTTP/1.1: simdjson reads behind the end, and a declared length is not believed at once.
constexpr size_t kFirstReserve = 64 << 10;
constexpr int kClientClosedRequest = 499;

bool HasNoBody(int status) { return status == 204 || status == 304 || status < 200; }

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

Http2Exchange::Http2Exchange(Http2Stream& stream)
    : stream_(&stream),
      shard_(stream.connection().shard().shard),
      max_body_(stream.connection().shard().options.max_body_bytes),
      whole_body_(max_body_) {
  request = std::move(stream.request);
  is_head_request_ = request.method == "HEAD";
  if (stream.connection().shard().options.on_complete != nullptr) start_ = Clock::now();
}

void Http2Exchange::Begin(Http2Stream& stream, bool too_large, bool ended) {
  std::unique_ptr<Http2Exchange> made(new Http2Exchange(stream));
  Http2Exchange& exchange = *made;
  exchange.self_ = std::move(made);
  stream.SetUser(&exchange);
  const ServerOptions& options = stream.connection().shard().options;
  HttpError wrong;
  if (too_large) {
    wrong = {431, "the request head is larger than " + std::to_string(options.max_head_bytes) +
                      " bytes"};
  } else {
    wrong = exchange.ReadHead();
  }
  if (wrong.status != 0) return exchange.Refuse(wrong);
  HeadVerdict verdict;
  if (options.check_head != nullptr) verdict = options.check_head(exchange.request);
  if (verdict.refusal) return exchange.RefuseWith(*std::move(verdict.refusal));
  exchange.whole_body_ = verdict.whole_body_bytes;
  const size_t kept = std::min(exchange.declared_, exchange.whole_body_);
  if (!stream.connection().shard().load.bodies->HasRoomFor(kept)) {
    return exchange.Refuse(Full());
  }
  exchange.max_body_ = std::min(exchange.max_body_, verdict.max_body_bytes);
  if (!ended && exchange.request.Header("expect") == "100-continue") {
    stream.SendContinue();
  }
}

HttpError Http2Exchange::TooLarge() const {
  return {413, "the request body is larger than " + std::to_string(max_body_) + " bytes"};
}

HttpError Http2Exchange::Full() { return {503, "too many large requests at once; try again"}; }

HttpError Http2Exchange::ReadHead() {
  if (!std::all_of(request.method.begin(), request.method.end(), IsUpper)) {
    return {400, "malformed HTTP request: bad method"};
  }
  if (request.method == "CONNECT") return {501, "CONNECT is not supported"};
  std::string target = std::move(request.path);
  std::string_view path = target;
  if (path.find('#') != std::string_view::npos) return {400, "bad request target"};
  if (size_t question = path.find('?'); question != std::string_view::npos) {
    request.query.assign(path.substr(question + 1));
    path = path.substr(0, question);
  }
  if (path.empty()) path = "/";
  if (!DecodePath(path, &request.path)) return {400, "bad percent escape in the request target"};

  std::string_view declared = request.Header("content-length");
  if (declared.empty()) return {};
  size_t length = 0;
  auto parsed = std::from_chars(declared.data(), declared.data() + declared.size(), length);
  if (parsed.ec != std::errc() || length > max_body_) return TooLarge();
  declared_ = length;
  has_length_ = true;
  if (length > 0) request.body.reserve(std::min(length, kFirstReserve) + kBodyPadding);
  return {};
}

void Http2Exchange::OnBody(std::string_view bytes) {
  if (self_ == nullptr) return OnRest(bytes);
  stream_->Consume(bytes.size());
  const size_t size = request.body.size() + bytes.size();
  if (size > max_body_) return Refuse(TooLarge());
  if (!stream_->Hold(size)) {
    Refuse({503, "the requests of this connection are too large together"});
    return;
  }
  const size_t whole = has_length_ ? declared_ : max_body_;
  const auto& budget = stream_->connection().shard().load.bodies;
  if (!MakeBodyRoom(&request.body, bytes.size(), whole, budget, &request.lease)) {
    return Refuse(Full());
  }
  request.body.append(bytes);
  body_came_ = size;
  if (size <= whole_body_) return;
  rest_ = Rest::kOpen;
  Dispatch();
}

void Http2Exchange::Dispatch() {
  stream_->Hold(0);
  const events::Scope scope(events_.Begin(request));
  HandleInMemory([&handler = stream_->connection().shard().handler, &self = self_] {
    handler(std::move(self));
  });
}

void Http2Exchange::OnRequestEnd() {
  if (self_ != nullptr) return Dispatch();
  if (rest_ != Rest::kOpen) return;
  if (reader_ != nullptr && tell_ == nullptr) return EndRest();
  rest_ = Rest::kHere;
}

void Http2Exchange::OnSlowBody() {
  const HttpError slow = {408, "the request body took too long"};
  if (self_ != nullptr) return Refuse(slow);
  // What its reader has not consumed holds the client back, or did in this period.
  if (held_ > 0 || std::exchange(held_back_, false)) return;
  if (rest_ == Rest::kOpen && reader_ != nullptr && tell_ == nullptr) FailRest(slow);
}

int64_t Http2Exchange::rest_bytes() const {
  if (rest_ == Rest::kHere) return static_cast<int64_t>(ahead_.size());
  if (rest_ == Rest::kNone) return 0;
  if (!has_length_) return -1;
  return static_cast<int64_t>(declared_ - (body_came_ - ahead_.size()));
}

void Http2Exchange::OnRest(std::string_view bytes) {
  if (rest_ != Rest::kOpen) return stream_->Consume(bytes.size());
  body_came_ += bytes.size();
  if (body_came_ > max_body_ && reader_ != nullptr && tell_ == nullptr) {
    stream_->Consume(bytes.size());
    return FailRest(TooLarge());
  }
  held_ += bytes.size();
  stream_->SpareConnection();
  if (reader_ == nullptr || tell_ != nullptr) {
    ahead_.append(bytes);  // at most the stream's window
    return;
  }
  reader_->OnBodyBytes(bytes);
}

void Http2Exchange::ReadBody(BodyReader& reader) {
  if (rest_ == Rest::kNone || reader_ != nullptr) return;
  reader_ = &reader;
  tell_ = shard_.After(Duration::zero(), [this] {
    tell_.reset();
    TellRest();
  });
}

void Http2Exchange::TellRest() {
  if (rest_ == Rest::kNone) return;
  if (body_came_ > max_body_) return FailRest(TooLarge());
  if (!ahead_.empty()) {
    // The reader may destroy this.
    const std::string ahead = std::exchange(ahead_, {});
    const bool whole = rest_ == Rest::kHere;
    BodyReader* reader = reader_;
    if (!whole) return reader->OnBodyBytes(ahead);
    tell_ = shard_.After(Duration::zero(), [this] {
      tell_.reset();
      TellRest();
    });
    return reader->OnBodyBytes(ahead);
  }
  if (rest_ == Rest::kHere) EndRest();
}

void Http2Exchange::ConsumeBody(size_t bytes) {
  if (stream_ == nullptr) return;
  // A window is given back by halves: with so much ahead the client may have had nothing left of it.
  const size_t window = stream_->connection().shard().options.http2.stream_window;
  held_back_ = held_back_ || held_ > window / 2;
  bytes = std::min(bytes, held_);
  held_ -= bytes;
  stream_->Consume(bytes);
}

void Http2Exchange::EndRest() {
  BodyReader* reader = reader_;
  DropRest();
  reader->OnBodyEnd();
}

void Http2Exchange::FailRest(const HttpError& error) {
  BodyReader* reader = reader_;
  DropRest();
  reader->OnBodyRefused(error);
}

void Http2Exchange::DropRest() {
  rest_ = Rest::kNone;
  reader_ = nullptr;
  tell_.reset();
  std::string().swap(ahead_);
}

Http2Exchange::~Http2Exchange() {
  if (stream_ != nullptr) {
    EndDropped(streaming_, stream_->connection().shard().options.write_error);
  }
}

void Http2Exchange::Refuse(const HttpError& error) {
  RefuseWith(ErrorResponse(error, stream_->connection().shard().options.write_error));
}

void Http2Exchange::RefuseWith(HttpResponse response) {
  std::unique_ptr<Http2Exchange> dying = std::move(self_);
  request.DropBody();
  Respond(std::move(response));
}

void Http2Exchange::SendHead(const HttpResponse& response, bool has_length, bool end) {
  status_ = response.status;
  events_.OnHead(status_);
  if (stream_->connection().shard().options.notes_ids) NoteId(response, &request);
  Headers headers;
  headers.reserve(response.headers.size() + 2);
  if (!response.content_type.empty() && has_body_) {
    headers.emplace_back("content-type", response.content_type);
  }
  for (const auto& header : response.headers) headers.push_back(header);
  if (has_length) {
    const bool told = is_head_request_ && response.head_length >= 0;
    headers.emplace_back("content-length", told ? std::to_string(response.head_length)
                                                : std::to_string(response.body.size()));
  }
  stream_->SendHead(response.status, headers, end);
}

void Http2Exchange::Respond(HttpResponse response) {
  if (stream_ == nullptr || streaming_) return;
  has_body_ = !HasNoBody(response.status);
  bool sends_body = has_body_ && !is_head_request_ && !response.body.empty();
  SendHead(response, has_body_, !sends_body);
  if (sends_body) {
    body_bytes_ = response.body.size();
    stream_->WriteWhole(std::move(response.body));
    stream_->End();
  }
  Complete();
}

void Http2Exchange::StartStream(HttpResponse response) {
  if (stream_ == nullptr || streaming_) return;
  streaming_ = true;
  has_body_ = !HasNoBody(response.status);
  SendHead(response, false, !has_body_);
  stream_->LimitUnsent(stream_->connection().shard().options.max_unsent_bytes);
}

void Http2Exchange::Write(std::string_view bytes) {
  if (stream_ == nullptr || !streaming_ || is_head_request_ || !has_body_) return;
  NoteTouched(this, sizeof(*this));
  NoteTouched(stream_, sizeof(*stream_));
  body_bytes_ += bytes.size();
  stream_->Write(bytes);
}

void Http2Exchange::End() {
  if (stream_ == nullptr || !streaming_) return;
  stream_->End();
  Complete();
}

size_t Http2Exchange::unsent_bytes() const { return stream_ == nullptr ? 0 : stream_->unsent(); }

void Http2Exchange::CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) {
  if (stream_ != nullptr) stream_->CallWhenBelow(bytes, std::move(call));
}

void Http2Exchange::Cut() {
  if (stream_ == nullptr) return;
  stream_->Reset(Http2Error::kInternal);
  Complete();
}

void Http2Exchange::Complete() {
  DropRest();
  Report(status_);
  events_.OnEnd(body_bytes_);
  stream_->LingerAfterAnswer();
  std::exchange(stream_, nullptr)->LetGo();
}

void Http2Exchange::OnGone(Http2Error) {
  std::unique_ptr<Http2Exchange> dying = std::move(self_);
  DropRest();
  if (dying == nullptr) Report(kClientClosedRequest);
  stream_ = nullptr;
  auto on_closed = std::exchange(on_closed_, nullptr);
  if (on_closed) on_closed();
}

void Http2Exchange::Report(int status) {
  const auto& on_complete = stream_->connection().shard().options.on_complete;
  if (on_complete != nullptr) on_complete(request, status, body_bytes_, Clock::now() - start_);
}

}  // namespace portico::net
