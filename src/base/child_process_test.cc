#include "base/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

namespace portico {
namespace {

// The exit status of a shell that runs the text.
int StatusOfShell(const char* text, std::vector<std::string> withheld) {
  pid_t pid = -1;
  const int failed = StartChild(
      {.words = {"sh", "-c", text}, .more_names = {"MORE=1"}, .withheld = std::move(withheld)},
      &pid);
  if (failed != 0) return -1;
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

TEST(ChildProcessTest, AProgramHasTheEnvironmentButWhatIsWithheld) {
  setenv("PORTICO_TEST_SECRET", "s", 1);
  setenv("PORTICO_TEST_SECRET_TOO", "t", 1);
  EXPECT_EQ(StatusOfShell("test \"$PORTICO_TEST_SECRET$MORE\" = s1", {}), 0);
  EXPECT_EQ(StatusOfShell("test -z \"${PORTICO_TEST_SECRET+set}\"", {"PORTICO_TEST_SECRET"}), 0);
  EXPECT_EQ(StatusOfShell("test \"$PORTICO_TEST_SECRET_TOO\" = t", {"PORTICO_TEST_SECRET"}), 0);
  unsetenv("PORTICO_TEST_SECRET");
  unsetenv("PORTICO_TEST_SECRET_TOO");
}

}  // namespace
}  // namespace portico
