#include "base/events/request_names.h"

#include <fmt/format.h>

#include <utility>

namespace portico::events {

void RequestNames::Name(Key key, std::string request_id) {
  if (Find(key) != nullptr) return;  // the first one stays
  Age();
  if (request_id.empty()) request_id = Made(key);
  newer_.names.emplace(key, std::move(request_id));
}

void RequestNames::LeaveOut(Key key) {
  Age();
  newer_.names.insert_or_assign(key, std::string(kLeftOut));
}

void RequestNames::Join(Key stream, Key request) {
  Age();
  newer_.joined.emplace(stream, request);
}

void RequestNames::Age() {
  if (newer_.names.size() < kKept && newer_.joined.size() < kKept) return;
  older_ = std::exchange(newer_, {});
}

template <typename Map>
const typename Map::mapped_type* RequestNames::FindIn(const Map& newer, const Map& older, Key key) {
  if (const auto at = newer.find(key); at != newer.end()) return &at->second;
  const auto at = older.find(key);
  return at == older.end() ? nullptr : &at->second;
}

Key RequestNames::RequestOf(Key key) const {
  if ((key >> 63) == 0) return key;
  const Key* request = FindIn(newer_.joined, older_.joined, key);
  return request == nullptr ? key : *request;
}

const std::string* RequestNames::Find(Key key) const {
  return FindIn(newer_.names, older_.names, RequestOf(key));
}

std::string RequestNames::Made(Key key) const {
  key = RequestOf(key);
  const bool stream = (key >> 63) != 0;
  return fmt::format("{}-{}-{}", stream ? "stream" : "request", pid_, key << 1 >> 1);
}

bool RequestNames::IsMade(std::string_view name) const {
  return name.starts_with(fmt::format("request-{}-", pid_)) ||
         name.starts_with(fmt::format("stream-{}-", pid_));
}

void WaitingLines::Release(const RequestNames& names, int64_t now, bool all, const TakeLine& take) {
  size_t too_many = lines_.size() > kMost ? lines_.size() - kMost : 0;
  std::deque<Waiting> still;
  for (Waiting& waiting : lines_) {
    if (const std::string* name = names.Find(waiting.key)) {
      if (!RequestNames::IsLeftOut(*name)) take(waiting.line, *name);
    } else if (all || too_many > 0 || now - waiting.line.nanoseconds > kPatience) {
      take(waiting.line, names.Made(waiting.key));
    } else {
      still.push_back(waiting);
      continue;
    }
    if (too_many > 0) --too_many;
  }
  lines_ = std::move(still);
}

}  // namespace portico::events
