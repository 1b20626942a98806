#include "pipeline/speech/flite_voice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "media/shared_library.h"

namespace portico::pipeline {
namespace {

// flite 2.x: cst_wave.h, cst_audio.h, cst_utterance.h
struct Wave {
  const char* type;
  int sample_rate;
  int num_samples;
  int num_channels;
  short* samples;
};
struct Features;
struct Value;
struct Utterance {
  Features* features;
};
struct StreamingInfo {
  int min_buffsize;
  int (*asc)(const Wave*, int start, int size, int last, StreamingInfo*);
  const Utterance* utt;
  const void* item;
  void* userdata;
};
constexpr int kStop = -1;
constexpr int kContinue = 0;
constexpr int kSliceSamples = 480;

using Synthesize = Utterance*(Utterance*);

struct FliteLibrary {
  int (*init)();
  Utterance* (*new_utterance)();
  void (*delete_utterance)(Utterance*);
  int (*set_input_text)(Utterance*, const char*);
  Utterance* (*do_synth)(Utterance*, void*, Synthesize*);
  Synthesize* synth;
  StreamingInfo* (*new_streaming_info)();
  Value* (*streaming_info_value)(StreamingInfo*);
  void (*feat_set)(Features*, const char*, const Value*);
  void (*feat_set_float)(Features*, const char*, float);
};

constexpr std::string_view kPackage = "libflite1";

StatusOr<FliteLibrary> LoadFlite() {
  PORTICO_ASSIGN_OR_RETURN(const media::SharedLibrary library,
                           media::SharedLibrary::Load("libflite.so.1", kPackage));
  FliteLibrary flite{};
  PORTICO_RETURN_IF_ERROR(library.Bind("flite_init", &flite.init));
  PORTICO_RETURN_IF_ERROR(library.Bind("new_utterance", &flite.new_utterance));
  PORTICO_RETURN_IF_ERROR(library.Bind("delete_utterance", &flite.delete_utterance));
  PORTICO_RETURN_IF_ERROR(library.Bind("utt_set_input_text", &flite.set_input_text));
  PORTICO_RETURN_IF_ERROR(library.Bind("flite_do_synth", &flite.do_synth));
  PORTICO_RETURN_IF_ERROR(library.Bind("utt_synth", &flite.synth));
  PORTICO_RETURN_IF_ERROR(library.Bind("new_audio_streaming_info", &flite.new_streaming_info));
  PORTICO_RETURN_IF_ERROR(library.Bind("audio_streaming_info_val", &flite.streaming_info_value));
  PORTICO_RETURN_IF_ERROR(library.Bind("feat_set", &flite.feat_set));
  PORTICO_RETURN_IF_ERROR(library.Bind("feat_set_float", &flite.feat_set_float));
  flite.init();
  return flite;
}

const StatusOr<FliteLibrary>& Library() {
  static const auto* library = new StatusOr<FliteLibrary>(LoadFlite());
  return *library;
}

// What the callback of one utterance works with.
struct Listener {
  absl::FunctionRef<bool(media::SampleSpan)> out;

  static int OnSlice(const Wave* wave, int start, int size, int, StreamingInfo* info) {
    if (size <= 0) return kContinue;
    const auto* self = static_cast<const Listener*>(info->userdata);
    const bool go_on =
        self->out(media::SampleSpan(wave->samples + start, static_cast<size_t>(size)));
    return go_on ? kContinue : kStop;
  }
};

}  // namespace

const std::vector<std::string>& FliteVoice::Names() {
  static const auto* names = new std::vector<std::string>{"slt", "rms", "awb", "kal16"};
  return *names;
}

StatusOr<const FliteVoice*> FliteVoice::Load(std::string_view name) {
  static Mutex mutex;
  static auto* const voices ABSL_PT_GUARDED_BY(mutex) =
      new std::map<std::string, const FliteVoice*, std::less<>>();
  const MutexLock lock(&mutex);
  if (const auto found = voices->find(name); found != voices->end()) return found->second;
  PORTICO_ASSIGN_OR_RETURN(const FliteVoice* voice, LoadNew(name));
  voices->emplace(name, voice);
  return voice;
}

StatusOr<const FliteVoice*> FliteVoice::LoadNew(std::string_view name) {
  const auto& names = Names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return InvalidArgument(
        "voice", fmt::format("there is no voice `{}`; there are {}", name, fmt::join(names, ", ")));
  }
  PORTICO_RETURN_IF_ERROR(Library().status());
  PORTICO_ASSIGN_OR_RETURN(
      const media::SharedLibrary library,
      media::SharedLibrary::Load(fmt::format("libflite_cmu_us_{}.so.1", name), kPackage));
  void* (*create)(const char*) = nullptr;
  PORTICO_RETURN_IF_ERROR(library.Bind(fmt::format("register_cmu_us_{}", name).c_str(), &create));
  auto* voice = new FliteVoice();
  voice->voice_ = create(nullptr);
  if (voice->voice_ == nullptr) {
    return Error(StatusCode::kInternal, fmt::format("the voice {} does not load", name));
  }
  return voice;
}

Status FliteVoice::Say(const std::string& text, double speed,
                       absl::FunctionRef<bool(media::SampleSpan)> out) const {
  const FliteLibrary& flite = *Library();
  Utterance* utterance = flite.new_utterance();
  if (utterance == nullptr) return Error(StatusCode::kResourceExhausted, "out of memory");
  flite.set_input_text(utterance, text.c_str());
  flite.feat_set_float(utterance->features, "duration_stretch", static_cast<float>(1 / speed));
  Listener listener{out};
  StreamingInfo* info = flite.new_streaming_info();
  info->min_buffsize = kSliceSamples;
  info->asc = Listener::OnSlice;
  info->userdata = &listener;
  // The utterance owns it from here on.
  flite.feat_set(utterance->features, "streaming_info", flite.streaming_info_value(info));
  // Null where it fails or was stopped; it has freed the utterance then.
  Utterance* said = flite.do_synth(utterance, voice_, flite.synth);
  if (said != nullptr) flite.delete_utterance(said);
  return OkStatus();
}

}  // namespace portico::pipeline
