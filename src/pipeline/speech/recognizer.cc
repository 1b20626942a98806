#include "pipeline/speech/recognizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "absl/strings/ascii.h"
#include "media/shared_library.h"
#include "pipeline/speech/jsgf_bounds.h"

namespace portico::pipeline {
namespace {

struct Decoder;
struct CommandLine;
struct FrontEnd;
struct Segment;

struct SphinxLibrary {
  CommandLine* (*cmd_ln_init)(CommandLine*, const void*, int32_t, ...);
  CommandLine* (*cmd_ln_parse_file)(CommandLine*, const void*, const char*, int32_t strict);
  void (*cmd_ln_set)(CommandLine*, const char* name, const char* value);
  int (*cmd_ln_free)(CommandLine*);
  void (*set_log)(FILE*);
  const void* (*args)();
  Decoder* (*init)(CommandLine*);
  int (*free)(Decoder*);
  int (*start_stream)(Decoder*);
  int (*start)(Decoder*);
  FrontEnd* (*front_end)(Decoder*);
  int (*front_size)(FrontEnd*);
  int (*front_start)(FrontEnd*);
  int (*front_process)(FrontEnd*, const int16_t**, size_t*, float**, int32_t* frames, int32_t*);
  int32_t (*front_end_utterance)(FrontEnd*, float*, int32_t* frames);
  int (*process)(Decoder*, float**, int frames, int no_search, int full_utterance);
  int (*end)(Decoder*);
  Segment* (*segments)(Decoder*);
  Segment* (*next_segment)(Segment*);
  const char* (*segment_word)(Segment*);
  void (*segment_frames)(Segment*, int*, int*);
  int (*set_jsgf)(Decoder*, const char* name, const char* jsgf);
  int (*set_search)(Decoder*, const char* name);
  const char* (*get_search)(Decoder*);
  int (*unset_search)(Decoder*, const char* name);
};

constexpr char kModel[] = "/usr/share/pocketsphinx/model/en-us";
constexpr char kGrammar[] = "grammar";
constexpr double kFramesPerSecond = 100;
// What is searched between two questions whether to stop.
constexpr size_t kPieceFrames = 5;
// To end an utterance of so many takes some 50 ms; to load a recognizer, 250.
constexpr size_t kCheapFrames = 200;
// Frames beside one that its features depend on.
constexpr size_t kFeatureWindow = 3;

StatusOr<SphinxLibrary> LoadSphinx() {
  // The package of the second depends on that of the first.
  PORTICO_ASSIGN_OR_RETURN(const media::SharedLibrary base,
                           media::SharedLibrary::Load("libsphinxbase.so.3", "libpocketsphinx3"));
  PORTICO_ASSIGN_OR_RETURN(const media::SharedLibrary library,
                           media::SharedLibrary::Load("libpocketsphinx.so.3", "libpocketsphinx3"));
  SphinxLibrary sphinx{};
  PORTICO_RETURN_IF_ERROR(base.Bind("cmd_ln_init", &sphinx.cmd_ln_init));
  PORTICO_RETURN_IF_ERROR(base.Bind("cmd_ln_parse_file_r", &sphinx.cmd_ln_parse_file));
  PORTICO_RETURN_IF_ERROR(base.Bind("cmd_ln_set_str_r", &sphinx.cmd_ln_set));
  PORTICO_RETURN_IF_ERROR(base.Bind("cmd_ln_free_r", &sphinx.cmd_ln_free));
  PORTICO_RETURN_IF_ERROR(base.Bind("fe_get_output_size", &sphinx.front_size));
  PORTICO_RETURN_IF_ERROR(base.Bind("fe_start_utt", &sphinx.front_start));
  PORTICO_RETURN_IF_ERROR(base.Bind("fe_process_frames", &sphinx.front_process));
  PORTICO_RETURN_IF_ERROR(base.Bind("fe_end_utt", &sphinx.front_end_utterance));
  PORTICO_RETURN_IF_ERROR(base.Bind("err_set_logfp", &sphinx.set_log));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_args", &sphinx.args));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_init", &sphinx.init));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_free", &sphinx.free));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_start_stream", &sphinx.start_stream));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_start_utt", &sphinx.start));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_get_fe", &sphinx.front_end));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_process_cep", &sphinx.process));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_end_utt", &sphinx.end));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_seg_iter", &sphinx.segments));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_seg_next", &sphinx.next_segment));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_seg_word", &sphinx.segment_word));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_seg_frames", &sphinx.segment_frames));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_set_jsgf_string", &sphinx.set_jsgf));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_set_search", &sphinx.set_search));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_get_search", &sphinx.get_search));
  PORTICO_RETURN_IF_ERROR(library.Bind("ps_unset_search", &sphinx.unset_search));
  sphinx.set_log(nullptr);
  return sphinx;
}

