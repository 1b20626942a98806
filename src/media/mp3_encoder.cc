// MP3 by LAME (libmp3lame, LGPL), a constant 64 kbit/s: speech of one channel.
#include <memory>
#include <optional>

#include "media/encoders.h"
#include "media/frame_trim.h"
#include "media/mp3_end.h"
#include "media/shared_library.h"

namespace portico::media {
namespace {

struct lame_global_struct;
using Lame = lame_global_struct*;

struct LameLibrary {
  Lame (*init)();
  int (*set_in_samplerate)(Lame, int);
  int (*set_out_samplerate)(Lame, int);
  int (*set_num_channels)(Lame, int);
  int (*set_mode)(Lame, int);
  int (*set_brate)(Lame, int);
  int (*set_quality)(Lame, int);
  int (*set_write_tag)(Lame, int);
  int (*init_params)(Lame);
  int (*get_encoder_delay)(Lame);
  int (*get_framesize)(Lame);
  int (*encode)(Lame, const short*, const short*, int, unsigned char*, int);
  int (*flush)(Lame, unsigned char*, int);
  int (*close)(Lame);
};

StatusOr<LameLibrary> LoadLame() {
  PORTICO_ASSIGN_OR_RETURN(const SharedLibrary library,
                           SharedLibrary::Load("libmp3lame.so.0", "libmp3lame0"));
  LameLibrary lame{};
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_init", &lame.init));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_in_samplerate", &lame.set_in_samplerate));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_out_samplerate", &lame.set_out_samplerate));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_num_channels", &lame.set_num_channels));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_mode", &lame.set_mode));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_brate", &lame.set_brate));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_quality", &lame.set_quality));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_set_bWriteVbrTag", &lame.set_write_tag));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_init_params", &lame.init_params));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_get_encoder_delay", &lame.get_encoder_delay));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_get_framesize", &lame.get_framesize));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_encode_buffer", &lame.encode));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_encode_flush", &lame.flush));
  PORTICO_RETURN_IF_ERROR(library.Bind("lame_close", &lame.close));
  return lame;
}

const StatusOr<LameLibrary>& Library() {
  static const auto* library = new StatusOr<LameLibrary>(LoadLame());
  return *library;
}

constexpr int kMono = 3;       // MPEG_mode MONO
constexpr int kQuality = 5;    // "good quality, fast"
constexpr int kKiloBits = 64;  // MPEG-2.5 (8 to 12 kHz) has no more
constexpr size_t kSlack = 7200;
constexpr int kDecoderDelay = 529;  // of every decoder of layer III, in samples

Status Failed() { return Error(StatusCode::kInternal, "the MP3 encoder failed"); }

class Mp3Encoder final : public Encoder {
 public:
  explicit Mp3Encoder(const LameLibrary& library) : library_(library), lame_(library.init()) {}
  ~Mp3Encoder() override {
    if (lame_ != nullptr) library_.close(lame_);
  }

  Status Init(int32_t sample_rate) {
    if (lame_ == nullptr) return Failed();
    library_.set_in_samplerate(lame_, sample_rate);
    library_.set_out_samplerate(lame_, sample_rate);
    library_.set_num_channels(lame_, 1);
    library_.set_mode(lame_, kMono);
    library_.set_brate(lame_, kKiloBits);
    library_.set_quality(lame_, kQuality);
    library_.set_write_tag(lame_, 0);  // it would be written last, into the first frame
    if (library_.init_params(lame_) < 0) return Failed();
    trim_.emplace(FrameTrim::Codec{
        .delay = static_cast<size_t>(library_.get_encoder_delay(lame_) + kDecoderDelay),
        .frame = static_cast<size_t>(library_.get_framesize(lame_)),
        .look = static_cast<size_t>(sample_rate / 2),
        .head = kMp3FrameHead,
        .frame_bytes = Mp3FrameBytes});
    return OkStatus();
  }

  Status Encode(SampleSpan samples, std::string* out) override {
    return Write(trim_->Enter(samples), out);
  }

  Status Finish(std::string* out) override {
    PORTICO_RETURN_IF_ERROR(Write(trim_->Rest(), out));
    const size_t before = out->size();
    out->resize(before + kSlack);
    PORTICO_RETURN_IF_ERROR(Keep(library_.flush(lame_, At(out, before), kSlack), before, out));
    return trim_->Cut(before, out);
  }

 private:
  Status Write(SampleSpan samples, std::string* out) {
    if (samples.empty()) return OkStatus();
    const size_t before = out->size();
    const size_t room = samples.size() * 5 / 4 + kSlack;  // LAME's own bound
    out->resize(before + room);
    const int bytes =
        library_.encode(lame_, samples.data(), samples.data(), static_cast<int>(samples.size()),
                        At(out, before), static_cast<int>(room));
    PORTICO_RETURN_IF_ERROR(Keep(bytes, before, out));
    return trim_->Look(before, out);
  }

  static unsigned char* At(std::string* out, size_t at) {
    return reinterpret_cast<unsigned char*>(out->data() + at);
  }
  static Status Keep(int bytes, size_t before, std::string* out) {
    out->resize(before + static_cast<size_t>(bytes < 0 ? 0 : bytes));
    return bytes < 0 ? Failed() : OkStatus();
  }

  const LameLibrary& library_;
  Lame lame_;
  std::optional<FrameTrim> trim_;  // after Init()
};

}  // namespace

Status CanEncodeMp3() { return Library().status(); }

StatusOr<std::unique_ptr<Encoder>> NewMp3Encoder(int32_t sample_rate) {
  PORTICO_RETURN_IF_ERROR(Library().status());
  auto encoder = std::make_unique<Mp3Encoder>(*Library());
  PORTICO_RETURN_IF_ERROR(encoder->Init(sample_rate));
  return std::unique_ptr<Encoder>(std::move(encoder));
}

}  // namespace portico::media
