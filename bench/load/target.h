// What a load is put on: a server, or the engine in this process.

#ifndef BENCH_LOAD_TARGET_H_
#define BENCH_LOAD_TARGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/load/batch_sample.h"
#include "runtime/base/types.h"

namespace folio {

using Prompt = std::variant<std::vector<TokenId>, std::string>;

// One request as a target gets it. It is greedy, and goes on after an end of
// sequence.
struct TargetRequest {
  std::string name;  // No two of a run share one.
  Prompt prompt;
  int32_t max_tokens = 1;
  int32_t n = 1;
  std::string tenant;  // Empty: not said.
  int32_t priority = 0;
  absl::Time deadline = absl::InfiniteFuture();
  // Waits so long before it takes each next message.
  absl::Duration read_delay;
};

// How a request ended, and what the target tells of it.
struct TargetEnd {
  // OK when it was served to its end. Messages say what a person needs.
  absl::Status status;
  // As the target counts them, where it does.
  std::optional<int32_t> prompt_tokens;
  std::optional<int32_t> output_tokens;
  std::optional<int32_t> cached_tokens;  // Of the prompt, K/V that was there.
  std::optional<absl::Duration> queue_duration;
};

// Is told of one request, in order, on any thread. Calls must be short: they
// take the time of all other requests.
class TargetListener {
 public:
  virtual ~TargetListener() = default;

  // New output of one sample. `num_tokens` is how many tokens it is, as far as
  // the target tells; `tokens` their ids where it tells those, else none.
  struct Output {
    int32_t sample = 0;
    int32_t num_tokens = 0;
    std::span<const TokenId> tokens;
    std::string_view text;
  };
  virtual void OnOutput(const Output& output) = 0;

  // The last call, and exactly one.
  virtual void OnEnd(TargetEnd end) = 0;
};

// A request on its way.
class TargetCall {
 public:
  // REQUIRES: its OnEnd was called (it may still be running) or is awaited by
  // nobody. Waits for nothing but a callback that runs.
  virtual ~TargetCall() = default;

  // Asks for its end; OnEnd comes soon, with CANCELLED unless it ended anyway.
  // Thread-safe; without effect after its end.
  virtual void Cancel() = 0;
};

struct TargetInfo {
  std::string server;  // "Folio 0.1.0", "llama.cpp"; empty: not told.
  std::string model;
  std::optional<int32_t> vocab_size;
  std::optional<int32_t> context_length;
};

class Target {
 public:
  // REQUIRES: every request has ended.
  virtual ~Target() = default;

  // What is there, after making sure that it answers. UNAVAILABLE names the
  // address and the reason.
  virtual absl::StatusOr<TargetInfo> Describe() = 0;

  // Sends the request, and returns at once. `listener` must live until its
  // OnEnd has returned. Thread-safe.
  virtual std::unique_ptr<TargetCall> Start(TargetRequest request,
                                            TargetListener* listener) = 0;

  // Hands every batch that the target computes from now on to `on_batch`, on a
  // thread of its own, until StopWatching returns. False: it can't tell.
  virtual bool WatchBatches(
      std::function<void(const BatchSample&)> /*on_batch*/) {
    return false;
  }
  virtual void StopWatching() {}
};

}  // namespace folio

#endif  // BENCH_LOAD_TARGET_H_
