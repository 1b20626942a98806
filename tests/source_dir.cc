#include "base/source_dir_for_test.h"

namespace portico {

std::string SourceDir() { return PORTICO_SOURCE_DIR; }

}  // namespace portico
