// What one request has to say to its client and has not said yet.

#ifndef RUNTIME_SERVER_RESPONSE_QUEUE_H_
#define RUNTIME_SERVER_RESPONSE_QUEUE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "folio/v1/generation.pb.h"
#include "runtime/base/types.h"
#include "runtime/tokenizer/tokenizer.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace folio {

// Events that come faster than they are written are gathered, those of each
// sample in a response of its own, so that a client that reads slowly costs the
// memory of its own text and no more. Not thread-safe.
class ResponseQueue {
 public:
  // `name` is what the client calls the request. REQUIRES: it is prepared.
  ResponseQueue(std::string name, const Request& request);

  // Puts the prompt itself before everything else. REQUIRES: nothing was added.
  void AddEcho(const Tokenizer& tokenizer, std::span<const TokenId> prompt);

  // Takes in the next events, in order.
  void Add(std::span<const TokenEvent> events);

  bool empty() const { return pending_.empty(); }

  // The next response. REQUIRES: !empty().
  v1::GenerateResponse Pop();

  // How the request ended; none before its terminal event. The last response is
  // then the last of all.
  const std::optional<absl::Status>& end() const { return end_; }

  const std::string& name() const { return name_; }

 private:
  struct Pending {
    v1::GenerateResponse response;
    int64_t num_entries = 0;  // Its tokens and alternatives.
  };

  Pending& AddPending(int32_t sample);
  v1::GenerateResponse& ResponseFor(const TokenEvent& event);

  const std::string name_;
  const uint64_t seed_;
  bool seed_is_told_ = false;
  std::deque<Pending> pending_;
  // Of each sample the last of them, which its next events go to.
  absl::flat_hash_map<int32_t, Pending*> growing_;
  std::optional<absl::Status> end_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_RESPONSE_QUEUE_H_
