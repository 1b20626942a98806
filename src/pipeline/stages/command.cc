// portico.command: a program that speaks. For each clause it is started anew, reads the text from
// its standard input, and writes a WAV file or raw samples, which go on while it writes. No shell
// is in between, and a text is never an argument.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_replace.h"
#include "media/wav.h"
#include "pipeline/stages/factory_arguments.h"
#include "pipeline/stages/manner.h"
#include "pipeline/stages/native_stages.h"
#include "pipeline/stages/program.h"

namespace portico::pipeline {
namespace {

constexpr double kWordsPerMinute = 175;  // what espeak-ng and others call normal
constexpr size_t kPieceSamples = 2048;
constexpr size_t kMaxHeader = 64 << 10;

struct CommandOptions {
  std::vector<std::string> words;
  std::vector<std::string> voices;
  std::string voice;
  bool wav = true;
  int32_t sample_rate = 22050;  // of raw samples
  int programs = 2;
  double max_seconds = 600;  // of sound for one clause
};

uint32_t Little(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

// 16-bit samples of one channel from a program's output as it comes.
class SampleReader {
 public:
  SampleReader(bool wav, int32_t rate) : rate_(rate), in_header_(wav) {}

  int32_t rate() const { return rate_; }

  // Appends what `bytes` complete.
  Status Feed(std::string_view bytes, media::Samples* out) {
    held_ += bytes;
    if (in_header_) {
      PORTICO_RETURN_IF_ERROR(ReadHeader());
      if (in_header_) return OkStatus();
    }
    const size_t whole = held_.size() / sizeof(int16_t) * sizeof(int16_t);
    const media::Samples samples =
        media::SamplesFromBytes(std::string_view(held_).substr(0, whole));
    out->insert(out->end(), samples.begin(), samples.end());
    held_.erase(0, whole);
    return OkStatus();
  }

 private:
  // RIFF chunks up to the samples; their sizes may be unknown (media/wav.h).
  Status ReadHeader() {
    const auto bad = [](std::string_view why) {
      return Error(StatusCode::kInternal, fmt::format("the program wrote {}", why));
    };
    if (held_.size() < 12) return OkStatus();
    if (!media::IsWav(held_)) return bad("no WAV file; `output: pcm` is for raw samples");
    size_t at = 12;
    while (at + 8 <= held_.size()) {
      const std::string_view id = std::string_view(held_).substr(at, 4);
      const size_t size = Little(held_, at + 4, 4);
      if (id == "data") {
        if (!has_format_) return bad("a WAV file without a format");
        held_.erase(0, at + 8);
        in_header_ = false;
        return OkStatus();
      }
      if (size > kMaxHeader) return bad("a WAV file whose header is too long");
      if (at + 8 + size + size % 2 > held_.size()) return OkStatus();
      if (id == "fmt " && size >= 16) {
        rate_ = static_cast<int32_t>(Little(held_, at + 12, 4));
        if (Little(held_, at + 8, 2) != 1 || Little(held_, at + 10, 2) != 1 ||
            Little(held_, at + 22, 2) != 16 || rate_ < 4000 || rate_ > 192000) {
          return bad("sound that is not one channel of 16-bit samples");
        }
        has_format_ = true;
      }
      at += 8 + size + size % 2;
    }
    return held_.size() > kMaxHeader ? bad("a WAV file without samples") : OkStatus();
  }

  int32_t rate_;
  bool in_header_;
  bool has_format_ = false;
  std::string held_;
};

class CommandRun final : public StageRun {
 public:
  CommandRun(std::shared_ptr<StageOutput> output, const CommandOptions* options,
             std::vector<std::string> words)
      : output_(std::move(output)), options_(*options), words_(std::move(words)) {}

  Status OnPart(Part part, std::string_view) override {
    const auto* text = std::get_if<TextPart>(&part);
    if (text == nullptr || text->text.empty()) return OkStatus();
    SampleReader reader(options_.wav, options_.sample_rate);
    media::Samples samples;
    Status broken;
    double seconds = 0;
    const auto send = [&] {
      AudioPart audio;
      audio.sample_rate = reader.rate();
      audio.samples = std::exchange(samples, {});
      seconds += static_cast<double>(audio.samples.size()) / reader.rate();
      return output_->Emit(std::move(audio));
    };
    ProgramEvents events;
    events.stopped = [this] { return output_->aborted(); };
    events.on_output = [&](std::string_view bytes) {
      broken = reader.Feed(bytes, &samples);
      if (!broken.ok()) return false;
      if (samples.size() >= kPieceSamples && !send()) return false;
      if (seconds <= options_.max_seconds) return true;
      broken = Error(StatusCode::kInternal,
                     fmt::format("the program spoke for more than {:g} s", options_.max_seconds));
      return false;
    };
    const Status ended = RunProgram(words_, text->text + "\n", events);
    PORTICO_RETURN_IF_ERROR(broken);
    PORTICO_RETURN_IF_ERROR(ended);
    if (!samples.empty()) send();
    return OkStatus();
  }

  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  const std::shared_ptr<StageOutput> output_;
  const CommandOptions& options_;
  const std::vector<std::string> words_;
};

class CommandStage final : public Stage {
 public:
  explicit CommandStage(CommandOptions options) : options_(std::move(options)) {
    for (const std::string& word : options_.words) {
      has_speed_ = has_speed_ || word.find("{wpm}") != std::string::npos ||
                   word.find("{speed}") != std::string::npos;
    }
  }

  Status Ready() const override { return FindProgram(options_.words[0]); }
  std::vector<std::string> Voices() const override { return options_.voices; }
  bool Answers(Task task) const override { return task == Task::kSpeech; }
  int max_running() const override { return options_.programs; }
  bool own_threads() const override { return true; }

  Status Check(const Request& request) const override {
    const std::string& voice = request.speech.voice;
    if (!voice.empty() &&
        std::find(options_.voices.begin(), options_.voices.end(), voice) == options_.voices.end()) {
      return InvalidArgument("voice", "this stage has no such voice");
    }
    PORTICO_RETURN_IF_ERROR(CheckManner(request, /*english=*/false));
    if (request.speech.speed != 1 && !has_speed_) {
      return InvalidArgument("speed", "speed: the program of this stage has only one");
    }
    return OkStatus();
  }

  std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                  std::shared_ptr<StageOutput> output) override {
    const SpeechOptions& speech = request->speech;
    const std::string wpm = fmt::format("{}", std::lround(kWordsPerMinute * speech.speed));
    const std::string speed = fmt::format("{:g}", speech.speed);
    std::vector<std::string> words;
    for (const std::string& word : options_.words) {
      words.push_back(absl::StrReplaceAll(
          word, {{"{voice}", speech.voice.empty() ? options_.voice : speech.voice},
                 {"{wpm}", wpm},
                 {"{speed}", speed}}));
    }
    return std::make_unique<CommandRun>(std::move(output), &options_, std::move(words));
  }

 private:
  const CommandOptions options_;
  bool has_speed_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<Stage>> MakeCommand(const StageConfig& config) {
  constexpr std::string_view kKeys[] = {"command",     "voices",   "voice",      "output",
                                        "sample_rate", "programs", "max_seconds"};
  PORTICO_RETURN_IF_ERROR(CheckArguments(config, kKeys));
  CommandOptions options;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "command", &options.words));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "voices", &options.voices));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "voice", &options.voice));
  if (options.words.empty()) {
    return Error(StatusCode::kInvalidArgument, "factory.command must be the words of a command");
  }
  std::string output = "wav";
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "output", &output));
  if (output != "wav" && output != "pcm") {
    return Error(StatusCode::kInvalidArgument, "factory.output must be wav or pcm");
  }
  options.wav = output == "wav";
  double rate = options.sample_rate;
  double programs = options.programs;
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "sample_rate", 4000, 192000, &rate));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "programs", 1, 256, &programs));
  PORTICO_RETURN_IF_ERROR(ReadArgument(config, "max_seconds", 1, 86400, &options.max_seconds));
  options.sample_rate = static_cast<int32_t>(rate);
  options.programs = static_cast<int>(programs);
  if (options.voice.empty() && !options.voices.empty()) options.voice = options.voices.front();
  return std::unique_ptr<Stage>(std::make_unique<CommandStage>(std::move(options)));
}

}  // namespace portico::pipeline
