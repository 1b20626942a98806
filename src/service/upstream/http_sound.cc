// POST /audio/speech and /audio/transcriptions.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "media/voice_activity.h"
#include "media/wav.h"
#include "service/upstream/http_work.h"

namespace portico {
namespace {

using pipeline::AudioPart;
using pipeline::Part;
using pipeline::TextPart;

constexpr int32_t kSpeechRate = 24000;  // OpenAI's pcm
constexpr size_t kMaxTranscript = 1 << 20;

// Not to be guessed: the client's prompt lies between two of them.
std::string NewBoundary() {
  std::random_device random;
  std::string boundary = "portico-";
  for (int i = 0; i < 4; ++i) boundary += fmt::format("{:08x}", random());
  return boundary;
}

class SayWork final : public HttpWork {
 public:
  using HttpWork::HttpWork;

 private:
  void OnHead(const net::ResponseHead& head) override {
    // What is no bare samples would be noise.
    constexpr std::string_view kBare[] = {"", "audio/pcm", "audio/l16", "audio/x-pcm",
                                          "application/octet-stream"};
    std::string type(head.Header("content-type"));
    absl::AsciiStrToLower(&type);
    type.resize(std::min(type.size(), type.find(';')));
    if (std::find(std::begin(kBare), std::end(kBare), type) == std::end(kBare)) {
      return FailCall(Error(StatusCode::kUnavailable, "the pipeline's voice sent no pcm", {},
                            "upstream_failed"));
    }
    held_.clear();
    rate_ = kSpeechRate;
    int rate = 0;
    if (absl::SimpleAtoi(std::string(head.Header("x-sample-rate")), &rate) && rate >= 4000 &&
        rate <= 192000) {
      rate_ = rate;
    }
  }
  void OnBytes(std::string_view bytes) override {
    held_ += bytes;
    const size_t whole = held_.size() / sizeof(int16_t) * sizeof(int16_t);
    AudioPart audio;
    audio.sample_rate = rate_;
    audio.samples = media::SamplesFromBytes(std::string_view(held_).substr(0, whole));
    held_.erase(0, whole);
    if (!audio.samples.empty()) output_->Emit(std::move(audio));
  }
  void OnCallEnd(Status status) override {
    if (!status.ok()) return output_->End(std::move(status));
    Done();
  }

  std::string held_;  // half a sample
  int32_t rate_ = kSpeechRate;
};

class Voice final : public HttpRun<SayWork> {
 public:
  Voice(const HttpStageOptions& options, std::shared_ptr<const pipeline::Request> request,
        std::shared_ptr<pipeline::StageOutput> output, std::shared_ptr<SayWork> work)
      : HttpRun(std::move(work)),
        options_(options),
        request_(std::move(request)),
        output_(std::move(output)) {}

  Status OnPart(Part part, std::string_view) override {
    auto* text = std::get_if<TextPart>(&part);
    if (text == nullptr || text->text.empty()) return OkStatus();
    const pipeline::SpeechOptions& speech = request_->speech;
    Json body(JsonObject{{"input", std::move(text->text)}, {"response_format", "pcm"}});
    if (!options_.model.empty()) body.Set("model", options_.model);
    const std::string& voice = speech.voice.empty() ? options_.voice : speech.voice;
    if (!voice.empty()) body.Set("voice", voice);
    if (speech.speed != 1) body.Set("speed", Json(speech.speed));
    if (!request_->instructions.empty()) body.Set("instructions", Json(request_->instructions));
    if (!request_->language.empty()) body.Set("language", Json(request_->language));
    UpstreamRequest call;
    call.path = "/audio/speech";
    call.body = body.Dump();
    work_->Post(std::move(call));
    return OkStatus();
  }
  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  const HttpStageOptions& options_;
  const std::shared_ptr<const pipeline::Request> request_;
  const std::shared_ptr<pipeline::StageOutput> output_;
};

// A stretch of speech as a file of its own, or the end of a clip.
struct Stretch {
  int32_t clip = 0;
  double begin = 0;
  double end = 0;
  std::string wav;  // empty: the clip ends, after `end` seconds
};

// A number as the form has it; empty: not told.
std::string TemperatureOf(const pipeline::Request& request, std::string_view stage) {
  const Json* temperature = request.Sampling(stage, "temperature");
  if (temperature == nullptr && request.sampling.is_object()) {
    temperature = request.sampling.Find("temperature");
  }
  return temperature == nullptr ? std::string() : temperature->Dump();
}

class HearWork final : public HttpWork {
 public:
  HearWork(const HttpStageOptions& options, std::shared_ptr<UpstreamPlace> place,
           std::shared_ptr<pipeline::StageOutput> output, const pipeline::Request& request)
      : HttpWork(options, std::move(place), std::move(output)),
        model_(options.model),
        language_(request.language),
        prompt_(request.instructions),
        temperature_(TemperatureOf(request, options.stage)),
        path_(request.translate ? "/audio/translations" : "/audio/transcriptions") {}

  // Only while nothing else is heard.
  void Hear(std::deque<Stretch> stretches) {
    stretches_ = std::move(stretches);
    Next();
  }

