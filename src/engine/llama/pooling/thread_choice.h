// With how many threads a batch that is alone is computed: all, or one. Threads that compute a batch together wait for
// each other, spinning, some hundred times. On an idle machine that costs little; on a busy one each wait may last until
// the scheduler lets a preempted thread go on: texts of 12 tokens on two busy cores took 150 ms with two threads and
// 20 ms with one. So the faster of the two is taken, as batches show it, and the other tried now and then: a single
// thread ever more seldom, unless all together become slower.
//
// Pure policy: no clock, no thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace portico::llama {

class ThreadChoice {
 public:
  explicit ThreadChoice(int32_t all) : all_(all) {}

  // Of the next batch.
  int32_t threads() const { return one_is_next_ ? 1 : all_; }

  // What the batch took for each of its tokens, with threads().
  void Took(double seconds) {
    double& estimate = one_is_next_ ? one_ : together_;
    // Who was slow and is fast now is believed sooner: it is not tried often.
    estimate += (seconds - estimate) * (estimate == 0 ? 1 : seconds < estimate ? 0.5 : 0.25);
    const bool one_is_faster = one_ > 0 && one_ < together_;
    if (one_is_faster != one_is_faster_) {
      interval_ = kLeastInterval;
      together_when_tried_ = 0;
    }
    if (!one_is_faster && together_ > kSlower * together_when_tried_) {
      interval_ = kLeastInterval;
      together_when_tried_ = together_;
    }
    one_is_faster_ = one_is_faster;
    one_is_next_ = one_is_faster;
    if (++batches_ < interval_) return;
    batches_ = 0;
    interval_ = std::min(2 * interval_, one_is_faster ? kGreatestInterval : INT32_MAX / 2);
    one_is_next_ = !one_is_next_;
  }

 private:
  static constexpr int32_t kLeastInterval = 8;
  static constexpr int32_t kGreatestInterval = 256;  // while one is faster
  static constexpr double kSlower = 1.25;

  const int32_t all_;
  double one_ = 0, together_ = 0;   // estimates; 0: not tried
  double together_when_tried_ = 0;  // the slowest at which one was tried
  bool one_is_faster_ = false;
  bool one_is_next_ = false;
  int32_t batches_ = 0;  // since the other was tried
  int32_t interval_ = kLeastInterval;
};

}  // namespace portico::llama