const StatusOr<SphinxLibrary>& Library() {
  static const auto* library = new StatusOr<SphinxLibrary>(LoadSphinx());
  return *library;
}

// "read(2)", the second way to say it, is the word "read".
std::string_view BareWord(std::string_view word) {
  const size_t variant = word.find('(');
  return variant == 0 ? word : word.substr(0, variant);
}

// Silence and noises: "<sil>", "[NOISE]", "++BREATH++"; a grammar's steps without a word: "(NULL)".
bool IsFiller(std::string_view word) {
  return word.empty() || word[0] == '<' || word[0] == '[' || word[0] == '(' ||
         word.starts_with("++");
}

// The features of an utterance before their mean is taken away; `rows` points into `values`.
struct Cepstra {
  std::vector<float> values;
  std::vector<float*> rows;
};

// As the model's `-cmn batch` has it: PocketSphinx itself does so only where it is given an utterance
// as a whole, which it then searches without a pause.
void TakeMeanAway(size_t size, Cepstra* cepstra) {
  std::vector<float> mean(size);
  size_t counted = 0;
  for (const float* row : cepstra->rows) {
    if (row[0] < 0) continue;  // no energy
    for (size_t i = 0; i < size; ++i) mean[i] += row[i];
    ++counted;
  }
  for (float& value : mean) value /= static_cast<float>(std::max<size_t>(counted, 1));
  for (float* row : cepstra->rows) {
    for (size_t i = 0; i < size; ++i) row[i] -= mean[i];
  }
}

class SphinxRecognizer final : public Recognizer {
 public:
  explicit SphinxRecognizer(const SphinxLibrary& library) : sphinx_(library) {}
  ~SphinxRecognizer() override {
    if (decoder_ != nullptr) sphinx_.free(decoder_);
    if (config_ != nullptr) sphinx_.cmd_ln_free(config_);
  }

  Status Init() {
    const std::string model(kModel);
    const std::string acoustic = model + "/en-us";
    const std::string language = model + "/en-us.lm.bin";
    const std::string words = model + "/cmudict-en-us.dict";
    const std::string features = acoustic + "/feat.params";
    // The model's parameters, but for the mean, which is taken away here. The search does not look ahead by phonemes: that
    // saves a third of the time, and drops words that were said (docs/omni.md has the figures).
    config_ = sphinx_.cmd_ln_init(nullptr, sphinx_.args(), 1, "-hmm", acoustic.c_str(), "-lm",
                                  language.c_str(), "-dict", words.c_str(), "-pl_window", "0",
                                  "-featparams", "/dev/null", nullptr);
    if (config_ != nullptr &&
        sphinx_.cmd_ln_parse_file(config_, sphinx_.args(), features.c_str(), 0) != nullptr) {
      sphinx_.cmd_ln_set(config_, "-cmn", "none");
      decoder_ = sphinx_.init(config_);
    }
    if (decoder_ == nullptr) {
      return Error(StatusCode::kUnavailable,
                   fmt::format("PocketSphinx cannot load its model at {}", kModel));
    }
    language_search_ = sphinx_.get_search(decoder_);
    return OkStatus();
  }

  Status SetGrammar(const std::string& jsgf) override {
    if (jsgf == grammar_) return OkStatus();
    if (jsgf.empty()) {
      if (sphinx_.set_search(decoder_, language_search_.c_str()) != 0) return Lost();
      sphinx_.unset_search(decoder_, kGrammar);
    } else {
      PORTICO_ASSIGN_OR_RETURN(const std::string bounded, BoundedJsgf(jsgf));
      if (sphinx_.set_jsgf(decoder_, kGrammar, bounded.c_str()) != 0) {
        return InvalidArgument(
            "stage_params", "the grammar is not a JSGF grammar of words in the model's dictionary");
      }
      if (sphinx_.set_search(decoder_, kGrammar) != 0) return Lost();
    }
    grammar_ = jsgf;
    return OkStatus();
  }

