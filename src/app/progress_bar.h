// Progress on standard error: a bar that is redrawn on a terminal, a line of the log a quarter elsewhere; nothing where the log
// drops what is only informative.
#pragma once

#include <string>
#include <string_view>

namespace portico {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // leaves the cursor on a fresh line

  // `fraction` of `stage` is done, 0 to 1.
  void Update(std::string_view stage, double fraction);

 private:
  void Draw(int percent);
  void EndLine();

  const bool terminal_;
  std::string stage_;
  int shown_ = -1;
  bool drawn_ = false;
};

}  // namespace portico
