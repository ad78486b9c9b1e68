// What a server serves, once that is there.

#ifndef RUNTIME_SERVER_BACKEND_H_
#define RUNTIME_SERVER_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/server/telemetry.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

// All of them outlive the server's services. `clock` is the engine's.
struct Backend {
  Engine* engine;
  const Tokenizer* tokenizer;
  const Clock* clock;
  const Telemetry* telemetry;
  // No text that has more can be a prompt. Encoding takes time, so it is looked
  // at first.
  size_t max_text_bytes;
};

// A server listens, and answers for its health, while its model is still being
// loaded. Thread-safe.
class BackendSlot {
 public:
  // Call it once.
  void Set(const Backend& backend) {
    storage_ = std::make_unique<const Backend>(backend);
    backend_ = storage_.get();
  }

  // UNAVAILABLE before Set.
  absl::StatusOr<const Backend*> Get() const {
    if (const Backend* const backend = backend_) return backend;
    return absl::UnavailableError(
        "the server is still loading its model; try again later");
  }

 private:
  std::unique_ptr<const Backend> storage_;
  std::atomic<const Backend*> backend_ = nullptr;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_BACKEND_H_
