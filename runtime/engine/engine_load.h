// How much the engine has to do.

#ifndef RUNTIME_ENGINE_ENGINE_LOAD_H_
#define RUNTIME_ENGINE_ENGINE_LOAD_H_

#include <cstdint>

namespace folio {

// The state between two turns: what has finished holds nothing any more.
// pages_total == pages_in_use + pages_cached + pages_free.
struct EngineLoad {
  int32_t sequences_running = 0;
  int32_t sequences_waiting = 0;
  int32_t pages_total = 0;
  int32_t pages_in_use = 0;
  int32_t pages_cached = 0;  // Held by the prefix index alone.
  int32_t pages_free = 0;

  bool operator==(const EngineLoad&) const = default;
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_ENGINE_LOAD_H_
