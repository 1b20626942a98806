// Measures Portico's decode of whole lists and of streams, for bench/decode/run.py.
//
//     decode_worker TOKENIZER IDS TEXTS
//
// IDS has a list of ids on each line. The answer is a line of JSON: nanoseconds of CPU time a token, medians of several
// passes. Into TEXTS goes what the streams gave, and behind it what the whole decodes did.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tokenizer/decode/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

constexpr size_t kPasses = 9;

double CpuNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

using Lists = std::vector<std::vector<TokenId>>;

// Every piece is a string of its own, as a server sends it.
std::string Streamed(const Tokenizer& tokenizer, const Lists& lists) {
  std::string all;
  std::string piece;
  for (const std::vector<TokenId>& ids : lists) {
    StreamDecoder stream(tokenizer, /*skip_special_tokens=*/false);
    for (TokenId id : ids) {
      piece.clear();
      stream.Push(id, &piece);
      all.append(piece);
    }
    stream.Flush(&all);
  }
  return all;
}

std::string Whole(const Tokenizer& tokenizer, const Lists& lists) {
  std::string all;
  for (const std::vector<TokenId>& ids : lists) all += tokenizer.Decode(ids, false);
  return all;
}

template <typename Run>
double MedianNanoseconds(Run run) {
  std::array<double, kPasses> times;
  for (double& time : times) {
    const double begin = CpuNanoseconds();
    run();
    time = CpuNanoseconds() - begin;
  }
  std::nth_element(times.begin(), times.begin() + kPasses / 2, times.end());
  return times[kPasses / 2];
}

int Main(const char* path, const char* ids_path, const char* texts_path) {
  auto tokenizer = Tokenizer::Load(path);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  Lists lists;
  size_t count = 0;
  std::ifstream file(ids_path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    std::vector<TokenId>& ids = lists.emplace_back();
    for (TokenId id = 0; numbers >> id;) ids.push_back(id);
    count += ids.size();
  }
  std::ofstream(texts_path, std::ios::binary)
      << Streamed(**tokenizer, lists) << Whole(**tokenizer, lists);
  const auto tokens = static_cast<double>(count);
  std::printf("{\"stream\":%.2f,\"whole\":%.2f}\n",
              MedianNanoseconds([&] { Streamed(**tokenizer, lists); }) / tokens,
              MedianNanoseconds([&] { Whole(**tokenizer, lists); }) / tokens);
  return 0;
}

}  // namespace
}  // namespace portico

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "decode_worker TOKENIZER IDS TEXTS\n");
    return 2;
  }
  return portico::Main(argv[1], argv[2], argv[3]);
}
