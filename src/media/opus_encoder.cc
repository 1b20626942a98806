// Opus in an Ogg stream by libopusenc (BSD), which resamples to 48 kHz itself.
#include <memory>

#include "media/encoders.h"
#include "media/shared_library.h"

namespace portico::media {
namespace {

struct OggOpusEnc;
struct OggOpusComments;

struct OpusLibrary {
  OggOpusComments* (*new_comments)();
  void (*destroy_comments)(OggOpusComments*);
  OggOpusEnc* (*create_pull)(OggOpusComments*, int32_t, int, int, int*);
  int (*write)(OggOpusEnc*, const int16_t*, int);
  int (*get_page)(OggOpusEnc*, unsigned char**, int32_t*, int);
  int (*drain)(OggOpusEnc*);
  void (*destroy)(OggOpusEnc*);
  int (*ctl)(OggOpusEnc*, int, ...);
};

StatusOr<OpusLibrary> LoadOpus() {
  PORTICO_ASSIGN_OR_RETURN(const SharedLibrary library,
                           SharedLibrary::Load("libopusenc.so.0", "libopusenc0"));
  OpusLibrary opus{};
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_comments_create", &opus.new_comments));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_comments_destroy", &opus.destroy_comments));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_encoder_create_pull", &opus.create_pull));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_encoder_write", &opus.write));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_encoder_get_page", &opus.get_page));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_encoder_drain", &opus.drain));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_encoder_destroy", &opus.destroy));
  PORTICO_RETURN_IF_ERROR(library.Bind("ope_encoder_ctl", &opus.ctl));
  return opus;
}

const StatusOr<OpusLibrary>& Library() {
  static const auto* library = new StatusOr<OpusLibrary>(LoadOpus());
  return *library;
}

// opusenc.h: OPE_SET_DECISION_DELAY_REQUEST, OPE_SET_MUXING_DELAY_REQUEST; samples at 48 kHz. By
// default a page holds a second, which a listener would wait for.
constexpr int kSetDecisionDelay = 14000;
constexpr int kSetMuxingDelay = 14002;
constexpr int32_t kDecisionDelay = 960;
constexpr int32_t kMuxingDelay = 9600;

class OpusEncoder final : public Encoder {
 public:
  OpusEncoder(const OpusLibrary& library, int32_t sample_rate)
      : library_(library), comments_(library.new_comments()) {
    int error = 0;
    if (comments_ != nullptr) {
      encoder_ = library_.create_pull(comments_, sample_rate, 1, 0, &error);
    }
    if (encoder_ == nullptr) return;
    library_.ctl(encoder_, kSetDecisionDelay, kDecisionDelay);
    library_.ctl(encoder_, kSetMuxingDelay, kMuxingDelay);
  }
  ~OpusEncoder() override {
    if (encoder_ != nullptr) library_.destroy(encoder_);
    if (comments_ != nullptr) library_.destroy_comments(comments_);
  }

  bool ok() const { return encoder_ != nullptr; }

  Status Encode(SampleSpan samples, std::string* out) override {
    if (samples.empty()) return OkStatus();
    const int error = library_.write(encoder_, samples.data(), static_cast<int>(samples.size()));
    if (error != 0) return Failed();
    Take(out);
    return OkStatus();
  }

  Status Finish(std::string* out) override {
    if (library_.drain(encoder_) != 0) return Failed();
    Take(out);
    return OkStatus();
  }

 private:
  static Status Failed() { return Error(StatusCode::kInternal, "the Opus encoder failed"); }

  void Take(std::string* out) {
    unsigned char* page = nullptr;
    int32_t bytes = 0;
    while (library_.get_page(encoder_, &page, &bytes, 0) == 1) {
      out->append(reinterpret_cast<const char*>(page), static_cast<size_t>(bytes));
    }
  }

  const OpusLibrary& library_;
  OggOpusComments* comments_;
  OggOpusEnc* encoder_ = nullptr;
};

}  // namespace

Status CanEncodeOpus() { return Library().status(); }

StatusOr<std::unique_ptr<Encoder>> NewOpusEncoder(int32_t sample_rate) {
  PORTICO_RETURN_IF_ERROR(Library().status());
  auto encoder = std::make_unique<OpusEncoder>(*Library(), sample_rate);
  if (!encoder->ok()) return Error(StatusCode::kInternal, "the Opus encoder does not start");
  return std::unique_ptr<Encoder>(std::move(encoder));
}

}  // namespace portico::media
