// portico-media: see README.md in this folder. Licence: GPL-3.0-or-later.
//
//   portico-media decode RATE MAX_SECONDS     a file on standard input → 16-bit samples of one channel
//   portico-media encode RATE                 16-bit samples of one channel → AAC in ADTS frames
//
// Exit status: 0 done, 10 no known format, 11 no sound in it, 12 damaged, 13 too long, 14 too large,
// 15 a rate that AAC has not, 20 anything else.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
}

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kNoFormat = 10;
constexpr int kNoSound = 11;
constexpr int kDamaged = 12;
constexpr int kTooLong = 13;
constexpr int kTooLarge = 14;
constexpr int kNoRate = 15;
constexpr int kFailed = 20;

constexpr size_t kMaxInput = size_t{512} << 20;
constexpr rlim_t kMemory = rlim_t{1} << 30;
constexpr rlim_t kSeconds = 60;

[[noreturn]] void Leave(int status) { _exit(status); }

void SetLimit(int which, rlim_t value) {
  const rlimit limit{value, value};
  if (setrlimit(static_cast<__rlimit_resource_t>(which), &limit) != 0) Leave(kFailed);
}

// From here on the process can read, write and take memory, and nothing else.
void Confine() {
  SetLimit(RLIMIT_AS, kMemory);
  SetLimit(RLIMIT_CPU, kSeconds);
  SetLimit(RLIMIT_FSIZE, 0);
  SetLimit(RLIMIT_CORE, 0);
  SetLimit(RLIMIT_NOFILE, 3);
  constexpr uint32_t kAllowed[] = {
      __NR_read,         __NR_write,        __NR_close,          __NR_brk,
      __NR_mmap,         __NR_munmap,       __NR_mremap,         __NR_madvise,
      __NR_mprotect,     __NR_futex,        __NR_exit,           __NR_exit_group,
      __NR_rt_sigreturn, __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_clock_gettime,
      __NR_getrandom,    __NR_gettid,       __NR_getpid,         __NR_sched_getaffinity,
  };
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (size_t i = 0; i < std::size(kAllowed); ++i) {
    const auto to_end = static_cast<uint8_t>(std::size(kAllowed) - i);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAllowed[i], to_end, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    Leave(kFailed);
  }
}

void WriteAll(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, at, size);
    if (written <= 0) Leave(kFailed);
    at += written;
    size -= static_cast<size_t>(written);
  }
}

// What is there, at least a byte; 0 at the end.
size_t ReadSome(void* data, size_t size) {
  const ssize_t got = read(STDIN_FILENO, data, size);
  if (got < 0) Leave(kFailed);
  return static_cast<size_t>(got);
}

std::string ReadFile() {
  std::string file;
  std::vector<char> block(1 << 16);
  while (const size_t got = ReadSome(block.data(), block.size())) {
    file.append(block.data(), got);
    if (file.size() > kMaxInput) Leave(kTooLarge);
  }
  return file;
}

// The file in memory, for libavformat.
struct Memory {
  std::string_view bytes;
  int64_t at = 0;

  static int Read(void* self, uint8_t* out, int wanted) {
    auto* memory = static_cast<Memory*>(self);
    const int64_t left = static_cast<int64_t>(memory->bytes.size()) - memory->at;
    const int64_t count = std::min<int64_t>(left, wanted);
    if (count <= 0) return AVERROR_EOF;
    memcpy(out, memory->bytes.data() + memory->at, static_cast<size_t>(count));
    memory->at += count;
    return static_cast<int>(count);
  }
  static int64_t Seek(void* self, int64_t offset, int whence) {
    auto* memory = static_cast<Memory*>(self);
    const auto size = static_cast<int64_t>(memory->bytes.size());
    if (whence == AVSEEK_SIZE) return size;
    whence &= ~AVSEEK_FORCE;
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory->at : size;
    if (from + offset < 0 || from + offset > size) return AVERROR(EINVAL);
    return memory->at = from + offset;
  }
};

const char* FormatOf(std::string_view file) {
  if (file.size() >= 12 && file.substr(4, 4) == "ftyp") return "mov";
  if (file.substr(0, 4) == "\x1A\x45\xDF\xA3") return "matroska";
  if (file.size() >= 2 && static_cast<uint8_t>(file[0]) == 0xFF &&
      (static_cast<uint8_t>(file[1]) & 0xF6) == 0xF0) {
    return "aac";
  }
  return nullptr;
}