 private:
  void Next() {
    while (!stretches_.empty() && stretches_.front().wav.empty()) {
      output_->Emit(pipeline::ClipEndPart{stretches_.front().clip, stretches_.front().end});
      stretches_.pop_front();
    }
    if (stretches_.empty()) return Done();
    UpstreamForm form;
    if (!model_.empty()) form.fields.emplace_back("model", model_);
    form.fields.emplace_back("response_format", "json");
    if (!language_.empty()) form.fields.emplace_back("language", language_);
    if (!prompt_.empty()) form.fields.emplace_back("prompt", prompt_);
    if (!temperature_.empty()) form.fields.emplace_back("temperature", temperature_);
    form.file_name = "speech.wav";
    form.file = std::move(stretches_.front().wav);
    UpstreamRequest call;
    call.path = path_;
    const std::string boundary = NewBoundary();
    call.content_type = fmt::format("multipart/form-data; boundary={}", boundary);
    call.body = FormBody(form, boundary);
    answer_.clear();
    Post(std::move(call));
  }
  void OnBytes(std::string_view bytes) override {
    answer_ += bytes.substr(0, kMaxTranscript - std::min(kMaxTranscript, answer_.size()));
  }
  void OnCallEnd(Status status) override {
    auto answer = Json::Parse(answer_);
    if (status.ok() && (!answer.ok() || answer->Find("text") == nullptr)) {
      status = Error(StatusCode::kUnavailable, "the pipeline's recognizer sent no transcript", {},
                     "upstream_failed");
    }
    if (!status.ok()) return output_->End(std::move(status));
    const Stretch heard = std::move(stretches_.front());
    stretches_.pop_front();
    if (std::string text = answer->GetString("text"); !text.empty()) {
      output_->Emit(pipeline::HeardPart{heard.clip, std::move(text), heard.begin, heard.end, {}});
    }
    Next();
  }

  const std::string model_;
  const std::string language_;
  const std::string prompt_;
  const std::string temperature_;
  const std::string path_;
  std::deque<Stretch> stretches_;
  std::string answer_;
};

class Ears final : public HttpRun<HearWork> {
 public:
  Ears(const HttpStageOptions& options, std::shared_ptr<pipeline::StageOutput> output,
       std::shared_ptr<HearWork> work)
      : HttpRun(std::move(work)), options_(options), output_(std::move(output)) {}

  Status OnPart(Part part, std::string_view) override {
    auto* audio = std::get_if<AudioPart>(&part);
    if (audio == nullptr) {
      output_->Emit(std::move(part));
      return OkStatus();
    }
    sound_.sample_rate = audio->sample_rate;
    sound_.samples.insert(sound_.samples.end(), audio->samples.begin(), audio->samples.end());
    if (!audio->last && sound_.seconds() < 2 * options_.max_seconds) return OkStatus();
    std::deque<Stretch> stretches = Cut(audio->clip, audio->last);
    if (!stretches.empty()) work_->Hear(std::move(stretches));
    return OkStatus();
  }
  void OnInputEnd() override { output_->End(OkStatus()); }

 private:
  // Unless it is the clip's end, the last stretch waits for more.
  std::deque<Stretch> Cut(int32_t clip, bool last) {
    std::vector<media::Stretch> spoken = media::SpeechStretches(sound_, options_.max_seconds);
    auto done = static_cast<int64_t>(sound_.samples.size());
    if (!last && !spoken.empty()) {
      done = spoken.back().begin;
      spoken.pop_back();
    }
    const double rate = sound_.sample_rate;
    std::deque<Stretch> stretches;
    for (const media::Stretch& one : spoken) {
      const auto samples =
          media::SampleSpan(sound_.samples)
              .subspan(static_cast<size_t>(one.begin), static_cast<size_t>(one.end - one.begin));
      Stretch stretch;
      stretch.clip = clip;
      stretch.begin = offset_ + static_cast<double>(one.begin) / rate;
      stretch.end = offset_ + static_cast<double>(one.end) / rate;
      stretch.wav = media::WavHeader(sound_.sample_rate, static_cast<uint32_t>(samples.size() * 2));
      media::AppendBytes(samples, &stretch.wav);
      stretches.push_back(std::move(stretch));
    }
    offset_ += static_cast<double>(done) / rate;
    sound_.samples.erase(sound_.samples.begin(), sound_.samples.begin() + done);
    if (last) {
      stretches.push_back({clip, 0, offset_, {}});
      offset_ = 0;
    }
    return stretches;
  }

  const HttpStageOptions& options_;
  const std::shared_ptr<pipeline::StageOutput> output_;
  media::Sound sound_;
  double offset_ = 0;  // seconds of the clip before sound_
};

}  // namespace

std::unique_ptr<pipeline::StageRun> NewHttpVoice(const HttpStageOptions& options,
                                                 std::shared_ptr<UpstreamPlace> place,
                                                 std::shared_ptr<const pipeline::Request> request,
                                                 std::shared_ptr<pipeline::StageOutput> output) {
  auto work = std::make_shared<SayWork>(options, std::move(place), output);
  return std::make_unique<Voice>(options, std::move(request), std::move(output), std::move(work));
}

std::unique_ptr<pipeline::StageRun> NewHttpEars(const HttpStageOptions& options,
                                                std::shared_ptr<UpstreamPlace> place,
                                                std::shared_ptr<const pipeline::Request> request,
                                                std::shared_ptr<pipeline::StageOutput> output) {
  auto work = std::make_shared<HearWork>(options, std::move(place), output, *request);
  return std::make_unique<Ears>(options, std::move(output), std::move(work));
}

}  // namespace portico
