#include "engine/sglang/launch/traceback_watch.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace portico::sglang {
namespace {

std::string LastOf(std::initializer_list<std::string_view> lines) {
  TracebackWatch watch;
  for (const std::string_view line : lines) watch.Add(line);
  return watch.last();
}

TEST(TracebackWatchTest, TheLastExceptionOfALogIsFound) {
  EXPECT_EQ(LastOf({"[TP0] Scheduler hit an exception: Traceback (most recent call last):",
                    "  File \"scheduler.py\", line 1, in run", "    import sgl_kernel",
                    "ModuleNotFoundError: No module named 'sgl_kernel'",
                    "During handling of the above exception, another exception occurred:",
                    "Traceback (most recent call last):", "  File \"a.py\", line 2",
                    "torch.cuda.OutOfMemoryError: CUDA out of memory.", "Killed: bye"}),
            "torch.cuda.OutOfMemoryError: CUDA out of memory.");
  EXPECT_EQ(LastOf({"Traceback (most recent call last):", "  File \"a.py\"", "KeyboardInterrupt"}),
            "KeyboardInterrupt");
}

TEST(TracebackWatchTest, AMessageMayBeginOnTheNextLine) {
  EXPECT_EQ(LastOf({"Traceback (most recent call last):", "  File \"a.py\"", "ImportError: ",
                    "[sgl_kernel] CRITICAL: Could not load any common_ops library!",
                    "Attempted locations:"}),
            "ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!");
}

TEST(TracebackWatchTest, OtherLinesAreNoExceptions) {
  EXPECT_EQ(LastOf({"ValueError: said by a log", "", "loading"}), "");
  EXPECT_EQ(LastOf({"Traceback (most recent call last):", "[TP1] loading: 50 %", "  File \"a.py\"",
                    "loading weights", "OSError: no such file"}),
            "OSError: no such file");
}

TEST(TracebackWatchTest, ALongMessageIsCut) {
  const std::string line = "ValueError: " + std::string(10000, 'x');
  EXPECT_EQ(LastOf({"Traceback (most recent call last):", line}), line.substr(0, 300));
}

}  // namespace
}  // namespace portico::sglang
