#include "net/http/http1_session.h"

#include <algorithm>
#include <utility>

#include "net/http/http1_exchange.h"
#include "net/loop/out_of_memory.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

constexpr size_t kReadAhead = 64 << 10;
constexpr size_t kMaxUnreadAnswers = 256 << 10;

}  // namespace

Http1Session::Http1Session(Connection& connection) : connection_(connection) {}

Http1Session::~Http1Session() {
  if (exchange_ != nullptr) exchange_->Detach();
}

void Http1Session::OnBytes(std::string_view bytes) {
  if (closing_) return;
  if (!pending_.empty() || !can_consume()) {
    pending_.append(bytes);
    if (can_consume()) {
      ConsumePending();
    } else if (pending_.size() >= kReadAhead) {
      connection_.PauseReading();
    }
    return;
  }
  size_t used = Consume(bytes);
  if (used < bytes.size() && !closing_) pending_.assign(bytes.substr(used));
}

void Http1Session::ConsumePending() {
  std::string taken = std::exchange(pending_, {});
  size_t used = Consume(taken);
  if (closing_ || used == taken.size()) return;
  taken.erase(0, used);
  pending_ = std::move(taken);
}

size_t Http1Session::Consume(std::string_view bytes) {
  size_t total = 0;
  while (total < bytes.size() && can_consume()) {
    if (rest_open_) {
      const size_t used = PassRest(bytes.substr(total));
      total += used;
      if (used == 0) break;  // an unfinished line, or what follows is not wanted
      continue;
    }
    if (connection_.unsent() > kMaxUnreadAnswers) {
      output_full_ = true;
      connection_.TellWhenSent();
      break;
    }
    if (parser_ == nullptr) {
      const ServerOptions& options = connection_.shard().options;
      parser_ = std::make_unique<RequestParser>(options.max_head_bytes, options.max_body_bytes,
                                                options.load->bodies);
    }
    bool in_head = parser_->state() == RequestParser::State::kHead;
    size_t used = 0;
    RequestParser::State state = parser_->Feed(bytes.substr(total), &used);
    total += used;
    if (state == RequestParser::State::kError) {
      RefuseRequest(parser_->error());
    } else if (in_head && state != RequestParser::State::kHead && !Admit()) {
      continue;
    } else if (state == RequestParser::State::kDone) {
      dropping_ ? OnDropped() : Dispatch(true);
    } else if (state == RequestParser::State::kBody && FirstPartIsThere()) {
      Dispatch(false);
    } else if (state == RequestParser::State::kBody && in_head) {
      OnHeadDone(total < bytes.size());
    } else {
      // Empty lines alone are no request yet.
      if (in_head && total < bytes.size()) connection_.SetWait(Wait::kHead);
      break;
    }
  }
  return total;
}

HeadVerdict Http1Session::CheckHead() {
  const ServerOptions& options = connection_.shard().options;
  HttpRequest& request = parser_->request();
  request.peer = connection_.peer();
  request.client = connection_.client();
  request.late = connection_.late();
  HeadVerdict verdict;
  if (options.check_head != nullptr) verdict = options.check_head(request);
  const size_t kept = std::min(parser_->declared_body(), verdict.whole_body_bytes);
  if (!verdict.refusal && !options.load->bodies->HasRoomFor(kept)) {
    verdict.refusal =
        ErrorResponse({503, "too many large requests at once; try again"}, options.write_error);
  }
  return verdict;
}

bool Http1Session::Admit() {
  HeadVerdict verdict = CheckHead();
  if (!verdict.refusal) {
    parser_->LimitBody(verdict.max_body_bytes);
    whole_body_ = verdict.whole_body_bytes;
    return true;
  }
  Refuse(*std::move(verdict.refusal));
  return false;
}

// The connection stays where the rest of the body is known to be short.
void Http1Session::Refuse(HttpResponse response) {
  const bool has_body = parser_->state() == RequestParser::State::kBody;
  const size_t declared = parser_->declared_body();
  const bool drops = has_body && parser_->keep_alive() && !parser_->expects_continue() &&
                     declared > 0 && declared <= Connection::kDroppedInput;
  std::unique_ptr<RequestParser> parser = std::move(parser_);
  Http1Exchange exchange(*this, *parser);
  if (has_body && !drops) exchange.CloseAfterwards();
  exchange_ = &exchange;
  exchange.Respond(std::move(response));
  if (!drops || closing_) return;
  parser_ = std::move(parser);
  parser_->DropBody();
  dropping_ = true;
  connection_.SetWait(Wait::kDrop);
}

void Http1Session::OnDropped() {
  dropping_ = false;
  parser_ = nullptr;
  connection_.SetWait(Wait::kIdle);
  if (connection_.shard().draining()) OnDrain();
}

void Http1Session::OnHeadDone(bool body_follows) {
  connection_.SetWait(Wait::kBody);
  if (parser_->expects_continue() && !body_follows) {
    connection_.Output().append("HTTP/1.1 100 Continue\r\n\r\n");
  }
}

bool Http1Session::FirstPartIsThere() const {
  return !dropping_ && parser_->request().body.size() > whole_body_;
}

