// Signs beside numbers that are read in another order, or otherwise, than they are written.
#pragma once

#include <string>
#include <string_view>

namespace portico::pipeline {

// Letters of Greek that stand alone have their names, as in formulas: "2πr" → "2 pi r". Further,
// "€3.50" → "3.50 euros", "€5m" → "5 million euros", "5²" → "5 squared", "10⁻³" → "10 to the power of minus 3",
// "1½" and "1 1/2" → "1 and one half", "1939–1945" → "1939 to 1945", "≠" → "is not". `text` is valid UTF-8, before
// normalization, which would make 52 of 5². Everything else stays as it is.
std::string SpellNumberSigns(std::string_view text);

}  // namespace portico::pipeline
