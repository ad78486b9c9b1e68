// Where every byte of the KV pool is, at one moment.

#ifndef CACHE_MEMORY_REPORT_H_
#define CACHE_MEMORY_REPORT_H_

#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "runtime/base/types.h"

namespace folio {

// One sequence's part. Its pages hold `tokens` tokens' K/V: those computed,
// less those whose pages have left the window.
struct SequenceMemory {
  SequenceId sequence{};
  RequestId request{};
  int32_t sample_index = 0;
  int32_t pages = 0;
  int32_t shared_pages = 0;  // Of `pages`, those that others hold too.
  int32_t tokens = 0;
};

// The identities that CheckIdentities states hold in every report, exactly.
// "Reserved" is what pages in use take, "holding" what tokens in them take.
struct MemoryReport {
  // Of the pool, constant while the engine lives.
  KvShape kv_shape;
  int32_t page_size = 0;  // Token slots.
  int64_t page_bytes = 0;
  int64_t page_scale_bytes = 0;  // Of int8 elements.
  int64_t page_padding_bytes = 0;
  int64_t pool_bytes = 0;
  int64_t remainder_bytes = 0;  // Too few for one more page.
  int32_t context_length = 0;   // The most tokens of one sequence.

  // Pages. A shared page counts once in `pages_in_use`.
  int32_t pages_total = 0;
  int32_t pages_free = 0;
  int32_t pages_in_use = 0;
  int32_t pages_cached = 0;  // Held by the prefix index alone.
  int64_t duplicate_pages_saved = 0;
  int32_t pages_shared = 0;  // Of those in use, by two sequences or more.

  // Tokens whose K/V is in pages in use; those of a shared page count once.
  int64_t tokens_held = 0;

  std::vector<SequenceMemory> sequences;

  int64_t bytes_per_token() const { return kv_shape.BytesPerToken(); }
  int64_t bytes_reserved() const { return pages_in_use * page_bytes; }
  int64_t bytes_holding() const { return tokens_held * bytes_per_token(); }
  // What sharing saves.
  int64_t bytes_shared() const { return duplicate_pages_saved * page_bytes; }
  int64_t bytes_waste() const { return bytes_reserved() - bytes_holding(); }
  // Of what is reserved; 0 when nothing is.
  double waste_share() const {
    return bytes_reserved() == 0
               ? 0.0
               : static_cast<double>(bytes_waste()) / bytes_reserved();
  }
  // What one contiguous buffer of the context length for each of the same
  // sequences would take.
  int64_t bytes_contiguous() const {
    return kv_shape.Bytes(static_cast<int64_t>(sequences.size()),
                          context_length);
  }

  // Ends the process, naming the numbers, when an identity does not hold. Free
  // pages, pages in use, cached pages and references are counted each on its
  // own, and sequences' pages are those of their tables. O(sequences).
  void CheckIdentities() const;
};

// Makes reports of one cache.
class MemoryReporter {
 public:
  // `cache` must outlive the reporter; its pool takes `pool_bytes`.
  MemoryReporter(const KvCache* cache, int64_t pool_bytes,
                 int32_t context_length);

  // Starts a report: everything that does not depend on the sequences.
  // `report.sequences` is emptied but keeps its memory.
  void Start(MemoryReport& report);

  // Adds one sequence, the first num_computed of whose tokens are in `table`;
  // tokens in pages that a sequence before it has, too, are not held again.
  // Every table of the cache has to be added. Costs as KvCache::NumShared.
  void Add(const PageTable& table, SequenceId sequence, RequestId request,
           int32_t sample_index, int32_t num_computed, MemoryReport& report);

 private:
  const KvCache* const cache_;
  const int64_t pool_bytes_;
  const int32_t context_length_;
  // The number of the last report that saw the page, as one that is partly
  // filled and shared. [num_pages]
  std::vector<int64_t> counted_in_;
  int64_t num_reports_ = 0;
};

}  // namespace folio

#endif  // CACHE_MEMORY_REPORT_H_
