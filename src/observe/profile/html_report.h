// A profile as a page that needs no network and no script, and its picture alone.
#pragma once

#include <string>

#include "observe/profile/breakdown.h"
#include "observe/profile/profile_files.h"

namespace portico::observe {

// An SVG picture: a row a request (the first kMostRows), its stretches in each stage as bars; what
// a bar is tells its title. Stages have colours.
std::string TimelinePicture(const Profile& profile, const Breakdown& breakdown);
inline constexpr size_t kMostRows = 200;

// The picture and the tables of the text report.
std::string HtmlReport(const Profile& profile, const Breakdown& breakdown);

}  // namespace portico::observe
