#include "runtime/kernels/linear.h"

#include <glog/logging.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/float_product.h"
#include "runtime/kernels/instruction_set.h"
#include "runtime/kernels/integer_product.h"
#include "runtime/kernels/panel_product.h"
#include "runtime/kernels/vocab_reduce.h"

namespace folio {

int32_t RoundUpRows(int32_t rows, int32_t max_rows) {
  CHECK_GE(rows, 1);
  CHECK_LE(rows, max_rows);
  if (rows == 1) return 1;
  const int32_t step = std::max<int32_t>(
      1, static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(rows - 1))) /
             8);
  return std::min(max_rows, (rows + step - 1) / step * step);
}

// Computes a range of neighbouring output columns.
class Linear::Slice {
 public:
  virtual ~Slice() = default;
  // The parts of its columns, which several threads may compute.
  virtual int32_t num_parts() const { return 1; }
  // Of every part but the last, which has the rest: whole stripes.
  virtual int32_t part_columns() const {
    return std::numeric_limits<int32_t>::max();
  }
  // y, a dense [RoundUpRows(rows), cols] array, = x[first ..] W^T + b, in the
  // columns of one part. May ask for `next`, weights that are needed next.
  virtual void Forward(const Activations& x, int32_t first, int32_t rows,
                       int32_t part, std::span<const uint8_t> next,
                       float* y) = 0;
  // The weights of a part, as far as it is worth asking for them early.
  virtual std::span<const uint8_t> Part(int32_t /*part*/) const { return {}; }
  virtual int64_t bytes() const = 0;

  // After StartParts, all parts are done when all calls of DoParts, by any
  // threads, are. The slice is block `block` of y.
  void StartParts() { next_part_.store(0, std::memory_order_relaxed); }
  void DoParts(const Activations& x, int32_t first, int32_t rows,
               const Slice* next, int32_t block, ColumnBlocks& y) {
    for (int32_t part; (part = next_part_.fetch_add(
                            1, std::memory_order_relaxed)) < num_parts();) {
      Forward(x, first, rows, part, After(part, next), y.block_data(block));
      if (!y.keeps_maxima()) continue;
      const int32_t begin = part * part_columns();
      const int32_t rest = y.block_cols(block) - begin;
      FindMaxima(block, begin, begin + std::min(part_columns(), rest), rows, y);
    }
  }

 private:
  std::span<const uint8_t> After(int32_t part, const Slice* next) const {
    if (part + 1 < num_parts()) return Part(part + 1);
    return next == nullptr ? std::span<const uint8_t>() : next->Part(0);
  }

  std::atomic<int32_t> next_part_ = 0;
};

