// FLAC by libFLAC (BSD). The stream's header has no total and no checksum: it has left by then.
#include <memory>
#include <vector>

#include "media/encoders.h"
#include "media/shared_library.h"

namespace portico::media {
namespace {

struct StreamEncoder;
using WriteCallback = int (*)(const StreamEncoder*, const unsigned char*, size_t, uint32_t,
                              uint32_t, void*);

struct FlacLibrary {
  StreamEncoder* (*create)();
  void (*destroy)(StreamEncoder*);
  int (*set_channels)(StreamEncoder*, uint32_t);
  int (*set_bits)(StreamEncoder*, uint32_t);
  int (*set_rate)(StreamEncoder*, uint32_t);
  int (*set_level)(StreamEncoder*, uint32_t);
  int (*set_block)(StreamEncoder*, uint32_t);
  int (*init)(StreamEncoder*, WriteCallback, void*, void*, void*, void*);
  int (*process)(StreamEncoder*, const int32_t*, uint32_t);
  int (*finish)(StreamEncoder*);
};

StatusOr<FlacLibrary> LoadFlac() {
  PORTICO_ASSIGN_OR_RETURN(const SharedLibrary library,
                           SharedLibrary::Load("libFLAC.so.12", "libflac12"));
  FlacLibrary flac{};
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_new", &flac.create));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_delete", &flac.destroy));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_set_channels", &flac.set_channels));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_set_bits_per_sample", &flac.set_bits));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_set_sample_rate", &flac.set_rate));
  PORTICO_RETURN_IF_ERROR(
      library.Bind("FLAC__stream_encoder_set_compression_level", &flac.set_level));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_set_blocksize", &flac.set_block));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_init_stream", &flac.init));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_process_interleaved", &flac.process));
  PORTICO_RETURN_IF_ERROR(library.Bind("FLAC__stream_encoder_finish", &flac.finish));
  return flac;
}

const StatusOr<FlacLibrary>& Library() {
  static const auto* library = new StatusOr<FlacLibrary>(LoadFlac());
  return *library;
}

constexpr uint32_t kLevel = 3;
constexpr uint32_t kBlock = 2048;  // samples a frame: what a listener waits for

class FlacEncoder final : public Encoder {
 public:
  explicit FlacEncoder(const FlacLibrary& library) : library_(library), flac_(library.create()) {}
  ~FlacEncoder() override {
    if (flac_ != nullptr) library_.destroy(flac_);
  }

  Status Init(int32_t sample_rate) {
    if (flac_ == nullptr) return Failed();
    library_.set_channels(flac_, 1);
    library_.set_bits(flac_, 16);
    library_.set_rate(flac_, static_cast<uint32_t>(sample_rate));
    library_.set_level(flac_, kLevel);
    library_.set_block(flac_, kBlock);
    return library_.init(flac_, Write, nullptr, nullptr, nullptr, this) == 0 ? OkStatus()
                                                                             : Failed();
  }

  Status Encode(SampleSpan samples, std::string* out) override {
    wide_.assign(samples.begin(), samples.end());
    const bool done = samples.empty() || library_.process(flac_, wide_.data(),
                                                          static_cast<uint32_t>(wide_.size())) != 0;
    Take(out);
    return done ? OkStatus() : Failed();
  }

  Status Finish(std::string* out) override {
    const bool done = library_.finish(flac_) != 0;
    Take(out);
    return done ? OkStatus() : Failed();
  }

 private:
  static Status Failed() { return Error(StatusCode::kInternal, "the FLAC encoder failed"); }
  static int Write(const StreamEncoder*, const unsigned char* bytes, size_t size, uint32_t,
                   uint32_t, void* self) {
    static_cast<FlacEncoder*>(self)->ready_.append(reinterpret_cast<const char*>(bytes), size);
    return 0;  // FLAC__STREAM_ENCODER_WRITE_STATUS_OK
  }
  void Take(std::string* out) {
    *out += ready_;
    ready_.clear();
  }

  const FlacLibrary& library_;
  StreamEncoder* flac_;
  std::string ready_;
  std::vector<int32_t> wide_;
};

}  // namespace

Status CanEncodeFlac() { return Library().status(); }

StatusOr<std::unique_ptr<Encoder>> NewFlacEncoder(int32_t sample_rate) {
  PORTICO_RETURN_IF_ERROR(Library().status());
  auto encoder = std::make_unique<FlacEncoder>(*Library());
  PORTICO_RETURN_IF_ERROR(encoder->Init(sample_rate));
  return std::unique_ptr<Encoder>(std::move(encoder));
}

}  // namespace portico::media