void Http1Session::Dispatch(bool whole) {
  std::unique_ptr<RequestParser> parser = std::move(parser_);
  connection_.SetWait(Wait::kAnswer);
  auto exchange = std::make_unique<Http1Exchange>(*this, *parser);
  exchange_ = exchange.get();
  if (!whole) {
    parser_ = std::move(parser);
    rest_open_ = true;
    held_ = 0;
  }
  const events::Scope scope(exchange->BeginEvents());
  HandleInMemory([&] { connection_.shard().handler(std::move(exchange)); });
}

void Http1Session::ReadRest(BodyReader& reader) {
  if (!rest_open_ || reader_ != nullptr) return;
  reader_ = &reader;
  connection_.SetWait(Wait::kBody);
  connection_.ResumeReading();
  if (!pending_.empty()) connection_.RunAtEndOfTurn();
}

void Http1Session::ConsumeRest(size_t bytes) {
  held_ -= std::min(bytes, held_);
  if (!rest_open_ || reader_ == nullptr || held_ > kMaxHeldBody / 2) return;
  connection_.ResumeReading();
  if (!pending_.empty()) connection_.RunAtEndOfTurn();
}

size_t Http1Session::PassRest(std::string_view bytes) {
  thread_local std::string scratch;
  scratch.clear();
  size_t used = 0;
  std::string_view piece;
  const RequestParser::State state = parser_->FeedRest(bytes, &used, &scratch, &piece);
  if (state == RequestParser::State::kError) {
    FailRest(HttpError(parser_->error()));
    return used;
  }
  if (!piece.empty()) {
    held_ += piece.size();
    reader_->OnBodyBytes(piece);
    if (!rest_open_) return used;  // the request has been answered
  }
  if (state == RequestParser::State::kDone) {
    BodyReader* reader = reader_;
    DropRest();
    connection_.SetWait(Wait::kAnswer);
    connection_.ResumeReading();
    reader->OnBodyEnd();
  } else if (held_ >= kMaxHeldBody) {
    connection_.PauseReading();
  }
  return used;
}

void Http1Session::FailRest(const HttpError& error) {
  BodyReader* reader = reader_;
  DropRest();
  closing_ = true;
  pending_ = std::string();
  connection_.SetWait(Wait::kAnswer);
  connection_.PauseReading();
  exchange_->CloseAfterwards();
  reader->OnBodyRefused(error);
}

void Http1Session::DropRest() {
  if (!std::exchange(rest_open_, false)) return;
  parser_ = nullptr;
  reader_ = nullptr;
}

void Http1Session::OnAnswered(bool keep_alive) {
  exchange_ = nullptr;
  DropRest();
  connection_.LimitUnsent(0);
  connection_.CallWhenBelow(0, nullptr);
  // A stream whose head was sent before the drain began has promised to keep the connection; HTTP lets it close
  // between requests all the same.
  const bool drained = connection_.shard().draining() && pending_.empty();
  if (!keep_alive || drained) {
    closing_ = true;
    pending_ = std::string();
    connection_.CloseWhenSent();
    return;
  }
  connection_.SetWait(Wait::kIdle);
  if (!pending_.empty()) connection_.RunAtEndOfTurn();
  connection_.ResumeReading();
}

void Http1Session::OnCut() {
  exchange_ = nullptr;
  DropRest();
  connection_.Abort();
}

void Http1Session::OnSwitched() {
  exchange_ = nullptr;
  connection_.CallWhenBelow(0, nullptr);
  closing_ = true;
  pending_ = std::string();
}

void Http1Session::OnEnd() {
  closing_ = true;
  pending_ = std::string();
  DropRest();
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->OnClientGone();
}

void Http1Session::OnTimeout(Wait wait) {
  if (rest_open_) {
    // What its reader has not consumed holds the client back.
    if (held_ == 0 && reader_ != nullptr) FailRest({408, "the request body took too long"});
    return;
  }
  if (wait == Wait::kIdle || wait == Wait::kDrop || parser_ == nullptr) {
    connection_.Abort();
    return;
  }
  RefuseRequest({408, wait == Wait::kHead ? "the request head took too long"
                                          : "the request body took too long"});
}

void Http1Session::OnSent() {
  output_full_ = false;
  connection_.ResumeReading();
  if (exchange_ == nullptr && !pending_.empty()) connection_.RunAtEndOfTurn();
}

void Http1Session::OnEndOfTurn() {
  if (can_consume() && !pending_.empty()) ConsumePending();
}

void Http1Session::OnDrain() {
  // A request that has begun is still answered; its answer says that the connection closes.
  const bool idle = exchange_ == nullptr && (parser_ == nullptr || dropping_) && pending_.empty();
  if (!idle) return;
  closing_ = true;
  connection_.CloseWhenSent();
}

void Http1Session::RefuseRequest(const HttpError& error) {
  closing_ = true;
  pending_ = std::string();
  Refuse(connection_, error);
  const ServerOptions& options = connection_.shard().options;
  if (options.on_complete != nullptr && parser_ != nullptr) {
    options.on_complete(parser_->request(), error.status, 0, Duration::zero());
  }
}

void Http1Session::Refuse(Connection& connection, const HttpError& error) {
  ServerShard& shard = connection.shard();
  const HttpResponse response = ErrorResponse(error, shard.options.write_error);
  std::string& out = connection.Output();
  AppendHead(response,
             {.framing = BodyFraming::kLength,
              .length = response.body.size(),
              .server = shard.options.server_header,
              .date = shard.date.Now(),
              .close = true},
             &out);
  out.append(response.body);
  connection.CloseWhenSent();
}

}  // namespace portico::net
