// One stream of messages to any number of clients, each at its own pace.

#ifndef RUNTIME_SERVER_BROADCAST_H_
#define RUNTIME_SERVER_BROADCAST_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace folio {

// Each watcher has a queue of at most `capacity` messages; when it is full, the
// oldest is dropped. So nobody ever waits for a watcher, and a capacity of 1
// means: the latest only. Thread-safe.
template <typename Message>
class Broadcast {
 public:
  // Called before a message is written: so many were dropped just before it.
  using NoteDropped = std::function<void(Message&, int64_t num_dropped)>;

  // With `initial`, each new watcher starts with the message that was published
  // last, `initial` at first. Without `note_dropped`, nobody is told.
  Broadcast(size_t capacity, std::optional<Message> initial,
            NoteDropped note_dropped = nullptr)
      : capacity_(capacity), note_dropped_(std::move(note_dropped)) {
    if (initial.has_value()) {
      latest_ = std::make_shared<const Message>(*std::move(initial));
    }
  }

  // A new watcher, to be returned to gRPC, which owns it. Its client gets the
  // initial metadata at once, and then every message that is published after
  // they were sent. The broadcast must outlive it.
  grpc::ServerWriteReactor<Message>* Watch();

  void Publish(Message message);

  // Ends all watchers with `status` when their queues are empty; those that
  // come later, at once.
  void Close(const grpc::Status& status);

  bool has_watchers() const {
    std::lock_guard lock(mutex_);
    return !watchers_.empty();
  }

 private:
  class Watcher;
  enum class Action { kNone, kWrite, kFinish };
  struct Due {
    std::shared_ptr<Watcher> watcher;
    Action action;
  };

  // Need mutex_: updates every watcher, and returns what is due then. It must
  // be done after the lock is gone, because gRPC may call back at once.
  template <typename Update>
  std::vector<Due> UpdateAll(const Update& update);
  static void Act(const std::vector<Due>& due) {
    for (const Due& entry : due) entry.watcher->Act(entry.action);
  }

  const size_t capacity_;
  const NoteDropped note_dropped_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, as is the state of every watcher.
  std::shared_ptr<const Message> latest_;  // Null: watchers start with nothing.
  std::optional<grpc::Status> closed_;
  absl::flat_hash_map<Watcher*, std::shared_ptr<Watcher>> watchers_;
};

template <typename Message>
class Broadcast<Message>::Watcher final
    : public grpc::ServerWriteReactor<Message> {
 public:
  explicit Watcher(Broadcast* broadcast) : broadcast_(broadcast) {}

  // These three need the broadcast's lock.

  void Push(std::shared_ptr<const Message> message) {
    if (end_.has_value()) return;
    if (queue_.size() == broadcast_->capacity_) {
      queue_.pop_front();
      ++num_dropped_;
    }
    queue_.push_back(std::move(message));
  }

  void End(const grpc::Status& status) {
    if (!end_.has_value()) end_ = status;
  }

  Action NextAction() {
    if (is_busy_) return Action::kNone;
    if (queue_.empty() && !end_.has_value()) return Action::kNone;
    is_busy_ = true;
    if (queue_.empty()) return Action::kFinish;
    in_flight_ = *queue_.front();
    queue_.pop_front();
    const int64_t num_dropped = std::exchange(num_dropped_, 0);
    if (broadcast_->note_dropped_) {
      broadcast_->note_dropped_(in_flight_, num_dropped);
    }
    return Action::kWrite;
  }

  // This one must not have it.
  void Act(Action action) {
    if (action == Action::kWrite) this->StartWrite(&in_flight_);
    if (action == Action::kFinish) this->Finish(*end_);
  }

  void OnSendInitialMetadataDone(bool /*ok*/) override { GoOn(); }

  void OnWriteDone(bool /*ok*/) override { GoOn(); }

  void OnCancel() override {
    Action action;
    {
      std::lock_guard lock(broadcast_->mutex_);
      queue_.clear();
      End(grpc::Status(grpc::StatusCode::CANCELLED, "the client cancelled"));
      action = NextAction();
    }
    Act(action);
  }

  void OnDone() override {
    std::shared_ptr<Watcher> self;  // Destroyed after the lock is gone.
    std::lock_guard lock(broadcast_->mutex_);
    const auto entry = broadcast_->watchers_.find(this);
    self = std::move(entry->second);
    broadcast_->watchers_.erase(entry);
  }

 private:
  void GoOn() {
    Action action;
    {
      std::lock_guard lock(broadcast_->mutex_);
      is_busy_ = false;
      action = NextAction();
    }
    Act(action);
  }

  Broadcast* const broadcast_;
  // Guarded by broadcast_->mutex_.
  std::deque<std::shared_ptr<const Message>> queue_;
  int64_t num_dropped_ = 0;  // Before queue_.front(), since the last write.
  // Sending the initial metadata at first, writing or, finally, finished.
  bool is_busy_ = true;

  // Written under the lock, and left alone while gRPC uses them.
  Message in_flight_;
  std::optional<grpc::Status> end_;
};

template <typename Message>
grpc::ServerWriteReactor<Message>* Broadcast<Message>::Watch() {
  const auto watcher = std::make_shared<Watcher>(this);
  {
    std::lock_guard lock(mutex_);
    watchers_.emplace(watcher.get(), watcher);
    if (latest_ != nullptr) watcher->Push(latest_);
    if (closed_.has_value()) watcher->End(*closed_);
  }
  // Only now: a client that has them relies on being a watcher.
  watcher->StartSendInitialMetadata();
  return watcher.get();
}

template <typename Message>
template <typename Update>
std::vector<typename Broadcast<Message>::Due> Broadcast<Message>::UpdateAll(
    const Update& update) {
  std::vector<Due> due;
  for (const auto& [unused, watcher] : watchers_) {
    update(*watcher);
    due.push_back({.watcher = watcher, .action = watcher->NextAction()});
  }
  return due;
}

template <typename Message>
void Broadcast<Message>::Publish(Message message) {
  const auto shared = std::make_shared<const Message>(std::move(message));
  std::vector<Due> due;
  {
    std::lock_guard lock(mutex_);
    if (latest_ != nullptr) latest_ = shared;
    due = UpdateAll([&](Watcher& watcher) { watcher.Push(shared); });
  }
  Act(due);
}

template <typename Message>
void Broadcast<Message>::Close(const grpc::Status& status) {
  std::vector<Due> due;
  {
    std::lock_guard lock(mutex_);
    closed_ = status;
    due = UpdateAll([&](Watcher& watcher) { watcher.End(status); });
  }
  Act(due);
}

}  // namespace folio

#endif  // RUNTIME_SERVER_BROADCAST_H_
