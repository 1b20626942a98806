#include "net/http2/http2_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "net/http2/http2_callbacks.h"
#include "net/loop/server_shard.h"

namespace portico::net {
namespace {

// More are rare.
constexpr size_t kUsualFields = 24;
// Of the DATA frames that clients take unless they say otherwise.
constexpr size_t kFrame = 16 << 10;
// A buffer that is handed from stream to stream fits most messages from the beginning.
constexpr size_t kFirstWrite = 512;

uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
}

nghttp2_nv Field(std::string_view name, std::string_view value, uint8_t flags) {
  return {Bytes(name), Bytes(value), name.size(), value.size(), flags};
}

// Says what only HTTP/1.1 may say (RFC 9113, 8.2.2).
bool IsOfConnection(std::string_view name) {
  return name == "connection" || name == "transfer-encoding" || name == "keep-alive" ||
         name == "upgrade" || name == "proxy-connection";
}

// RFC 9110, 5.6.2: token characters.
constexpr std::array<bool, 256> kInNames = [] {
  std::array<bool, 256> in{};
  for (int c = 0; c < 128; ++c) {
    in[static_cast<size_t>(c)] =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
        std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  }
  return in;
}();

// A name as handlers may write it; nghttp2 sends it in lower case.
bool IsName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return kInNames[static_cast<uint8_t>(c)]; });
}

// Differs in every answer: putting it into the table would only push others out.
bool IsUnique(std::string_view name) {
  return name == "x-request-id" || name == "grpc-message" || name == "grpc-status-details-bin";
}

constexpr uint8_t kStaticName = NGHTTP2_NV_FLAG_NO_COPY_NAME;
constexpr uint8_t kStatic = kStaticName | NGHTTP2_NV_FLAG_NO_COPY_VALUE;

class Fields {
 public:
  void Add(std::string_view name, std::string_view value, uint8_t flags = 0) {
    fields_.push_back(Field(name, value, flags));
  }
  void AddAll(const Headers& headers) {
    for (const auto& [name, value] : headers) {
      if (IsOfConnection(name) || !IsName(name) ||
          nghttp2_check_header_value(Bytes(value), value.size()) == 0) {
        continue;
      }
      Add(name, value, IsUnique(name) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
    }
  }
  void AddAll(FixedFields fields) {
    for (const FixedField& field : fields) Add(field.name, field.value, kStatic);
  }
  const nghttp2_nv* data() const { return fields_.data(); }
  size_t size() const { return fields_.size(); }

 private:
  absl::InlinedVector<nghttp2_nv, kUsualFields> fields_;
};

}  // namespace

Http2Stream::Http2Stream(Http2Session& session, int32_t id)
    : session_(session), id_(id), output_(session.connection().shard().stream_buffers) {}

Http2Stream::~Http2Stream() = default;

Connection& Http2Stream::connection() { return session_.connection(); }

void Http2Stream::SendHead(int status, const Headers& headers, bool end) {
  if (reset_ || std::exchange(head_sent_, true)) return;
  ServerShard& server = connection().shard();
  char digits[8];
  char* digits_end = std::to_chars(digits, digits + sizeof digits, status).ptr;
  Fields fields;
  fields.Add(":status", {digits, static_cast<size_t>(digits_end - digits)}, kStaticName);
  if (!server.options.server_header.empty()) {
    fields.Add("server", server.options.server_header, kStatic);
  }
  fields.Add("date", server.date.Now(), kStaticName);
  fields.AddAll(headers);
  SubmitHead(fields, end);
}

void Http2Stream::SendBareHead(FixedFields fixed, const Headers& headers, bool end) {
  if (reset_ || std::exchange(head_sent_, true)) return;
  Fields fields;
  fields.Add(":status", "200", kStatic);
  fields.AddAll(fixed);
  fields.AddAll(headers);
  SubmitHead(fields, end);
}

template <typename FieldList>
void Http2Stream::SubmitHead(const FieldList& fields, bool end) {
  ended_ = end;
  stuck_since_ = session_.now_;
  nghttp2_data_provider body = Http2Body(this);
  nghttp2_submit_response(session_.nghttp2_, id_, fields.data(), fields.size(),
                          end ? nullptr : &body);
  connection().RunAtEndOfTurn();
}

