// The prompts of a cell of bench/tokenizer, as run.py writes them.
#pragma once

#include <cstddef>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>
#include <vector>

namespace portico {

struct Cell {
  size_t passes = 0;
  std::vector<std::string> prompts;
};

// A line with the number of passes and the prompts' lengths, then the prompts.
inline Cell ReadCell(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head;
  std::getline(in, head);
  std::istringstream fields(head);
  Cell cell;
  fields >> cell.passes;
  for (size_t length; fields >> length;) cell.prompts.emplace_back(length, '\0');
  for (std::string& p : cell.prompts) in.read(p.data(), static_cast<std::streamsize>(p.size()));
  return cell;
}

}  // namespace portico
