// Lines about what operators have asked of the server and got: a pause is otherwise seen only by what does not come.
#pragma once

#include <string>
#include <string_view>

#include "engine/control.h"

namespace portico {

// "generation is paused (abort)". Empty: there is no line about it.
std::string DoneText(const EngineControl& control);

// Writes the line: at most ten in each second, as anyone may ask where no key is needed. Any thread.
void LogControl(std::string_view line);

// `done`, and before it the line of the control, where that has succeeded and there is one. `model`: as in ControlEngines().
ControlDone WithLine(std::string_view model, const EngineControl& control, ControlDone done);

}  // namespace portico
