#include "net/loop/timer_queue.h"

#include <utility>

namespace portico::net {

class TimerQueue::Node final : public Shard::Timer {
 public:
  Node(TimerQueue* owner, TimePoint when, Shard::Task what)
      : queue(owner), due(when), task(std::move(what)) {}
  ~Node() override {
    if (queue != nullptr) queue->Remove(place);
  }

  TimerQueue* queue;  // null once it has run or the queue is gone
  TimePoint due;
  size_t place = 0;
  Shard::Task task;
};

TimerQueue::~TimerQueue() {
  for (Node* node : heap_) node->queue = nullptr;
}

std::unique_ptr<Shard::Timer> TimerQueue::Add(TimePoint due, Shard::Task task) {
  auto node = std::make_unique<Node>(this, due, std::move(task));
  heap_.push_back(node.get());
  Place(node.get(), heap_.size() - 1);
  Up(node->place);
  return node;
}

void TimerQueue::RunDue(TimePoint now) {
  while (!heap_.empty() && heap_.front()->due <= now) {
    Node* node = heap_.front();
    // One at a time: a task may cancel the next, which is then no longer in the heap.
    Remove(0);
    node->queue = nullptr;
    Shard::Task task = std::move(node->task);
    task();
  }
}

TimePoint TimerQueue::earliest() const { return heap_.front()->due; }

void TimerQueue::Remove(size_t place) {
  Node* last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  Place(last, place);
  Up(place);
  Down(last->place);
}

void TimerQueue::Place(Node* node, size_t place) {
  heap_[place] = node;
  node->place = place;
}

void TimerQueue::Up(size_t place) {
  Node* node = heap_[place];
  while (place > 0) {
    size_t parent = (place - 1) / 2;
    if (heap_[parent]->due <= node->due) break;
    Place(heap_[parent], place);
    place = parent;
  }
  Place(node, place);
}

void TimerQueue::Down(size_t place) {
  Node* node = heap_[place];
  for (;;) {
    size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->due < heap_[child]->due) ++child;
    if (node->due <= heap_[child]->due) break;
    Place(heap_[child], place);
    place = child;
  }
  Place(node, place);
}

}  // namespace portico::net
