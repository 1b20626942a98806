// A mask of tokens as the library takes it.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <span>

namespace portico::grammar {

// A view of `mask`, which must outlive it: one bit a token, lowest bit of the first word first.
class MaskTensor {
 public:
  explicit MaskTensor(std::span<uint32_t> mask) : words_(static_cast<int64_t>(mask.size())) {
    tensor_.data = mask.data();
    tensor_.device = {kDLCPU, 0};
    tensor_.ndim = 1;
    tensor_.dtype = {kDLInt, 32, 1};
    tensor_.shape = &words_;
  }
  MaskTensor(const MaskTensor&) = delete;
  MaskTensor& operator=(const MaskTensor&) = delete;

  DLTensor* get() { return &tensor_; }

 private:
  int64_t words_;
  DLTensor tensor_{};
};

}  // namespace portico::grammar