  StatusOr<Heard> Hear(media::SampleSpan samples, absl::FunctionRef<bool()> stop) override {
    usable_ = false;
    sphinx_.start_stream(decoder_);
    PORTICO_ASSIGN_OR_RETURN(Cepstra cepstra, Features(samples));
    if (sphinx_.start(decoder_) != 0) return Failed();
    const size_t frames = cepstra.rows.size();
    size_t searched = 0;
    bool stopped = false;
    while (searched < frames && !(stopped = stop())) {
      const size_t piece = std::min(kPieceFrames, frames - searched);
      float** rows = cepstra.rows.data() + searched;
      if (sphinx_.process(decoder_, rows, static_cast<int>(piece), 0, 0) < 0) return Failed();
      searched += piece;
    }
    if (stopped && searched > kCheapFrames) return Stopped();
    if (sphinx_.end(decoder_) < 0) return Failed();
    usable_ = true;
    if (stopped) return Stopped();
    Heard heard;
    for (Segment* at = sphinx_.segments(decoder_); at != nullptr; at = sphinx_.next_segment(at)) {
      const std::string_view word = sphinx_.segment_word(at);
      if (IsFiller(word)) continue;
      int first = 0;
      int last = 0;
      sphinx_.segment_frames(at, &first, &last);
      heard.words.push_back(
          {std::string(BareWord(word)), first / kFramesPerSecond, (last + 1) / kFramesPerSecond});
    }
    return heard;
  }

  bool usable() const override { return usable_ && !lost_; }

 private:
  StatusOr<Cepstra> Features(media::SampleSpan samples) {
    FrontEnd* front = sphinx_.front_end(decoder_);
    const auto size = static_cast<size_t>(sphinx_.front_size(front));
    const int16_t* at = samples.data();
    size_t left = samples.size();
    int32_t most = 0, tail = 0;
    if (sphinx_.front_start(front) < 0 ||
        sphinx_.front_process(front, nullptr, &left, nullptr, &most, nullptr) < 0) {
      return Failed();
    }
    Cepstra cepstra;
    int32_t frames = most;
    cepstra.values.resize((static_cast<size_t>(most) + 1 + kFeatureWindow) * size);
    for (size_t i = 0; i < cepstra.values.size(); i += size) {
      cepstra.rows.push_back(cepstra.values.data() + i);
    }
    left = samples.size();
    if (sphinx_.front_process(front, &at, &left, cepstra.rows.data(), &frames, nullptr) < 0 ||
        frames < 0 || frames > most) {
      return Failed();
    }
    sphinx_.front_end_utterance(front, cepstra.rows[static_cast<size_t>(frames)], &tail);
    cepstra.rows.resize(static_cast<size_t>(frames + tail));
    TakeMeanAway(size, &cepstra);
    if (cepstra.rows.empty()) return cepstra;
    // The last frame stands for those behind it, as the first does for those before it.
    cepstra.rows.resize(cepstra.rows.size() + kFeatureWindow, cepstra.rows.back());
    return cepstra;
  }

  static Status Stopped() { return Error(StatusCode::kCancelled, "nobody waits for the text"); }
  Status Lost() {
    lost_ = true;
    return Failed();
  }
  static Status Failed() { return Error(StatusCode::kInternal, "the recognizer failed"); }

  const SphinxLibrary& sphinx_;
  CommandLine* config_ = nullptr;
  Decoder* decoder_ = nullptr;
  std::string language_search_;
  std::string grammar_;
  bool usable_ = true;
  bool lost_ = false;  // it may search with another grammar than `grammar_`
};

}  // namespace

Status Recognizer::Installed() {
  std::string fault(MessageOf(Library().status()));
  std::error_code ignored;
  if (!std::filesystem::exists(fmt::format("{}/en-us.lm.bin", kModel), ignored)) {
    fault += fmt::format("{}{} is not there (Debian package pocketsphinx-en-us)",
                         fault.empty() ? "" : "; ", kModel);
  }
  return fault.empty() ? OkStatus() : Error(StatusCode::kUnavailable, std::move(fault));
}

StatusOr<std::unique_ptr<Recognizer>> Recognizer::Load() {
  PORTICO_RETURN_IF_ERROR(Installed());
  auto recognizer = std::make_unique<SphinxRecognizer>(*Library());
  PORTICO_RETURN_IF_ERROR(recognizer->Init());
  return std::unique_ptr<Recognizer>(std::move(recognizer));
}

}  // namespace portico::pipeline
