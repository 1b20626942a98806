// A line on a terminal that is not ended yet: a progress bar. The log begins its next message on a fresh line.
#pragma once

namespace portico {

// Standard error's last line is open, or is not any more. Thread safe.
void NoteOpenLine(bool open);

}  // namespace portico
