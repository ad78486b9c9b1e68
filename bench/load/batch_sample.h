// What a load test keeps of each batch of a Folio engine.

#ifndef BENCH_LOAD_BATCH_SAMPLE_H_
#define BENCH_LOAD_BATCH_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace folio {

// One step; the fields mean what those of v1::BatchReport do.
struct BatchSample {
  int64_t step = 0;
  absl::Time start;  // By the clock of whoever computes.
  absl::Duration duration;
  absl::Duration forward_duration;

  int32_t prefill_tokens = 0;
  int32_t decode_tokens = 0;
  int32_t running = 0;
  int32_t waiting = 0;
  int32_t preempted = 0;
  int32_t pages_evicted = 0;
  int32_t prefix_query_tokens = 0;
  int32_t prefix_hit_tokens = 0;

  // The pool, which stays the same.
  int32_t page_size = 0;
  int64_t page_bytes = 0;
  int64_t bytes_per_token = 0;
  int32_t pages_total = 0;

  int32_t pages_free = 0;
  int32_t pages_in_use = 0;
  int32_t pages_cached = 0;
  int32_t pages_shared = 0;
  int64_t tokens_held = 0;
  int64_t waste_bytes = 0;

  struct Sequence {
    std::string request;
    int32_t pages = 0;
    int32_t shared_pages = 0;
    int32_t tokens = 0;
  };
  std::vector<Sequence> sequences;

  int64_t dropped = 0;  // Batches between the last sample and this one.
};

}  // namespace folio

#endif  // BENCH_LOAD_BATCH_SAMPLE_H_
