#include "media/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

namespace portico::media {
namespace {

constexpr double kBeta = 9;
constexpr int64_t kSideTaps = 16;   // at the lower of the two rates
constexpr double kPassBand = 0.93;  // of the lower Nyquist frequency
constexpr int64_t kMaxPhases = 512;
constexpr size_t kTrim = 8192;  // samples that are done with before they are cut away

double Bessel0(double x) {
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 40; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
    if (term < sum * 1e-12) break;
  }
  return sum;
}

double Sinc(double x) {
  if (std::abs(x) < 1e-9) return 1;
  return std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

// Two sums of four lanes: one alone would wait for each of its additions.
float DotProduct(const float* a, const float* b, int64_t count) {
  using Lanes = float __attribute__((vector_size(16)));
  constexpr int64_t kLanes = 4;
  const auto load = [](const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
  };
  Lanes even{};
  Lanes odd{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    even += load(a + i) * load(b + i);
    odd += load(a + i + kLanes) * load(b + i + kLanes);
  }
  const Lanes both = even + odd;
  float sum = (both[0] + both[2]) + (both[1] + both[3]);
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Resampler::Resampler(int32_t from, int32_t to)
    : up_(to / std::gcd(from, to)), down_(from / std::gcd(from, to)) {
  const double narrow = std::min(1.0, static_cast<double>(up_) / static_cast<double>(down_));
  half_ = static_cast<int64_t>(std::ceil(kSideTaps / narrow));
  exact_ = up_ <= kMaxPhases;
  phases_ = exact_ ? up_ : kMaxPhases;
  first_ = -half_;
  input_.assign(static_cast<size_t>(half_), 0.0F);  // silence before the beginning
  if (up_ == down_) return;
  const double cutoff = kPassBand * narrow;
  const double scale = Bessel0(kBeta);
  taps_.reserve(static_cast<size_t>((phases_ + 1) * 2 * half_));
  for (int64_t phase = 0; phase <= phases_; ++phase) {
    const double fraction = static_cast<double>(phase) / static_cast<double>(phases_);
    for (int64_t tap = -half_ + 1; tap <= half_; ++tap) {
      const double x = static_cast<double>(tap) - fraction;
      const double r = x / static_cast<double>(half_);
      const double window = std::abs(r) >= 1 ? 0 : Bessel0(kBeta * std::sqrt(1 - r * r)) / scale;
      taps_.push_back(static_cast<float>(cutoff * Sinc(cutoff * x) * window));
    }
  }
}

void Resampler::Process(SampleSpan in, Samples* out) {
  received_ += static_cast<int64_t>(in.size());
  if (up_ == down_) {
    out->insert(out->end(), in.begin(), in.end());
    return;
  }
  input_.reserve(input_.size() + in.size());
  for (const int16_t sample : in) input_.push_back(static_cast<float>(sample));
  // An output at position p needs the inputs up to floor(p) + half_.
  const int64_t last = received_ - 1 - half_;
  if (last < 0) return;
  Produce(out, (last + 1) * up_ / down_ + (((last + 1) * up_) % down_ != 0 ? 1 : 0));
}

void Resampler::Finish(Samples* out) {
  if (up_ == down_) return;
  input_.insert(input_.end(), static_cast<size_t>(half_ + 1), 0.0F);
  Produce(out, (received_ * up_ + down_ / 2) / down_);
}

// Output samples up to `limit`, not included.
void Resampler::Produce(Samples* out, int64_t limit) {
  if (limit > produced_) out->reserve(out->size() + static_cast<size_t>(limit - produced_));
  const int64_t whole_step = down_ / up_;
  const int64_t fraction_step = down_ % up_;
  for (; produced_ < limit; ++produced_) {
    const int64_t scaled = exact_ ? fraction_ : fraction_ * phases_ / up_;
    const float* in = input_.data() + (whole_ - half_ + 1 - first_);
    const float* taps = taps_.data() + scaled * 2 * half_;
    float sum = DotProduct(in, taps, 2 * half_);
    if (!exact_) {
      const float between = static_cast<float>(fraction_ * phases_ % up_) / static_cast<float>(up_);
      sum += (DotProduct(in, taps + 2 * half_, 2 * half_) - sum) * between;
    }
    out->push_back(ToSample(sum / 32768.0F));
    whole_ += whole_step;
    fraction_ += fraction_step;
    if (fraction_ >= up_) {
      fraction_ -= up_;
      ++whole_;
    }
  }
  const int64_t done = whole_ - half_ - first_;
  if (done > static_cast<int64_t>(kTrim)) {
    input_.erase(input_.begin(), input_.begin() + done);
    first_ += done;
  }
}

Sound Resample(Sound sound, int32_t to) {
  if (sound.sample_rate == to) return sound;
  Resampler resampler(sound.sample_rate, to);
  Sound out;
  out.sample_rate = to;
  resampler.Process(sound.samples, &out.samples);
  resampler.Finish(&out.samples);
  return out;
}

}  // namespace portico::media
