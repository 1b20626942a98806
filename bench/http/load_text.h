// Requests for the load generator: chat completions whose prompts are all different, in plain English words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Whole HTTP/1.1 requests with the lines of a file as their JSON bodies. Empty for no file.
std::vector<std::string> GivenRequests(const std::string& path, const std::string& file);

class ChatRequests {
 public:
  ChatRequests(std::string model, size_t prompt_bytes, int max_tokens, bool stream);
  // A whole HTTP/1.1 request.
  std::string Next();

 private:
  void AppendPrompt(std::string* out);
  uint64_t Random();

  std::string model_;
  size_t prompt_bytes_;
  std::string tail_;
  uint64_t state_;
};
