"""How many parts of suites run at once: some always, more while the processors have nothing to do."""
import os
import threading
import time

# So much of the processors' time is idle, of this many seconds, where one more may start; as many seconds pass before the next one.
IDLE = 0.1
WINDOW_S = 1.5


def processors():
    """(ticks idle, ticks) of all processors so far. What waits for a disk is idle too, and what is nicer than this process yields to it."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = list(map(int, file.readline().split()[1:9]))
    return ticks[3] + ticks[4] + (ticks[1] if os.nice(0) <= 0 else 0), sum(ticks)


class Places:
    """A context that is entered by `least` threads at once, and up to `most` while the processors are idle."""

    def __init__(self, least, most, read=processors, window=WINDOW_S):
        self.least, self.most, self.read, self.window = least, most, read, window
        self.inside, self.lock, self.since, self.ticks = 0, threading.Lock(), time.monotonic(), read()

    def more(self):
        """One more of them is always let in: something else has ended."""
        with self.lock:
            self.least += 1

    def _idle(self):
        """Whether they were idle in a window that began when one was let in, or when the window before it was over."""
        if time.monotonic() - self.since < self.window:
            return False
        before, self.ticks, self.since = self.ticks, self.read(), time.monotonic()
        return self.ticks[0] - before[0] > IDLE * (self.ticks[1] - before[1])

    def enter_now(self):
        """True: one has come in, and must leave()."""
        with self.lock:
            if self.inside >= self.least and (self.inside >= self.most or not self._idle()):
                return False
            self.inside += 1
            self.since, self.ticks = time.monotonic(), self.read()
            return True

    def leave(self):
        with self.lock:
            self.inside -= 1

    def __enter__(self):
        while not self.enter_now():
            time.sleep(0.2)

    def __exit__(self, *_):
        self.leave()
