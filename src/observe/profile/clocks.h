// One time for the events of several processes and hosts.
#pragma once

#include "observe/profile/profile_files.h"

namespace portico::observe {

// Processes of one boot read the same monotonic clock: where the wall clock was set between their
// starts, they are brought to the first one's reading of it. Hosts have clocks of their own: the
// offset of a host to the gateway's is that of the exchange with the shortest way there and back
// (as NTP does it): a hop sent, the request at the worker's socket, the answer's first byte there,
// its arrival. Hosts that share no request with the gateway stay as they are.
void AlignClocks(Profile* profile);

}  // namespace portico::observe
