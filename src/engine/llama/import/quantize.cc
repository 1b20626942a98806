#include "engine/llama/import/quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <vector>

#include "engine/llama/model/llama_log.h"

namespace portico::llama {
namespace {

struct Named {
  const char* name;
  llama_ftype ftype;
  double bits;  // a weight, for the progress estimate
};

// Those that need no importance matrix.
constexpr Named kQuantizations[] = {
    {"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0, 8.5},     {"q6_k", LLAMA_FTYPE_MOSTLY_Q6_K, 6.6},
    {"q5_k_m", LLAMA_FTYPE_MOSTLY_Q5_K_M, 5.7}, {"q5_k_s", LLAMA_FTYPE_MOSTLY_Q5_K_S, 5.5},
    {"q5_1", LLAMA_FTYPE_MOSTLY_Q5_1, 6.0},     {"q5_0", LLAMA_FTYPE_MOSTLY_Q5_0, 5.5},
    {"q4_k_m", LLAMA_FTYPE_MOSTLY_Q4_K_M, 4.9}, {"q4_k_s", LLAMA_FTYPE_MOSTLY_Q4_K_S, 4.6},
    {"q4_1", LLAMA_FTYPE_MOSTLY_Q4_1, 5.0},     {"q4_0", LLAMA_FTYPE_MOSTLY_Q4_0, 4.5},
    {"iq4_nl", LLAMA_FTYPE_MOSTLY_IQ4_NL, 4.5}, {"q3_k_m", LLAMA_FTYPE_MOSTLY_Q3_K_M, 3.9},
    {"q2_k", LLAMA_FTYPE_MOSTLY_Q2_K, 3.2},
};

double BitsOf(llama_ftype ftype) {
  for (const Named& named : kQuantizations) {
    if (named.ftype == ftype) return named.bits;
  }
  return 8;
}

}  // namespace

StatusOr<llama_ftype> ParseQuantization(const std::string& name) {
  std::string lower;
  for (char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> names;
  for (const Named& named : kQuantizations) {
    if (lower == named.name) return named.ftype;
    names.push_back(named.name);
  }
  return InvalidArgument("quantization",
                         fmt::format("the quantization '{}' is not known; there are {}", name,
                                     fmt::join(names, ", ")));
}

std::optional<std::string> QuantizationName(int64_t ftype) {
  for (const Named& named : kQuantizations) {
    if (named.ftype == ftype) return named.name;
  }
  return std::nullopt;
}

Status Quantize(const std::string& from, const std::string& to, llama_ftype ftype, int threads,
                const std::function<void(double)>& done) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // The source has 16 or 32 bits a weight; the estimate only moves a progress bar.
  const double expected =
      std::max(1.0, static_cast<double>(fs::file_size(from, ignored)) * BitsOf(ftype) / 16);
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = ftype;
  params.nthread = std::max(threads, 1);
  std::string errors;
  auto work = std::async(std::launch::async, [&] {
    LlamaErrors capture;
    uint32_t result = llama_model_quantize(from.c_str(), to.c_str(), &params);
    errors = capture.Text();
    return result;
  });
  while (work.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    auto size = fs::file_size(to, ignored);
    if (!ignored) done(std::min(0.99, static_cast<double>(size) / expected));
  }
  if (work.get() == 0) return OkStatus();
  return Error(StatusCode::kInternal, fmt::format("{}: quantization failed: {}", from, errors));
}

}  // namespace portico::llama
