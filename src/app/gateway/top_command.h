// `portico top`: a gateway's workers, live.
#pragma once

namespace portico {

int TopCommand(int argc, char** argv);

}  // namespace portico