namespace {

using dnnl::memory;

// oneDNN computes with OpenMP, whose threads would compete with the Executor's.
// The limit belongs to the calling thread; setting it costs next to nothing.
void HoldOpenMpToOneThread() { omp_set_num_threads(1); }

dnnl::engine& CpuEngine() {
  static auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

memory::desc Dense(int64_t rows, int64_t cols) {
  return {{rows, cols}, memory::data_type::f32, memory::format_tag::ab};
}

// Describes x [rows, in] times weights, whose layout `weights` gives.
dnnl::matmul::primitive_desc DescribeProduct(int64_t rows,
                                             const memory::desc& weights,
                                             bool has_bias) {
  const int64_t in = weights.dims()[0];
  const int64_t out = weights.dims()[1];
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc x = Dense(rows, in);
  const memory::desc bias = Dense(1, out);
  const memory::desc y = Dense(rows, out);
  const dnnl::matmul::desc desc = has_bias
                                      ? dnnl::matmul::desc(x, weights, bias, y)
                                      : dnnl::matmul::desc(x, weights, y);
  return {desc, attributes, CpuEngine()};
}

bool IsBatchInvariant(const dnnl::matmul::primitive_desc& product) {
  return std::string_view(product.impl_info_str()).starts_with("brg:");
}

// A product whose packed layout of weights is oneDNN's to choose.
dnnl::matmul::primitive_desc DescribeProduct(int64_t rows, int64_t in,
                                             int64_t out, bool has_bias) {
  const memory::desc any({in, out}, memory::data_type::f32,
                         memory::format_tag::any);
  return DescribeProduct(rows, any, has_bias);
}

// Every row count that RoundUpRows can give.
std::vector<int32_t> RowBuckets(int32_t max_rows) {
  std::vector<int32_t> buckets;
  for (int32_t rows = 1; rows <= max_rows; rows = buckets.back() + 1) {
    buckets.push_back(RoundUpRows(rows, max_rows));
  }
  return buckets;
}

// Output columns [first, first + count) of a Linear's weights.
struct Columns {
  const LinearWeights& weights;
  int32_t first;
  int32_t count;

  std::span<const float> bias() const {
    return weights.bias.empty() ? weights.bias
                                : weights.bias.subspan(first, count);
  }
};

// Calls pack(column, a few columns' rows of the weight), column counted from
// the slice's first.
template <typename Pack>
void ReadInPieces(const Columns& columns, const Pack& pack) {
  // oneDNN's packed blocks are at most so many columns wide, and so are ours:
  // no piece but the last has a part of one.
  constexpr int32_t kPieceColumns = 64;
  const int32_t in = columns.weights.in;
  std::vector<float> piece;
  for (int32_t c = 0; c < columns.count; c += kPieceColumns) {
    const int32_t count = std::min(kPieceColumns, columns.count - c);
    piece.resize(size_t(count) * in);
    columns.weights.read_rows(columns.first + c, piece);
    pack(c, std::span<float>(piece));
  }
}

class OneDnnSlice final : public Linear::Slice {
 public:
  // REQUIRES: oneDNN has kernels that keep Linear's promise.
  OneDnnSlice(const Columns& columns, int32_t max_rows)
      : stream_(CpuEngine()),
        buckets_(RowBuckets(max_rows)),
        has_bias_(!columns.bias().empty()),
        // One layout for all row counts.
        layout_(DescribeProduct(max_rows, columns.weights.in, columns.count,
                                has_bias_)
                    .weights_desc()),
        products_(buckets_.size()) {
    size_t scratch_bytes = 1;
    for (const int32_t rows : buckets_) {
      const auto product = DescribeProduct(rows, layout_, has_bias_);
      CHECK(IsBatchInvariant(product))
          << "For " << rows << " rows times [" << columns.weights.in << ", "
          << columns.count << "] oneDNN chose " << product.impl_info_str()
          << ", which may give other results in another batch, although it has "
             "brg kernels here. Set ONEDNN_MAX_CPU_ISA=AVX2 to compute with "
             "Folio's own kernel.";
      scratch_bytes =
          std::max(scratch_bytes, product.scratchpad_desc().get_size());
    }
    scratch_ = AlignedArray<std::byte>(scratch_bytes);
    Pack(columns);
  }

  void Forward(const Activations& x, int32_t first, int32_t rows,
               int32_t /*part*/, std::span<const uint8_t> /*next*/,
               float* y) override {
    const auto bucket =
        std::lower_bound(buckets_.begin(), buckets_.end(), rows);
    std::optional<Product>& product = products_[bucket - buckets_.begin()];
    if (!product.has_value()) product = MakeProduct(*bucket);
    // oneDNN's API has no const; it only reads the source.
    product->source.set_data_handle(const_cast<std::byte*>(x.row(first)));
    product->destination.set_data_handle(y);
    // (The C++ API would make a container of the arguments at each call.)
    CHECK_EQ(dnnl_primitive_execute(product->primitive.get(), stream_.get(),
                                    static_cast<int>(product->arguments.size()),
                                    product->arguments.data()),
             dnnl_success);
  }

  int64_t bytes() const override {
    return static_cast<int64_t>(packed_.size() + bias_.size() * sizeof(float));
  }

 private:
  // What one row count needs; `arguments` refers to the memories.
  struct Product {
    dnnl::matmul primitive;
    memory source;
    memory destination;
    memory weights;
    memory scratch;
    std::optional<memory> bias;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  void Pack(const Columns& columns) {
    const int64_t in = columns.weights.in;
    const size_t size = layout_.get_size();
    // What a layout adds to the weights must be 0.
    const bool is_padded = size != size_t(in) * columns.count * sizeof(float);
    packed_ = is_padded ? AlignedArray<std::byte>(size)
                        : AlignedArray<std::byte>::Uninitialised(size);
    ReadInPieces(columns, [&](int32_t first, std::span<float> rows) {
      const int64_t count = static_cast<int64_t>(rows.size()) / in;
      // [out, in] row-major is [in, out] column-major.
      memory plain(
          {{in, count}, memory::data_type::f32, memory::format_tag::ba},
          CpuEngine(), rows.data());
      memory packed(layout_.submemory_desc({in, count}, {0, first}),
                    CpuEngine(), packed_.data());
      dnnl::reorder(plain, packed).execute(stream_, plain, packed);
      stream_.wait();
    });
    bias_.assign(columns.bias().begin(), columns.bias().end());
  }

  Product MakeProduct(int32_t rows) {
    const auto desc = DescribeProduct(rows, layout_, has_bias_);
    Product product{
        .primitive = dnnl::matmul(desc),
        .source = memory(desc.src_desc(), CpuEngine(), nullptr),
        .destination = memory(desc.dst_desc(), CpuEngine(), nullptr),
        .weights = memory(layout_, CpuEngine(), packed_.data()),
        .scratch = memory(desc.scratchpad_desc(), CpuEngine(), scratch_.data()),
        .bias = {},
        .arguments = {}};
    product.arguments = {{DNNL_ARG_SRC, product.source.get()},
                         {DNNL_ARG_DST, product.destination.get()},
                         {DNNL_ARG_WEIGHTS, product.weights.get()},
                         {DNNL_ARG_SCRATCHPAD, product.scratch.get()}};
    if (has_bias_) {
      product.bias = memory(desc.bias_desc(), CpuEngine(), bias_.data());
      product.arguments.push_back({DNNL_ARG_BIAS, product.bias->get()});
    }
    return product;
  }

  dnnl::stream stream_;
  std::vector<int32_t> buckets_;
  bool has_bias_;
  memory::desc layout_;
  AlignedArray<std::byte> packed_;
  AlignedArray<std::byte> scratch_;
  std::vector<float> bias_;
  // One for each bucket, made when it is first used: making one takes up to a
  // millisecond, and most are never needed.
  std::vector<std::optional<Product>> products_;
};

// Of a product of Folio's own, whose parts are its panels.
class PanelSlice final : public Linear::Slice {
 public:
  PanelSlice(const Columns& columns, std::unique_ptr<PanelProduct> product)
      : product_(std::move(product)) {
    ReadInPieces(columns, [&](int32_t first, std::span<float> rows) {
      product_->PackRows(first, rows);
    });
    product_->SetBias(columns.bias());
  }

  static_assert(kPanelColumns % ColumnBlocks::kStripe == 0);
  int32_t num_parts() const override { return product_->num_panels(); }
  int32_t part_columns() const override { return kPanelColumns; }
  std::span<const uint8_t> Part(int32_t part) const override {
    return product_->Panel(part);
  }
  void Forward(const Activations& x, int32_t first, int32_t rows, int32_t part,
               std::span<const uint8_t> next, float* y) override {
    product_->RunPanel(x, first, rows, part, next, y);
  }

  int64_t bytes() const override { return product_->bytes(); }

 private:
  std::unique_ptr<PanelProduct> product_;
};

// Whether oneDNN has a `brg:` kernel.
bool ProbeIsBatchInvariant() {
  try {
    return IsBatchInvariant(DescribeProduct(/*rows=*/16, /*in=*/64, /*out=*/64,
                                            /*has_bias=*/true));
  } catch (const dnnl::error&) {
    return false;
  }
}

// Multiplies a few random matrices, and says whether each row comes out the
// same alone as among others. REQUIRES: ProbeIsBatchInvariant().
bool PassesSelfCheck() {
  constexpr int32_t kIn = 328;  // Neither whole vectors nor whole blocks.
  constexpr int32_t kOut = 80;
  constexpr int32_t kMaxRows = 33;
  std::minstd_rand random(1);
  const auto draw = [&] {
    return static_cast<float>(random()) / std::minstd_rand::max() - 0.5f;
  };
  LinearWeights weights{.in = kIn, .out = kOut};
  weights.read_rows = [&](int32_t, std::span<float> rows) {
    for (float& w : rows) w = draw();
  };
  OneDnnSlice slice({weights, 0, kOut}, kMaxRows);
  Activations x(ElementType::kF32, kMaxRows, kIn, /*num_workers=*/1);
  for (int32_t row = 0; row < kMaxRows; ++row) {
    std::generate_n(x.BeginRow(row, 0), kIn, draw);
    x.EndRow(row, 0);
  }
  std::vector<float> all(kMaxRows * kOut);
  slice.Forward(x, 0, kMaxRows, 0, {}, all.data());
  for (const int32_t count : {1, 2, 7, 16}) {
    std::vector<float> some(kMaxRows * kOut);
    for (int32_t row = 0; row + count <= kMaxRows; row += count) {
      slice.Forward(x, row, count, 0, {}, some.data());
      if (std::memcmp(some.data(), all.data() + row * kOut,
                      count * kOut * sizeof(float)) != 0) {
        return false;
      }
    }
  }
  return true;
}

// Whether oneDNN multiplies f32 on this machine; linear.h says why one product
// speaks for all.
bool OneDnnMultipliesF32() {
  static const bool choice = [] {
    const char* why = "oneDNN's brg kernels";
    bool passes = ProbeIsBatchInvariant();
    if (!passes) {
      why = "Folio's own kernel, because oneDNN has no brg kernel for it here";
    } else {
      HoldOpenMpToOneThread();
      passes = PassesSelfCheck();
      if (!passes) {
        why =
            "Folio's own kernel, because oneDNN's failed the check that a row "
            "does not depend on the others";
      }
    }
    LOG(INFO) << "Matrix products of f32: " << why << ".";
    return passes;
  }();
  return choice;
}

void SayHowBf16IsMultiplied() {
  static const bool said = [] {
    LOG(INFO) << "Matrix products of bf16: Folio's own kernel, "
              << (HasBf16DotProducts()
                      ? "with dot products of bf16."
                      : "as floats, because there are no dot products of bf16 "
                        "here.");
    return true;
  }();
  static_cast<void>(said);
}

LinearPath ChoosePath(ElementType type, LinearPath wanted) {
  if (type == ElementType::kBf16) SayHowBf16IsMultiplied();
  return type == ElementType::kF32 && wanted == LinearPath::kFastest &&
                 OneDnnMultipliesF32()
             ? LinearPath::kFastest
             : LinearPath::kPortable;
}

std::unique_ptr<Linear::Slice> MakeSlice(const Columns& columns,
                                         ElementType type, int32_t max_rows,
                                         LinearPath path) {
  if (path == LinearPath::kFastest) {
    return std::make_unique<OneDnnSlice>(columns, max_rows);
  }
  const int32_t in = columns.weights.in;
  if (!IsInteger(type)) {
    return std::make_unique<PanelSlice>(
        columns, std::make_unique<FloatProduct>(type, in, columns.count));
  }
  return std::make_unique<PanelSlice>(
      columns, std::make_unique<IntegerProduct>(type, columns.weights.int4_grid,
                                                in, columns.count));
}

}  // namespace

Linear::Linear(const LinearWeights& weights, ElementType type, int32_t max_rows,
               Executor* executor, LinearPath path)
    : in_(weights.in),
      type_(type),
      max_rows_(max_rows),
      cuts_(ColumnBlocks::EvenCuts(weights.out, executor->num_workers())),
      executor_(executor),
      path_(ChoosePath(type, path)),
      slices_(cuts_.size() - 1) {
  CHECK_GE(max_rows, 1);
  CHECK(weights.bias.empty() || weights.bias.size() == size_t(weights.out));
  executor_->ParallelFor(
      static_cast<int>(slices_.size()), [&](int slice, int /*worker*/) {
        HoldOpenMpToOneThread();
        const int32_t first = cuts_[slice];
        slices_[slice] = MakeSlice({weights, first, cuts_[slice + 1] - first},
                                   type_, max_rows, path_);
      });
}

Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;

bool Linear::IsFast(ElementType type) {
  if (IsInteger(type)) return IntegerProduct::IsFast();
  return type == ElementType::kF32 ? OneDnnMultipliesF32()
                                   : HasBf16DotProducts();
}

// (A matrix of few columns has fewer slices than another.)
const Linear::Slice* Linear::SliceOf(const Linear* linear, size_t slice) {
  return linear != nullptr && slice < linear->slices_.size()
             ? linear->slices_[slice].get()
             : nullptr;
}

int64_t Linear::bytes() const {
  int64_t bytes = 0;
  for (const auto& slice : slices_) bytes += slice->bytes();
  return bytes;
}

void Linear::Forward(const Activations& x, int32_t first, int32_t rows,
                     ColumnBlocks& y, const Linear* next) {
  CHECK(x.type() == ActivationTypeFor(type_));
  CHECK_EQ(x.cols(), in_);
  CHECK_GE(first, 0);
  CHECK_LE(first + RoundUpRows(rows, max_rows_), x.max_rows());
  CHECK_EQ(y.max_rows(), max_rows_);
  CHECK(y.cuts() == cuts_);
  for (const auto& slice : slices_) slice->StartParts();
  // Everybody begins with a slice of their own, which is read from the front,
  // and helps with the others' afterwards.
  const int num_slices = static_cast<int>(slices_.size());
  executor_->ParallelFor(num_slices, [&](int task, int /*worker*/) {
    HoldOpenMpToOneThread();
    for (int i = 0; i < num_slices; ++i) {
      const int slice = (task + i) % num_slices;
      slices_[slice]->DoParts(x, first, rows, SliceOf(next, slice), slice, y);
    }
  });
}

}  // namespace folio
