// How many bytes the constraint of a request may have. They are counted before they are written: tags may repeat schemas, so that
// a short request could make a constraint of any length, only to be refused for it.
#pragma once

#include <cstddef>

namespace portico {

class TagBudget {
 public:
  explicit TagBudget(size_t bytes) : left_(bytes), work_(4 * bytes) {}

  // False from the first time on that fewer are left.
  bool Take(size_t bytes) { return Spend(bytes, &left_); }
  // For bytes that are looked at and not written, of which there are more.
  bool Look(size_t bytes) { return Spend(bytes, &work_); }
  bool spent() const { return spent_; }

 private:
  bool Spend(size_t bytes, size_t* left) {
    spent_ = spent_ || bytes > *left;
    if (!spent_) *left -= bytes;
    return !spent_;
  }

  size_t left_;
  size_t work_;
  bool spent_ = false;
};

// The longest text that grammars are compiled from here (--grammar-text-bytes). Set before the first request, for all models.
void SetMaxTagBytes(size_t bytes);
size_t MaxTagBytes();

}  // namespace portico
