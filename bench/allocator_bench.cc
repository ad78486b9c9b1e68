// What handing out pages costs, against a plain stack of free numbers.
//
// Plain/... is the least that any allocator does: it moves the same numbers,
// counts no references, checks nothing and reports nothing.

#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/page_allocator.h"

namespace folio {
namespace {

constexpr int32_t kPages = 1 << 16;
constexpr int32_t kPageSize = 16;

std::vector<int32_t> FreeList() {
  std::vector<int32_t> free_list(kPages);
  std::iota(free_list.begin(), free_list.end(), 0);
  return free_list;
}

// Takes and gives back `range(0)` pages.
void AllocateAndRelease(benchmark::State& state) {
  PageAllocator allocator(kPages);
  std::vector<PageId> pages(state.range(0));
  for (auto _ : state) {
    CHECK(allocator.Allocate(pages));
    benchmark::DoNotOptimize(pages.data());
    for (const PageId page : pages) allocator.Release(page);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(AllocateAndRelease)->Arg(1)->Arg(64)->Arg(4096);

void PlainAllocateAndRelease(benchmark::State& state) {
  std::vector<int32_t> free_list = FreeList();
  std::vector<int32_t> pages(state.range(0));
  for (auto _ : state) {
    for (int32_t& page : pages) {
      page = free_list.back();
      free_list.pop_back();
    }
    benchmark::DoNotOptimize(pages.data());
    for (const int32_t page : pages) free_list.push_back(page);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PlainAllocateAndRelease)
    ->Name("Plain/AllocateAndRelease")
    ->Arg(1)
    ->Arg(64)
    ->Arg(4096);

// One sequence grows to `range(0)` tokens, token by token as decoding does, and
// ends. The time is that of all of it; items are tokens.
void GrowAndRelease(benchmark::State& state) {
  const KvLayout layout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                        kPageSize);
  KvCache cache(layout, kPages);
  PageTable table;
  cache.Reserve(table, state.range(0));
  for (auto _ : state) {
    for (int64_t tokens = 1; tokens <= state.range(0); ++tokens) {
      CHECK(cache.Grow(table, tokens));
    }
    benchmark::DoNotOptimize(table.pages().data());
    cache.Release(table);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(GrowAndRelease)->Arg(64)->Arg(4096);

void PlainGrowAndRelease(benchmark::State& state) {
  std::vector<int32_t> free_list = FreeList();
  std::vector<int32_t> table;
  table.reserve(state.range(0) / kPageSize);
  for (auto _ : state) {
    for (int64_t tokens = 1; tokens <= state.range(0); ++tokens) {
      if (tokens <= static_cast<int64_t>(table.size()) * kPageSize) continue;
      table.push_back(free_list.back());
      free_list.pop_back();
    }
    benchmark::DoNotOptimize(table.data());
    free_list.insert(free_list.end(), table.rbegin(), table.rend());
    table.clear();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PlainGrowAndRelease)
    ->Name("Plain/GrowAndRelease")
    ->Arg(64)
    ->Arg(4096);

}  // namespace
}  // namespace folio
