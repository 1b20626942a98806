#include "grammar/schema/formats.h"

#include <algorithm>
#include <iterator>

namespace portico::grammar {
namespace {

struct Format {
  std::string_view name;
  std::string_view pattern;
};

// Days end at 28 where the month is not looked at, and February has no 29th: a date is a valid one in every year.
#define PORTICO_DATE                                                                               \
  "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-" \
  "(0"                                                                                             \
  "[1-9]|1[0-9]|2[0-8]))"
#define PORTICO_TIME                                                                              \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-" \
  "9])"
#define PORTICO_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define PORTICO_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
// Four of them have no more than 253 characters in all.
#define PORTICO_HOST_LABEL "[a-z0-9]([a-z0-9-]{0,58}[a-z0-9])?"
#define PORTICO_HEX4 "[0-9a-fA-F]{1,4}"

constexpr Format kFormats[] = {
    {"date", "^" PORTICO_DATE "$"},
    {"date-time", "^" PORTICO_DATE "[Tt]" PORTICO_TIME "$"},
    {"duration",
     "^P((([0-9]+D|[0-9]+M([0-9]+D)?|[0-9]+Y([0-9]+M([0-9]+D)?)?)(T([0-9]+H([0-9]+M([0-9]+S)?)?|"
     "[0-9]+M([0-9]+S)?|[0-9]+S))?)|T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)|[0-9]"
     "+W)$"},
    {"email", "^[a-zA-Z0-9_%+-]+(\\.[a-zA-Z0-9_%+-]+)*@" PORTICO_LABEL "(\\." PORTICO_LABEL ")+$"},
    {"hostname", "^" PORTICO_HOST_LABEL "(\\." PORTICO_HOST_LABEL "){0,3}$"},
    {"ipv4", "^" PORTICO_BYTE "(\\." PORTICO_BYTE "){3}$"},
    {"ipv6", "^((" PORTICO_HEX4 ":){7}" PORTICO_HEX4 "|::(" PORTICO_HEX4 "(:" PORTICO_HEX4
             "){0,5})?|" PORTICO_HEX4 "::(" PORTICO_HEX4 "(:" PORTICO_HEX4 "){0,4})?)$"},
    {"json-pointer", "^(/([^/~]|~[01])*)*$"},
    {"time", "^" PORTICO_TIME "$"},
    {"uri",
     "^[a-zA-Z][a-zA-Z0-9+.-]*://[a-zA-Z0-9.-]+(:[0-9]{1,4})?(/([a-zA-Z0-9._~!$&'()*+,;=:@-]"
     "|%[0-9a-fA-F]{2})*)*(\\?([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-fA-F]{2})*)?(#([a-zA-Z0-"
     "9._~!$&'()*+,;=:@/?-]|%[0-9a-fA-F]{2})*)?$"},
    {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
};

}  // namespace

std::string_view FormatPattern(std::string_view format) {
  const auto* const found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [format](const Format& known) { return known.name == format; });
  return found == std::end(kFormats) ? std::string_view() : found->pattern;
}

bool FormatPatternIsWhole(std::string_view format) {
  return format == "duration" || format == "ipv4" || format == "json-pointer" || format == "uuid";
}

}  // namespace portico::grammar
