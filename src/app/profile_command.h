// `portico profile`: profiles a server for a while, or reads a profile's folder, and writes reports.
#pragma once

namespace portico {

int ProfileCommand(int argc, char** argv);

}  // namespace portico
