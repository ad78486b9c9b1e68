// Clients of soak_server that behave as clients do, well and badly.

#ifndef TESTS_RUNTIME_SERVER_SOAK_CLIENTS_H_
#define TESTS_RUNTIME_SERVER_SOAK_CLIENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "folio/v1/generation.grpc.pb.h"
#include "folio/v1/generation.pb.h"
#include "runtime/base/types.h"

namespace folio {

enum class Behaviour {
  kStreams,       // Reads to the end.
  kCancels,       // After some messages, or some time.
  kHasDeadline,   // Of 1 to 500 ms.
  kNeverReads,    // Keeps the call until it is cancelled from outside.
  kSendsInvalid,  // Something that must be refused.
};
inline constexpr int kNumBehaviours = 5;

// What one client wants.
struct SoakPlan {
  std::string name;  // Of the request; no two are the same.
  Behaviour behaviour;
  int prompt;  // Number of one of SoakPrompts().
  int32_t max_tokens;
  int32_t n = 1;
  // Of kCancels one is set; of kHasDeadline, the time.
  std::optional<int> messages_left;
  std::optional<absl::Duration> time_left;
  int fault = 0;  // What is invalid.
};

// What one client got.
struct SoakOutcome {
  SoakPlan plan;
  bool is_batched;
  // None: the stream that it shared with others ended first.
  std::optional<absl::StatusCode> status;
  std::vector<std::vector<TokenId>> tokens;  // Of each sample.
};

// Some begin as others do, for the prefix cache.
const std::vector<std::vector<TokenId>>& SoakPrompts();

SoakPlan MakeSoakPlan(std::string name, Behaviour behaviour,
                      std::mt19937_64& random);

// A call with the requests of one client or of several. gRPC's threads run it;
// whoever owns it may look at its outcomes when it is done.
class SoakCall {
 public:
  virtual ~SoakCall() = default;

  // Call it once, and keep the object until it is done.
  virtual void Start(v1::Generation::Stub& stub) = 0;
  // Any thread.
  virtual void Cancel() = 0;

  // When it is to be cancelled from outside, counted from its start.
  virtual std::optional<absl::Duration> cancel_time() const = 0;

  bool done() const { return done_; }
  // Whether something has come back from the server.
  bool answered() const { return answered_; }
  const std::vector<SoakOutcome>& outcomes() const { return outcomes_; }

 protected:
  std::vector<SoakOutcome> outcomes_;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> done_ = false;
};

// Generate.
std::unique_ptr<SoakCall> MakeSingleCall(SoakPlan plan);

// GenerateBatch with all of these, which have one behaviour.
std::unique_ptr<SoakCall> MakeBatchCall(std::vector<SoakPlan> plans);

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_SOAK_CLIENTS_H_
