#include "runtime/server/request_registry.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "runtime/server/generate_reactor.h"

namespace folio {

bool RequestRegistry::Add(RequestId id, GenerateReactor* reactor) {
  std::lock_guard lock(mutex_);
  if (!accepting_) return false;
  const bool is_new = reactors_.emplace(id, reactor).second;
  CHECK(is_new) << "request id used twice";
  return true;
}

GenerateReactor* RequestRegistry::Find(RequestId id) const {
  std::lock_guard lock(mutex_);
  const auto entry = reactors_.find(id);
  CHECK(entry != reactors_.end()) << "no such request";
  return entry->second;
}

GenerateReactor* RequestRegistry::Remove(RequestId id) {
  GenerateReactor* reactor;
  bool is_empty;
  {
    std::lock_guard lock(mutex_);
    const auto entry = reactors_.find(id);
    CHECK(entry != reactors_.end()) << "no such request";
    reactor = entry->second;
    reactors_.erase(entry);
    is_empty = reactors_.empty();
  }
  if (is_empty) emptied_.notify_all();
  return reactor;
}

std::vector<std::string> RequestRegistry::NamesOf(
    std::span<const SequenceMemory> sequences) const {
  std::vector<std::string> names;
  names.reserve(sequences.size());
  std::lock_guard lock(mutex_);
  for (const SequenceMemory& sequence : sequences) {
    const auto entry = reactors_.find(sequence.request);
    names.push_back(
        entry != reactors_.end()
            ? entry->second->name()
            : absl::StrCat(static_cast<uint64_t>(sequence.request)));
  }
  return names;
}

bool RequestRegistry::empty() const {
  std::lock_guard lock(mutex_);
  return reactors_.empty();
}

void RequestRegistry::StopAccepting() {
  std::lock_guard lock(mutex_);
  accepting_ = false;
}

void RequestRegistry::WaitUntilEmpty(absl::Duration timeout) const {
  std::unique_lock lock(mutex_);
  emptied_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                    [this] { return reactors_.empty(); });
}

}  // namespace folio