void Http2Stream::SendContinue() {
  Fields fields;
  fields.Add(":status", "100");
  nghttp2_submit_headers(session_.nghttp2_, NGHTTP2_FLAG_NONE, id_, nullptr, fields.data(),
                         fields.size(), nullptr);
}

bool Http2Stream::SubmitTrailers() {
  if (trailers_.empty() && fixed_trailers_.empty()) return false;
  Fields fields;
  fields.AddAll(fixed_trailers_);
  fields.AddAll(trailers_);
  return nghttp2_submit_trailer(session_.nghttp2_, id_, fields.data(), fields.size()) == 0;
}

void Http2Stream::Write(std::string_view bytes, std::string_view more) {
  const size_t size = bytes.size() + more.size();
  if (reset_ || ended_ || size == 0) return;
  std::string& tail = output_.Tail();
  if (tail.capacity() - tail.size() < size) tail.reserve(std::max(tail.size() + size, kFirstWrite));
  tail.append(bytes).append(more);
  session_.unsent_total_ += size;
  Resume();
  // At the end of the turn, not within the user's call.
  if (max_unsent_ == 0) return;
  if (over_bound() || session_.unsent_total_ > kSharedBounds * max_unsent_) {
    session_.some_over_bound_ = true;
  }
}

void Http2Stream::WriteWhole(std::string body) {
  if (reset_ || ended_ || body.empty()) return;
  if (session_.HoldsEnoughAnswers()) {
    unwanted_ = session_.some_over_bound_ = true;
    connection().RunAtEndOfTurn();
    return;
  }
  session_.unsent_total_ += body.size();
  output_.Append(std::move(body));
  Resume();
}

void Http2Stream::End(FixedFields fixed, Headers trailers) {
  if (reset_ || std::exchange(ended_, true)) return;
  fixed_trailers_ = fixed;
  trailers_ = std::move(trailers);
  Resume();
}

// One that has more to send than a frame must not hold the streams of others up. Those that have
// less are not worth a place behind all others after each frame.
void Http2Stream::TakeTurns() {
  if (in_turns_ || output_.size() <= kFrame) return;
  in_turns_ = true;
  const nghttp2_extpri turns = {NGHTTP2_EXTPRI_DEFAULT_URGENCY, 1};
  nghttp2_session_change_extpri_stream_priority(session_.nghttp2_, id_, &turns, 1);
}

void Http2Stream::Resume() {
  TakeTurns();
  if (!std::exchange(deferred_, false)) return;
  stuck_since_ = session_.now_;
  nghttp2_session_resume_data(session_.nghttp2_, id_);
  connection().RunAtEndOfTurn();
}

void Http2Stream::CallWhenBelow(size_t bytes, BelowCall::Call call) {
  if (reset_ || user_ == nullptr) return;
  below_ = BelowCall::Make(connection().shard().shard, bytes, unsent(), std::move(call));
}

bool Http2Stream::over_bound() const { return max_unsent_ != 0 && unsent() > max_unsent_; }

void Http2Stream::Reset(Http2Error error) {
  if (std::exchange(reset_, true)) return;
  DropOutput();
  nghttp2_submit_rst_stream(session_.nghttp2_, NGHTTP2_FLAG_NONE, id_,
                            static_cast<uint32_t>(error));
  connection().RunAtEndOfTurn();
}

void Http2Stream::DropOutput() {
  below_.reset();
  session_.unsent_total_ -= output_.size();
  output_.Consume(output_.size());
}

bool Http2Stream::Hold(size_t bytes) {
  session_.held_total_ += bytes - held_;
  held_ = bytes;
  const ServerOptions& options = connection().shard().options;
  return session_.held_total_ <=
         kSharedBounds * std::max(options.max_body_bytes, options.grpc.max_message_bytes);
}

void Http2Stream::Consume(size_t bytes) {
  bytes = std::min(bytes, unconsumed_);
  if (bytes == 0) return;
  unconsumed_ -= bytes;
  const size_t spared = std::min(bytes, spared_);
  spared_ -= spared;
  nghttp2_session_consume_stream(session_.nghttp2_, id_, bytes);
  nghttp2_session_consume_connection(session_.nghttp2_, bytes - spared);
  connection().RunAtEndOfTurn();
}

void Http2Stream::SpareConnection() {
  nghttp2_session_consume_connection(session_.nghttp2_, unconsumed_ - spared_);
  spared_ = unconsumed_;
  connection().RunAtEndOfTurn();
}

}  // namespace portico::net
