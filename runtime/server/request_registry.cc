#include "runtime/server/request_registry.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/quoted.h"

namespace folio {

absl::StatusOr<std::string> RequestRegistry::Add(RequestId id,
                                                 RequestFacts facts) {
  std::lock_guard lock(mutex_);
  if (!accepting_) return StatusOfFinish(FinishReason::kShutdown);
  if (facts.name.empty()) {
    facts.name = absl::StrCat("request-", static_cast<uint64_t>(id));
    // A client may have thought of the same.
    while (by_name_.contains({facts.tenant, facts.name})) facts.name += "+";
  }
  std::string name = facts.name;
  if (!by_name_.emplace(Name(facts.tenant, name), id).second) {
    return absl::AlreadyExistsError(absl::StrCat(
        "request_id is ", Quoted(name),
        "; a request of this tenant with that id has not ended. Choose another "
        "one, or leave the field empty"));
  }
  const bool is_new = live_.emplace(id, Live{.facts = std::move(facts)}).second;
  CHECK(is_new) << "request id used twice";
  return name;
}

void RequestRegistry::SetSink(RequestId id, EventSink* sink) {
  std::lock_guard lock(mutex_);
  live_.find(id)->second.sink = sink;
}

EventSink* RequestRegistry::Find(RequestId id) const {
  std::lock_guard lock(mutex_);
  const auto entry = live_.find(id);
  CHECK(entry != live_.end()) << "no such request";
  return entry->second.sink;
}

RequestRegistry::Live RequestRegistry::Remove(RequestId id) {
  Live live;
  bool is_empty;
  {
    std::lock_guard lock(mutex_);
    const auto entry = live_.find(id);
    CHECK(entry != live_.end()) << "no such request";
    live = std::move(entry->second);
    live_.erase(entry);
    by_name_.erase({live.facts.tenant, live.facts.name});
    is_empty = live_.empty();
  }
  if (is_empty) emptied_.notify_all();
  return live;
}

std::optional<RequestId> RequestRegistry::NoteAbort(const std::string& tenant,
                                                    const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto entry = by_name_.find({tenant, name});
  if (entry == by_name_.end()) return std::nullopt;
  live_.find(entry->second)->second.is_aborted = true;
  return entry->second;
}

bool RequestRegistry::IsAborted(RequestId id) const {
  std::lock_guard lock(mutex_);
  const auto entry = live_.find(id);
  return entry != live_.end() && entry->second.is_aborted;
}

std::vector<std::string> RequestRegistry::NamesOf(
    std::span<const SequenceMemory> sequences) const {
  std::vector<std::string> names;
  names.reserve(sequences.size());
  std::lock_guard lock(mutex_);
  for (const SequenceMemory& sequence : sequences) {
    const auto entry = live_.find(sequence.request);
    names.push_back(entry != live_.end() ? entry->second.facts.name
                                         : absl::StrCat(static_cast<uint64_t>(
                                               sequence.request)));
  }
  return names;
}

size_t RequestRegistry::size() const {
  std::lock_guard lock(mutex_);
  return live_.size();
}

void RequestRegistry::StopAccepting() {
  std::lock_guard lock(mutex_);
  accepting_ = false;
}

void RequestRegistry::WaitUntilEmpty(absl::Duration timeout) const {
  std::unique_lock lock(mutex_);
  emptied_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                    [this] { return live_.empty(); });
}

}  // namespace folio
