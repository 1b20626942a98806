// Control calls: when they are sent, and who gets their replies.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "engine/sglang/link/scheduler_link.h"

namespace portico::sglang {

void SchedulerLink::Call(std::string_view message, Value fields, size_t replies, TimePoint deadline,
                         ControlAnswer done, Terms terms) {
  Control call;
  call.replies = replies;
  call.deadline = deadline;
  call.terms = terms;
  call.token = fmt::format("portico:{}", next_token_.fetch_add(1, std::memory_order_relaxed));
  Map with_token = std::move(std::get<Map>(fields.of));
  with_token.emplace_back("http_worker_ipc", call.token);
  auto frame = EncodeMessage(*codec_->schema, message, std::move(with_token));
  if (!frame.ok()) return done(frame.status());
  call.frame = *std::move(frame);
  // Shared, so that a refusal can still be told.
  auto shared = std::make_shared<ControlAnswer>(std::move(done));
  call.done = [shared](StatusOr<Replies> answer) { (*shared)(std::move(answer)); };
  std::vector<Item> items;
  items.emplace_back(std::move(call));
  if (!Post(std::move(items))) {
    (*shared)(Error(StatusCode::kUnavailable, "the engine has stopped"));
  }
}

void SchedulerLink::OnPaused(bool in_place) {
  // A pause that takes the cells ends one that does not; the other way round nothing is left in them.
  if (!in_place) {
    keeps_cells_ = false;
  } else if (!paused_) {
    keeps_cells_ = !streams_.empty();
  }
  paused_ = true;
}

void SchedulerLink::OnContinued() {
  paused_ = false;
  keeps_cells_ = false;
}

bool SchedulerLink::MustWait(const Control& call) const {
  if (call.terms.no_aborted && !aborted_.empty()) return true;
  return call.terms.no_running && !call.terms.no_wait && !streams_.empty() && !paused_;
}

bool SchedulerLink::MustWait(const Item& item) const {
  if (std::holds_alternative<Begin>(item)) return !held_.empty();
  const auto* call = std::get_if<Control>(&item);
  if (call == nullptr) return false;  // an abort
  // Calls that wait for aborts are pauses, whose order counts. One that waits for streams, perhaps for minutes, must not
  // keep a pause from being made.
  return MustWait(*call) || std::any_of(held_.begin(), held_.end(), [](const Item& held) {
           const auto* before = std::get_if<Control>(&held);
           return before != nullptr && !before->terms.no_running;
         });
}

void SchedulerLink::TakeOrHold(Item& item) {
  if (MustWait(item)) {
    held_.push_back(std::move(item));
    const auto* begin = std::get_if<Begin>(&held_.back());
    if (begin != nullptr) places_[begin->stream.id] = std::prev(held_.end());
  } else {
    std::visit([this](auto& one) { Take(one); }, item);
  }
}

void SchedulerLink::TakeHeld() {
  const auto may_go = [this](const Item& item) {
    const auto* call = std::get_if<Control>(&item);
    return call != nullptr && !MustWait(*call);
  };
  if (!held_.empty() && std::holds_alternative<Control>(held_.front()) &&
      std::none_of(held_.begin(), held_.end(), may_go)) {
    return;
  }
  Held held;
  held.swap(held_);
  for (Item& item : held) TakeOrHold(item);
}

Status SchedulerLink::Refusal(const Terms& terms) const {
  if (terms.free_cells && keeps_cells_) {
    return Error(StatusCode::kFailedPrecondition,
                 "the pause keeps requests in their KV cells; pause with the mode retract or abort "
                 "instead of in_place");
  }
  if (terms.no_running && !streams_.empty() && !paused_) {
    return Error(StatusCode::kFailedPrecondition,
                 "requests are running; wait for their end, or pause the generation first");
  }
  return OkStatus();
}

void SchedulerLink::Take(Control& item) {
  if (Status refused = Refusal(item.terms); !refused.ok()) return item.done(std::move(refused));
  Send(std::move(item.frame));
  if (item.replies == 0) return item.done(Replies{});
  std::string token = item.token;
  calls_.emplace(std::move(token), std::move(item));
}

void SchedulerLink::OnReply(Message message) {
  const Value* token = message.fields.Find("http_worker_ipc");
  const auto* text = token == nullptr ? nullptr : token->As<std::string>();
  const auto it = text == nullptr ? calls_.end() : calls_.find(*text);
  if (it == calls_.end()) return;  // its caller has given up
  it->second.got.push_back(std::move(message));
  if (it->second.got.size() < it->second.replies) return;
  Control call = std::move(it->second);
  calls_.erase(it);
  call.done(std::move(call.got));
}

void SchedulerLink::ExpireCalls(TimePoint now) {
  std::vector<Control> late;
  for (auto it = calls_.begin(); it != calls_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    late.push_back(std::move(it->second));
    calls_.erase(it++);
  }
  const auto is_late = [now](const Item& item) {
    const auto* call = std::get_if<Control>(&item);
    return call != nullptr && call->deadline <= now;
  };
  for (auto it = std::find_if(held_.begin(), held_.end(), is_late); it != held_.end();
       it = std::find_if(held_.begin(), held_.end(), is_late)) {
    late.push_back(std::get<Control>(std::move(*it)));
    held_.erase(it);
  }
  for (Control& call : late) {
    call.done(Error(StatusCode::kDeadlineExceeded, "the engine has not answered in time"));
  }
}

}  // namespace portico::sglang
