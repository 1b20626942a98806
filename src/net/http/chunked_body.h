// Decodes a chunked body (RFC 9112, 7.1), strictly: lines end in CR LF only. Extensions and trailers are checked for
// their form and dropped. Beast's own decoder reads a quoted extension beyond its line, so that what it says depends on
// how the bytes were cut; a fuzzer found that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace portico::net {

class ChunkedBody {
 public:
  enum class State { kMore, kDone, kMalformed, kTooLarge };

  explicit ChunkedBody(size_t max_bytes) : allowed_(max_bytes) {}

  // Appends what `data` holds of the body to *body. *used counts the bytes that are done with; the rest, an unfinished
  // line, comes again at the front of the next call.
  State Feed(std::string_view data, size_t* used, std::string* body);

  // A size line with its extensions, and all trailers together.
  static constexpr size_t kMaxLine = 8 << 10;

 private:
  enum class Part : uint8_t { kSize, kData, kDataEnd, kTrailers };

  // Takes a line off *data without its end. kMore: it is not whole.
  State TakeLine(std::string_view* data, std::string_view* line);
  State OnSizeLine(std::string_view line);

  Part part_ = Part::kSize;
  size_t allowed_;
  size_t left_ = 0;  // of the chunk
  size_t trailer_bytes_ = 0;
};

}  // namespace portico::net