bool IsKnownCodec(AVCodecID id) {
  constexpr AVCodecID kKnown[] = {AV_CODEC_ID_AAC,       AV_CODEC_ID_OPUS,     AV_CODEC_ID_VORBIS,
                                  AV_CODEC_ID_MP3,       AV_CODEC_ID_FLAC,     AV_CODEC_ID_ALAC,
                                  AV_CODEC_ID_PCM_S16LE, AV_CODEC_ID_PCM_F32LE};
  return std::find(std::begin(kKnown), std::end(kKnown), id) != std::end(kKnown);
}

int Refuse(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

// Samples of one channel at one rate, written as they come.
class Output {
 public:
  Output(int rate, double max_seconds)
      : rate_(rate), most_(static_cast<int64_t>(max_seconds * rate)) {}

  void Add(const AVFrame& frame) {
    if (frame.sample_rate < 4000 || frame.sample_rate > 192000 || frame.ch_layout.nb_channels < 1 ||
        frame.ch_layout.nb_channels > 8) {
      Leave(kDamaged);
    }
    if (resampler_ == nullptr || frame.sample_rate != from_ ||
        av_channel_layout_compare(&layout_, &frame.ch_layout) != 0) {
      Open(frame);
    }
    Convert(const_cast<const uint8_t**>(frame.extended_data), frame.nb_samples);
  }
  void Finish() {
    if (resampler_ != nullptr) Convert(nullptr, 0);
    if (total_ == 0) Leave(kNoSound);
  }

 private:
  void Open(const AVFrame& frame) {
    swr_free(&resampler_);
    AVChannelLayout mono = AV_CHANNEL_LAYOUT_MONO;
    from_ = frame.sample_rate;
    av_channel_layout_copy(&layout_, &frame.ch_layout);
    if (layout_.order == AV_CHANNEL_ORDER_UNSPEC) {
      av_channel_layout_default(&layout_, frame.ch_layout.nb_channels);
    }
    if (swr_alloc_set_opts2(&resampler_, &mono, AV_SAMPLE_FMT_S16, rate_, &layout_,
                            static_cast<AVSampleFormat>(frame.format), from_, 0, nullptr) < 0 ||
        swr_init(resampler_) < 0) {
      Leave(kFailed);
    }
    av_channel_layout_copy(&layout_, &frame.ch_layout);
  }
  void Convert(const uint8_t** in, int count) {
    const int room = swr_get_out_samples(resampler_, count);
    if (room < 0) Leave(kFailed);
    samples_.resize(static_cast<size_t>(room));
    auto* out = reinterpret_cast<uint8_t*>(samples_.data());
    const int made = swr_convert(resampler_, &out, room, in, count);
    if (made < 0) Leave(kDamaged);
    total_ += made;
    if (total_ > most_) Leave(kTooLong);
    WriteAll(samples_.data(), static_cast<size_t>(made) * sizeof(int16_t));
  }

  const int rate_;
  const int64_t most_;
  SwrContext* resampler_ = nullptr;
  AVChannelLayout layout_{};
  int from_ = 0;
  int64_t total_ = 0;
  std::vector<int16_t> samples_;
};

int Decode(int rate, double max_seconds) {
  const std::string file = ReadFile();
  const char* name = FormatOf(file);
  const AVInputFormat* format = name == nullptr ? nullptr : av_find_input_format(name);
  if (format == nullptr) return kNoFormat;
  Memory memory{file};
  constexpr int kBuffer = 1 << 16;
  auto* buffer = static_cast<uint8_t*>(av_malloc(kBuffer));
  AVFormatContext* input = avformat_alloc_context();
  if (buffer == nullptr || input == nullptr) return kFailed;
  input->pb = avio_alloc_context(buffer, kBuffer, 0, &memory, Memory::Read, nullptr, Memory::Seek);
  input->io_open = Refuse;
  input->max_streams = 32;
  if (avformat_open_input(&input, nullptr, format, nullptr) < 0) return kDamaged;
  if (avformat_find_stream_info(input, nullptr) < 0) return kDamaged;
  const int index = av_find_best_stream(input, AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
  if (index < 0) return kNoSound;
  const AVCodecParameters& parameters = *input->streams[index]->codecpar;
  if (!IsKnownCodec(parameters.codec_id)) return kNoFormat;
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  AVCodecContext* decoder = codec == nullptr ? nullptr : avcodec_alloc_context3(codec);
  if (decoder == nullptr || avcodec_parameters_to_context(decoder, &parameters) < 0) return kFailed;
  decoder->thread_count = 1;
  if (avcodec_open2(decoder, codec, nullptr) < 0) return kDamaged;
  Output output(rate, max_seconds);
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  if (packet == nullptr || frame == nullptr) return kFailed;
  const auto take = [&] {
    while (avcodec_receive_frame(decoder, frame) == 0) {
      output.Add(*frame);
      av_frame_unref(frame);
    }
  };
  while (av_read_frame(input, packet) >= 0) {
    if (packet->stream_index == index && avcodec_send_packet(decoder, packet) >= 0) take();
    av_packet_unref(packet);
  }
  avcodec_send_packet(decoder, nullptr);
  take();
  output.Finish();
  return 0;
}

// The header in front of each frame (ISO/IEC 13818-7, 6.2): AAC LC, one channel, no checksum.
void WriteFrame(const AVPacket& packet, int rate_index) {
  const uint32_t size = static_cast<uint32_t>(packet.size) + 7;
  const uint8_t header[7] = {0xFF,
                             0xF1,
                             static_cast<uint8_t>(1 << 6 | rate_index << 2),
                             static_cast<uint8_t>(1 << 6 | size >> 11),
                             static_cast<uint8_t>(size >> 3),
                             static_cast<uint8_t>((size & 7) << 5 | 0x1F),
                             0xFC};
  std::string frame(reinterpret_cast<const char*>(header), sizeof header);
  frame.append(reinterpret_cast<const char*>(packet.data), static_cast<size_t>(packet.size));
  WriteAll(frame.data(), frame.size());
}

int Encode(int rate) {
  constexpr int kRates[] = {96000, 88200, 64000, 48000, 44100, 32000, 24000,
                            22050, 16000, 12000, 11025, 8000,  7350};
  const auto* known = std::find(std::begin(kRates), std::end(kRates), rate);
  if (known == std::end(kRates)) return kNoRate;
  const int rate_index = static_cast<int>(known - std::begin(kRates));
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_AAC);
  AVCodecContext* encoder = codec == nullptr ? nullptr : avcodec_alloc_context3(codec);
  if (encoder == nullptr) return kFailed;
  encoder->sample_rate = rate;
  encoder->sample_fmt = AV_SAMPLE_FMT_FLTP;
  encoder->ch_layout = AV_CHANNEL_LAYOUT_MONO;
  encoder->bit_rate = rate >= 32000 ? 96000 : rate * 3;
  if (avcodec_open2(encoder, codec, nullptr) < 0) return kFailed;
  AVFrame* frame = av_frame_alloc();
  AVPacket* packet = av_packet_alloc();
  if (frame == nullptr || packet == nullptr) return kFailed;
  frame->format = encoder->sample_fmt;
  frame->ch_layout = encoder->ch_layout;
  frame->sample_rate = rate;
  frame->nb_samples = encoder->frame_size;
  if (av_frame_get_buffer(frame, 0) < 0) return kFailed;
  const auto take = [&] {
    while (avcodec_receive_packet(encoder, packet) == 0) {
      WriteFrame(*packet, rate_index);
      av_packet_unref(packet);
    }
  };
  const auto frame_samples = static_cast<size_t>(encoder->frame_size);
  std::string held;
  std::vector<char> block(1 << 16);
  int64_t at = 0;
  const auto send = [&](size_t count) {
    if (av_frame_make_writable(frame) < 0) Leave(kFailed);
    auto* out = reinterpret_cast<float*>(frame->data[0]);
    for (size_t i = 0; i < count; ++i) {
      int16_t sample = 0;
      memcpy(&sample, held.data() + i * sizeof sample, sizeof sample);
      out[i] = static_cast<float>(sample) / 32768.0F;
    }
    frame->nb_samples = static_cast<int>(count);
    frame->pts = at;
    at += static_cast<int64_t>(count);
    if (avcodec_send_frame(encoder, frame) < 0) Leave(kFailed);
    take();
    held.erase(0, count * sizeof(int16_t));
  };
  while (const size_t got = ReadSome(block.data(), block.size())) {
    held.append(block.data(), got);
    while (held.size() >= frame_samples * sizeof(int16_t)) send(frame_samples);
  }
  if (held.size() >= sizeof(int16_t)) send(held.size() / sizeof(int16_t));
  avcodec_send_frame(encoder, nullptr);
  take();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  const int rate = argc > 2 ? std::atoi(argv[2]) : 0;
  if ((verb != "decode" && verb != "encode") || rate < 4000 || rate > 192000) {
    std::fputs("usage: portico-media decode RATE MAX_SECONDS | encode RATE\n", stderr);
    return 2;
  }
  av_log_set_level(AV_LOG_QUIET);
  const double max_seconds = argc > 3 ? std::atof(argv[3]) : 3600;
  Confine();
  Leave(verb == "decode" ? Decode(rate, max_seconds) : Encode(rate));
}
