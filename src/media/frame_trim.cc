#include "media/frame_trim.h"

#include <algorithm>

namespace portico::media {
namespace {

bool IsQuiet(int16_t sample) { return sample >= -FrameTrim::kQuiet && sample <= FrameTrim::kQuiet; }

}  // namespace

SampleSpan FrameTrim::Enter(SampleSpan samples) {
  total_ += samples.size();
  size_t skipped = 0;
  while (!begun_ && left_out_ < codec_.delay && skipped < samples.size()) {
    begun_ = !IsQuiet(samples[skipped]);
    if (begun_) break;
    ++skipped;
    ++left_out_;
  }
  samples = samples.subspan(skipped);
  const auto last = std::find_if_not(samples.rbegin(), samples.rend(), IsQuiet);
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
