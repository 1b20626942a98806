// What a profile is told of one request in a pipeline: the coordinator's events, and those of the
// stages that run in this process. Stages with a process of their own tell theirs
// (process/stage_worker.cc); a part that such a stage sends is numbered there, and here when it is
// taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/events/recorder.h"
#include "pipeline/part.h"
#include "pipeline/request.h"

namespace portico::pipeline {

// The modality of a part, as events say it.
events::Label ModalityOf(const Part& part);

// Guarded by the run's mutex. Nodes are the run's; kClient is the client's end.
class RunEvents {
 public:
  static constexpr size_t kClient = SIZE_MAX;

  // The request of this thread, if it has one (events::OnThread()).
  void Begin(const Request& request);
  void AddNode(events::Label stage, bool own_process, bool terminal);

  void Admitted(size_t entry);
  // `edge`: which of the stage's edges, to `to`; `streams`: it goes on as it comes.
  void Sent(size_t node, size_t edge, size_t to, bool streams, const Part& part);
  void Took(size_t node, size_t source, const Part& part);
  void ClientTook(size_t source, const Part& part);
  void Waits(size_t node);       // for a place in the stage
  void Dispatched(size_t node);  // its work begins
  void Gathered(size_t node);    // all sources of a fan-in have ended
  void Completed(size_t node, size_t next);
  // The whole request; `from`: the stage that ended it.
  void Ended(size_t from, bool success);

 private:
  struct Node {
    events::Label label = 0;
    bool own_process = false;
    bool terminal = false;
    bool received = false;               // a part
    std::vector<int64_t> sent;           // parts, by edge
    std::vector<int64_t> received_from;  // parts, by node; the client's last
  };

  bool On();
  events::Label LabelOf(size_t node) const {
    return node == kClient ? events::kCoordinator : nodes_[node].label;
  }
  static int64_t Count(std::vector<int64_t>* counts, size_t at);

  events::Key key_ = events::kNoKey;
  bool named_ = false;
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<int64_t> taken_;  // by the client, by node
};

}  // namespace portico::pipeline
