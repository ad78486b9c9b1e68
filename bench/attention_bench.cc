// Attention against the limits of the machine, measured in the same run: decode
// against the bandwidth of reading K/V, prefill against the rate of a matrix
// product. Every iteration measures both, one after the other, and `share` is
// the median of their ratios; `cpu_share` is that of processor time in place of
// elapsed time, which other processes disturb less.

#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_layout.h"
#include "cache/kv_storage.h"
#include "runtime/base/executor.h"
#include "runtime/base/philox.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/bf16.h"
#include "runtime/kernels/linear.h"

namespace folio {
namespace {

constexpr int32_t kPageSize = 16;

Executor& Pool() {
  static const std::unique_ptr<Executor> executor =
      MakeParallelExecutor(NumUsableCores());
  return *executor;
}

// How the pages of a sequence lie.
enum class Order {
  kFollowing,  // One after the other, as those of a prompt in an empty pool.
  kScattered,  // No two neighbours are, as where many came and went.
};

// The pages of some sequences.
class KvPages {
 public:
  KvPages(const AttentionShape& shape, ElementType type, int32_t layers,
          int32_t sequences, int32_t tokens, Order order)
      : type_(type),
        layout_({.num_layers = layers,
                 .num_kv_heads = shape.num_kv_heads,
                 .head_dim = shape.head_dim,
                 .bytes_per_element = BytesOf(type),
                 .scale_bytes = KvScaleBytesOf(type)},
                kPageSize),
        pages_per_sequence_(layout_.PagesFor(tokens)) {
    const int64_t num_pages = sequences * pages_per_sequence_;
    auto storage =
        KvStorage::Create(layout_, num_pages * layout_.page_bytes(), Pool());
    CHECK(storage.ok()) << storage.status();
    storage_ = *std::move(storage);
    for (int32_t i = 0; i < num_pages; ++i) {
      std::byte* const page = storage_->PageData(PageId{i});
      pages_.push_back(page);
      for (int64_t part = 0; part < layout_.num_parts(); ++part) {
        Fill(page + part * storage_->part_stride(), i);
      }
    }
    if (order == Order::kFollowing) return;
    for (int64_t i = num_pages - 1; i > 0; --i) {
      std::swap(pages_[i], pages_[PhiloxAt(1, 2, i)[0] % (i + 1)]);
    }
  }

  std::span<const std::byte* const> pages(int32_t sequence) const {
    return std::span(pages_).subspan(sequence * pages_per_sequence_,
                                     pages_per_sequence_);
  }
  std::span<const std::byte> memory() const {
    return {storage_->PageData(PageId{0}),
            static_cast<size_t>(storage_->pool_bytes())};
  }

  PagedKv OfLayer(int32_t layer) const {
    const int64_t first_part =
        int64_t{layer} * layout_.shape().num_kv_heads * storage_->part_stride();
    return {.type = type_,
            .page_size = kPageSize,
            .key_offset = first_part + layout_.KeyOffset(),
            .value_offset = first_part + layout_.ValueOffset(),
            .head_stride = storage_->part_stride(),
            .key_scale_offset = first_part + layout_.KeyScaleOffset(),
            .value_scale_offset = first_part + layout_.ValueScaleOffset()};
  }

 private:
  void Fill(std::byte* part, int64_t index) {
    const int64_t size = layout_.KeyScaleOffset();
    uint32_t bits = 0;
    for (int64_t i = 0; i < size; i += BytesOf(type_)) {
      // (A block of random numbers for each 64 bytes: there are 700 MB.)
      if (i % 64 == 0) {
        bits = PhiloxAt(3, static_cast<uint64_t>(index), i / 64)[0];
      }
      const auto q = static_cast<int8_t>(bits >> (i % 24));
      const float value = 0.02f * q;
      const uint16_t half = ToBf16(value);
      const void* from = type_ == ElementType::kF32 ? &value
                         : type_ == ElementType::kBf16
                             ? static_cast<const void*>(&half)
                             : &q;
      std::memcpy(part + i, from, BytesOf(type_));
    }
    const float scale = 0.02f;
    for (int64_t i = 0; i < layout_.scale_bytes() / layout_.num_parts();
         i += sizeof(scale)) {
      std::memcpy(part + size + i, &scale, sizeof(scale));
    }
  }

