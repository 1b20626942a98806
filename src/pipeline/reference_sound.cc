#include "pipeline/reference_sound.h"

#include <string_view>

namespace portico::pipeline {

StatusOr<std::shared_ptr<const Blob>> ReferenceSound::Shared() const {
  const MutexLock lock(&mutex_);
  if (shared_ == nullptr) {
    const std::string_view bytes(reinterpret_cast<const char*>(samples.data()),
                                 samples.size() * sizeof(int16_t));
    PORTICO_ASSIGN_OR_RETURN(shared_, Blob::Share(bytes));
  }
  return shared_;
}

}  // namespace portico::pipeline
