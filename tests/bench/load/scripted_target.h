// A target of known timing, in virtual time.

#ifndef TESTS_BENCH_LOAD_SCRIPTED_TARGET_H_
#define TESTS_BENCH_LOAD_SCRIPTED_TARGET_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/load/batch_sample.h"
#include "bench/load/target.h"
#include "tests/bench/load/virtual_run_clock.h"

namespace folio {

// What becomes of one request, once it is served.
struct Script {
  struct Message {
    absl::Duration time;  // After its service began; ascending.
    int32_t sample = 0;
    int32_t num_tokens = 1;
    std::vector<TokenId> tokens = {};
    std::string text = {};
  };
  std::vector<Message> messages;
  absl::Duration end;  // After its service began; not before the last message.
  absl::Status status;
  // Ends at once, in Start, with `status`; nothing else of this matters.
  bool is_refused = false;
  bool tells_queue = true;
  std::optional<int32_t> told_prompt_tokens;
  std::optional<int32_t> told_output_tokens;
};

// One token `first` after the service began, then one every `next` up to
// max_tokens, and the end with the last.
Script Steady(const TargetRequest& request, absl::Duration first,
              absl::Duration next);

// Some servers take requests in the order in which they came; each works on one
// until that ends. Cancels and deadlines end a request at their time.
class ScriptedTarget final : public Target {
 public:
  // What it has seen and done, by the clock's time.
  struct Seen {
    TargetRequest request;
    absl::Time sent;
    std::optional<absl::Time> service;
    struct Token {
      absl::Time time;
      int32_t sample;
    };
    std::vector<Token> tokens;
    absl::Time end = absl::InfiniteFuture();
    absl::Status status;
  };

  // `clock` must outlive it.
  ScriptedTarget(VirtualRunClock* clock, int32_t num_servers,
                 std::function<Script(const TargetRequest&)> script);

  absl::StatusOr<TargetInfo> Describe() override;
  std::unique_ptr<TargetCall> Start(TargetRequest request,
                                    TargetListener* listener) override;
  bool WatchBatches(std::function<void(const BatchSample&)> on_batch) override;
  void StopWatching() override;

  // From now on it does not answer: Describe fails, and whatever is sent ends
  // with UNAVAILABLE. What is live goes on.
  void StopAnswering(absl::Status status) { answer_ = std::move(status); }
  // From now on a cancel takes so long.
  void SetCancelDelay(absl::Duration delay) { cancel_delay_ = delay; }
  // Ends what is live with `status`.
  void EndAll(const absl::Status& status);

  // Is told `sample` at `time`.
  void AddBatch(absl::Time time, BatchSample sample);

  // In the order in which they were sent.
  const std::vector<Seen>& seen() const { return seen_; }
  int32_t max_live() const { return max_live_; }
  int32_t num_live() const { return num_live_; }
  int32_t num_describes() const { return num_describes_; }
  bool is_watched() const { return on_batch_ != nullptr; }

 private:
  class Call;

  void Serve();
  void Begin(size_t index);
  void Say(size_t index, const Script::Message& message);
  void End(size_t index, absl::Status status);
  void Cancel(size_t index);

  VirtualRunClock* const clock_;
  const std::function<Script(const TargetRequest&)> script_;
  int32_t num_free_;
  std::deque<size_t> queue_;
  std::vector<Seen> seen_;
  std::vector<Script> scripts_;
  std::vector<TargetListener*> listeners_;  // Null: it has ended.
  absl::Status answer_;
  absl::Duration cancel_delay_;
  int32_t num_live_ = 0;
  int32_t max_live_ = 0;
  int32_t num_describes_ = 0;
  std::function<void(const BatchSample&)> on_batch_;
};

}  // namespace folio

#endif  // TESTS_BENCH_LOAD_SCRIPTED_TARGET_H_
