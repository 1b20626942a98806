// When the sound of an answer came, for a listener who plays it from its first piece on.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"

namespace portico::pipeline {

// What AudioTimes reports to, of one kind of request.
struct AudioMetrics {
  AudioMetrics(Registry* registry, std::string_view task);

  Histogram& first;     // seconds from the request to its first sound
  Histogram& factor;    // real-time factor: seconds of work for a second of sound
  Histogram& underrun;  // seconds of silence that the listener hears, of a whole answer
};

// Of one answer. One thread at a time.
class AudioTimes {
 public:
  explicit AudioTimes(TimePoint asked) : asked_(asked) {}

  // A piece has been made. `seconds`: of sound in it; what is not a sensible length counts as 0.
  void Came(TimePoint now, double seconds);
  // The client has not read for so long; that is no fault of the pipeline.
  void Paused(Duration time);
  // Once, at the end; `whole`: the answer did not break off. Where no piece told its length, only
  // the time to the first one is reported.
  void Report(bool whole, AudioMetrics* metrics) const;

 private:
  const TimePoint asked_;
  std::optional<TimePoint> first_;
  TimePoint last_{};
  TimePoint played_{};  // when the listener has played all that came
  Duration paused_ = Duration::zero();
  double silence_ = 0;
  double sound_ = 0;
};

}  // namespace portico::pipeline
