#include "media/frame_trim.h"

#include <algorithm>
#include <cstdlib>

namespace portico::media {
namespace {

int Loudest(SampleSpan samples) {
  int loudest = 0;
  for (const int16_t sample : samples) loudest = std::max(loudest, std::abs(int{sample}));
  return loudest;
}

}  // namespace

SampleSpan FrameTrim::Enter(SampleSpan samples) {
  total_ += samples.size();
  if (begun_) {
    held_ = Samples();
    return Take(samples);
  }
  const size_t before = held_.size();
  held_.insert(held_.end(), samples.begin(), samples.end());
  const size_t known = std::min(held_.size(), codec_.delay + codec_.look);
  loudest_ = std::max(loudest_, Loudest(SampleSpan(held_).subspan(before, known - before)));
  // Quiet() only grows: what is quiet remains so.
  const size_t most = std::min(codec_.delay, known);
  while (left_out_ < most && std::abs(int{held_[left_out_]}) <= Quiet()) ++left_out_;
  const bool loud = left_out_ < known && std::abs(int{held_[left_out_]}) > kQuiet;
  if (!loud && left_out_ < codec_.delay && known < codec_.delay + codec_.look) return {};
  return Begin();
}

SampleSpan FrameTrim::Rest() { return begun_ ? SampleSpan() : Begin(); }

SampleSpan FrameTrim::Begin() {
  begun_ = true;
  return Take(SampleSpan(held_).subspan(left_out_));
}

// That the bound may be lower for samples before the loudest one changes nothing: that one is heard behind them.
SampleSpan FrameTrim::Take(SampleSpan samples) {
  loudest_ = std::max(loudest_, Loudest(samples));
  const auto last = std::find_if(samples.rbegin(), samples.rend(), [quiet = Quiet()](int sample) {
    return std::abs(sample) > quiet;
  });
  if (last != samples.rend()) {
    heard_ = total_ - left_out_ - static_cast<size_t>(last - samples.rbegin());
  }
  return samples;
}

size_t FrameTrim::Frames() const {
  const size_t nearest = (total_ + codec_.frame / 2) / codec_.frame;
  const size_t needed = heard_ == 0 ? 0 : (heard_ + codec_.delay + codec_.frame - 1) / codec_.frame;
  return std::max({nearest, needed, size_t{1}});
}

Status FrameTrim::Look(size_t from, size_t most, std::string* out) {
  for (size_t at = from; at < out->size();) {
    if (frame_left_ > 0) {
      const size_t step = std::min(frame_left_, out->size() - at);
      frame_left_ -= step;
      at += step;
      continue;
    }
    if (frames_ >= most && head_.empty()) {
      out->resize(at);
      break;
    }
    head_.push_back((*out)[at++]);
    if (head_.size() < codec_.head) continue;
    const size_t size = codec_.frame_bytes(head_);
    if (size < codec_.head) return Error(StatusCode::kInternal, "the encoder makes no frames");
    frame_left_ = size - codec_.head;
    head_.clear();
    ++frames_;
  }
  return OkStatus();
}

}  // namespace portico::media