  const ElementType type_;
  const KvLayout layout_;
  const int64_t pages_per_sequence_;
  std::unique_ptr<KvStorage> storage_;
  std::vector<const std::byte*> pages_;
};

struct Duration {
  double elapsed;
  double cpu;  // Of all threads.
};

template <typename Work>
Duration Time(const Work& work) {
  const std::clock_t cpu = std::clock();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  return {elapsed.count(), double(std::clock() - cpu) / CLOCKS_PER_SEC};
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// (With the widest vectors that the machine has.)
#ifdef __x86_64__
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
uint64_t
Sum(const uint64_t* words, size_t size) {
  uint64_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += words[i];
  return sum;
}

// Reads all of it, with all workers.
void ReadAll(std::span<const std::byte> memory) {
  constexpr size_t kPiece = 4 << 20;
  const size_t num_pieces = memory.size() / kPiece;
  Pool().ParallelFor(static_cast<int>(num_pieces), [&](int task, int) {
    benchmark::DoNotOptimize(
        Sum(reinterpret_cast<const uint64_t*>(memory.data() + task * kPiece),
            kPiece / sizeof(uint64_t)));
  });
}

std::vector<float> Queries(size_t size) {
  std::vector<float> q(size);
  for (size_t i = 0; i < size; ++i) {
    q[i] = static_cast<float>(PhiloxAt(5, 6, i)[0] % 2001) / 1000.0f - 1;
  }
  return q;
}

// Runs `attention` and `limit` by turns; how much each does is in the same
// unit.
template <typename Attention, typename Limit>
void Compare(benchmark::State& state, double attention_amount,
             const Attention& attention, double limit_amount,
             const Limit& limit) {
  std::vector<double> rates;
  std::vector<double> limits;
  std::vector<double> shares;
  std::vector<double> cpu_shares;
  for (auto _ : state) {
    const Duration least = Time(limit);
    const Duration taken = Time(attention);
    rates.push_back(attention_amount / taken.elapsed);
    limits.push_back(limit_amount / least.elapsed);
    const double amounts = attention_amount / limit_amount;
    shares.push_back(amounts * least.elapsed / taken.elapsed);
    cpu_shares.push_back(amounts * least.cpu / taken.cpu);
    state.SetIterationTime(taken.elapsed);
  }
  state.counters["G/s"] = Median(rates) / 1e9;
  state.counters["limit_G/s"] = Median(limits) / 1e9;
  state.counters["share"] = Median(shares);
  state.counters["cpu_share"] = Median(cpu_shares);
}

// Each sequence's next token in all layers, whose K/V no cache holds. Bytes
// read, against reading the same pool from one end to the other.
void Decode(benchmark::State& state, AttentionShape shape, ElementType type,
            int32_t sequences, int32_t tokens, Order order) {
  constexpr int32_t kLayers = 30;
  const KvPages kv(shape, type, kLayers, sequences, tokens, order);
  const int32_t width = shape.num_heads * shape.head_dim;
  const std::vector<float> q = Queries(size_t(sequences) * width);
  std::vector<AttentionSequence> batch;
  for (int32_t i = 0; i < sequences; ++i) {
    batch.push_back({.first_row = i,
                     .num_rows = 1,
                     .first_position = tokens - 1,
                     .pages = kv.pages(i)});
  }
  PagedAttention attention(shape, std::nullopt, sequences, &Pool());
  Activations out(ElementType::kBf16, sequences, width, Pool().num_workers());
  const double row_bytes =
      shape.head_dim * BytesOf(type) + KvScaleBytesOf(type);
  Compare(
      state,
      2.0 * kLayers * sequences * tokens * shape.num_kv_heads * row_bytes,
      [&] {
        for (int32_t layer = 0; layer < kLayers; ++layer) {
          attention.Plan(batch);
          attention.Attend(q, kv.OfLayer(layer));
          attention.Finish({0, sequences}, out, Pool());
        }
      },
      static_cast<double>(kv.memory().size()), [&] { ReadAll(kv.memory()); });
}

// Prompts in one layer, 512 rows at a time: one in chunks, or several at once.
// Useful multiply-adds, against a product of 512 rows whose weights are bf16
// (f32 when K/V is).
void Prefill(benchmark::State& state, AttentionShape shape, ElementType type,
             int32_t tokens) {
  constexpr int32_t kRows = 512;
  constexpr int32_t kIn = 576;
  constexpr int32_t kOut = 3072;
  const int32_t prompts = std::max(1, kRows / tokens);
  const int32_t times = prompts == 1 ? 1 : 30;
  const KvPages kv(shape, type, 1, prompts, tokens, Order::kFollowing);
  std::vector<AttentionSequence> batch;
  const int32_t width = shape.num_heads * shape.head_dim;
  const std::vector<float> q = Queries(size_t(kRows) * width);
  PagedAttention attention(shape, std::nullopt, kRows, &Pool());
  Activations out(ElementType::kBf16, kRows, width, Pool().num_workers());

  const auto attend = [&](int32_t first) {
    const int32_t rows = std::min(kRows, tokens - first);
    batch.clear();
    for (int32_t i = 0; i < prompts; ++i) {
      batch.push_back({.first_row = i * rows,
                       .num_rows = rows,
                       .first_position = first,
                       .pages = kv.pages(i)});
    }
    attention.Plan(batch);
    attention.Attend(q, kv.OfLayer(0));
    attention.Finish({0, prompts * rows}, out, Pool());
  };

  const ElementType product_type =
      type == ElementType::kF32 ? type : ElementType::kBf16;
  Linear product({.in = kIn,
                  .out = kOut,
                  .read_rows =
                      [](int32_t, std::span<float> rows) {
                        std::fill(rows.begin(), rows.end(), 0.5f);
                      }},
                 product_type, Pool());
  const Activations x(product_type, kRows, kIn, Pool().num_workers());
  ColumnBlocks y = product.MakeOutput(kRows);
  constexpr int kProducts = 4;
  Compare(
      state, double(times) * prompts * tokens * (tokens + 1) * width,
      [&] {
        for (int32_t time = 0; time < times; ++time) {
          for (int32_t first = 0; first < tokens; first += kRows) attend(first);
        }
      },
      double{kProducts} * kRows * kIn * kOut,
      [&] {
        for (int i = 0; i < kProducts; ++i) {
          product.Forward(x, {0, kRows}, y, Pool());
        }
      });
}

void Register() {
  constexpr AttentionShape kGrouped{
      .num_heads = 9, .num_kv_heads = 3, .head_dim = 64};
  constexpr AttentionShape kAlone{
      .num_heads = 9, .num_kv_heads = 9, .head_dim = 64};
  for (const AttentionShape& shape : {kGrouped, kAlone}) {
    const std::string heads = std::to_string(shape.num_heads) + "/" +
                              std::to_string(shape.num_kv_heads);
    for (const ElementType type :
         {ElementType::kBf16, ElementType::kInt8, ElementType::kF32}) {
      const std::string name = std::string(NameOf(type)) + "/heads:" + heads;
      const auto add = [](const std::string& full, auto run) {
        benchmark::RegisterBenchmark(full.c_str(), run)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      };
      for (const Order order : {Order::kFollowing, Order::kScattered}) {
        const std::string pages =
            order == Order::kFollowing ? "" : "/scattered";
        add("Decode/16x2000/" + name + pages, [=](benchmark::State& state) {
          Decode(state, shape, type, 16, 2000, order);
        });
        add("Decode/1x8192/" + name + pages, [=](benchmark::State& state) {
          Decode(state, shape, type, 1, 8192, order);
        });
      }
      for (const int32_t tokens : {128, 4096}) {
        add("Prefill/" + std::to_string(tokens) + "/" + name,
            [=](benchmark::State& state) {
              Prefill(state, shape, type, tokens);
            });
      }
    }
  }
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  folio::Register();
  benchmark::RunSpecifiedBenchmarks();
}
