// Constraints that go to an engine as text, which the engine compiles itself.
#pragma once

#include "base/status.h"
#include "message/constraint.h"

namespace portico {

// INVALID_ARGUMENT with the constraint's field: the text is no JSON where it has to be, is too long or too deep for a compiler that
// recurses, or the constraint says more than its text does. The engine may still refuse it.
Status CheckCarried(const Constraint& constraint);

}  // namespace portico
