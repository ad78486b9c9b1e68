#include "runtime/kernels/linear.h"

#include <glog/logging.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/portable_product.h"

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
  // y, a dense [RoundUpRows(rows), cols] array, = x W^T + b; x is dense.
  virtual void Forward(const std::byte* x, int32_t rows, float* y) = 0;
  virtual int64_t bytes() const = 0;
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

memory::data_type OneDnnType(ElementType type) {
  return type == ElementType::kF32 ? memory::data_type::f32
                                   : memory::data_type::bf16;
}

memory::desc Dense(int64_t rows, int64_t cols, ElementType type) {
  return {{rows, cols}, OneDnnType(type), memory::format_tag::ab};
}

// Describes x [rows, in] times weights, whose type and layout `weights` gives.
dnnl::matmul::primitive_desc DescribeProduct(int64_t rows,
                                             const memory::desc& weights,
                                             ElementType type, bool has_bias) {
  const int64_t in = weights.dims()[0];
  const int64_t out = weights.dims()[1];
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc x = Dense(rows, in, type);
  const memory::desc bias = Dense(1, out, ElementType::kF32);
  const memory::desc y = Dense(rows, out, ElementType::kF32);
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
                                             int64_t out, ElementType type,
                                             bool has_bias) {
  const memory::desc any({in, out}, OneDnnType(type), memory::format_tag::any);
  return DescribeProduct(rows, any, type, has_bias);
}

bool ProbeIsBatchInvariant(ElementType type) {
  try {
    return IsBatchInvariant(DescribeProduct(/*rows=*/16, /*in=*/64, /*out=*/64,
                                            type, /*has_bias=*/true));
  } catch (const dnnl::error&) {
    return false;  // Nothing multiplies this type here.
  }
}

// Whether oneDNN keeps Linear's promise on this machine; linear.h says why one
// product speaks for all.
bool OneDnnIsBatchInvariant(ElementType type) {
  static const bool f32 = ProbeIsBatchInvariant(ElementType::kF32);
  static const bool bf16 = ProbeIsBatchInvariant(ElementType::kBf16);
  return type == ElementType::kF32 ? f32 : bf16;
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
  // REQUIRES: OneDnnIsBatchInvariant(type).
  OneDnnSlice(const Columns& columns, ElementType type, int32_t max_rows)
      : stream_(CpuEngine()),
        type_(type),
        buckets_(RowBuckets(max_rows)),
        has_bias_(!columns.bias().empty()),
        // One layout for all row counts.
        layout_(DescribeProduct(max_rows, columns.weights.in, columns.count,
                                type, has_bias_)
                    .weights_desc()),
        products_(buckets_.size()) {
    size_t scratch_bytes = 1;
    for (const int32_t rows : buckets_) {
      const auto product = DescribeProduct(rows, layout_, type, has_bias_);
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

  void Forward(const std::byte* x, int32_t rows, float* y) override {
    const auto bucket =
        std::lower_bound(buckets_.begin(), buckets_.end(), rows);
    std::optional<Product>& product = products_[bucket - buckets_.begin()];
    if (!product.has_value()) product = MakeProduct(*bucket);
    // oneDNN's API has no const; it only reads the source.
    product->source.set_data_handle(const_cast<std::byte*>(x));
    product->destination.set_data_handle(y);
    // (primitive::execute makes an array of its own each time.)
    const dnnl_status_t status = dnnl_primitive_execute(
        product->primitive.get(), stream_.get(),
        static_cast<int>(product->arguments.size()), product->arguments.data());
    CHECK_EQ(status, dnnl_success);
  }

  int64_t bytes() const override {
    return static_cast<int64_t>(packed_.size() + bias_.size() * sizeof(float));
  }

 private:
  // What one row count needs; `arguments` refers to the two handles.
  struct Product {
    dnnl::matmul primitive;
    memory source;
    memory destination;
    std::vector<memory> kept;  // What else `arguments` refers to.
    std::vector<dnnl_exec_arg_t> arguments;
  };

  void Pack(const Columns& columns) {
    const int64_t in = columns.weights.in;
    packed_ = AlignedArray<std::byte>(layout_.get_size());
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
    const auto desc = DescribeProduct(rows, layout_, type_, has_bias_);
    Product product{dnnl::matmul(desc),
                    memory(desc.src_desc(), CpuEngine(), nullptr),
                    memory(desc.dst_desc(), CpuEngine(), nullptr),
                    {},
                    {}};
    const auto add = [&product](int argument, const memory& value) {
      product.kept.push_back(value);
      product.arguments.push_back({argument, value.get()});
    };
    add(DNNL_ARG_SRC, product.source);
    add(DNNL_ARG_DST, product.destination);
    add(DNNL_ARG_WEIGHTS, memory(layout_, CpuEngine(), packed_.data()));
    add(DNNL_ARG_SCRATCHPAD,
        memory(desc.scratchpad_desc(), CpuEngine(), scratch_.data()));
    if (has_bias_) {
      add(DNNL_ARG_BIAS, memory(desc.bias_desc(), CpuEngine(), bias_.data()));
    }
    return product;
  }

  dnnl::stream stream_;
  ElementType type_;
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

class PortableSlice final : public Linear::Slice {
 public:
  PortableSlice(const Columns& columns, ElementType type)
      : product_(type, columns.weights.in, columns.count) {
    ReadInPieces(columns, [&](int32_t first, std::span<float> rows) {
      product_.PackRows(first, rows);
    });
    product_.SetBias(columns.bias());
  }

  void Forward(const std::byte* x, int32_t rows, float* y) override {
    product_.Run(x, rows, y);
  }

  int64_t bytes() const override { return product_.bytes(); }

 private:
  PortableProduct product_;
};

void LogPathOnce(LinearPath path) {
  if (path == LinearPath::kFastest) {
    LOG_FIRST_N(INFO, 1) << "Matrix products: oneDNN's brg kernels.";
  } else {
    LOG_FIRST_N(INFO, 1)
        << "Matrix products: Folio's own fixed-order kernel, because oneDNN "
           "has none here whose results do not depend on the batch, or "
           "because it was asked for.";
  }
}

}  // namespace

Linear::Linear(const LinearWeights& weights, ElementType type, int32_t max_rows,
               Executor* executor, LinearPath path)
    : in_(weights.in),
      type_(type),
      max_rows_(max_rows),
      cuts_(ColumnBlocks::EvenCuts(weights.out, executor->num_workers())),
      executor_(executor),
      path_(OneDnnIsBatchInvariant(type) ? path : LinearPath::kPortable),
      slices_(cuts_.size() - 1) {
  CHECK_GE(max_rows, 1);
  CHECK(weights.bias.empty() || weights.bias.size() == size_t(weights.out));
  executor_->ParallelFor(static_cast<int>(slices_.size()), [&](int slice,
                                                               int /*worker*/) {
    HoldOpenMpToOneThread();
    const int32_t first = cuts_[slice];
    const Columns columns{weights, first, cuts_[slice + 1] - first};
    if (path_ == LinearPath::kFastest) {
      slices_[slice] = std::make_unique<OneDnnSlice>(columns, type, max_rows);
    } else {
      slices_[slice] = std::make_unique<PortableSlice>(columns, type);
    }
  });
  LogPathOnce(path_);
}

Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;

bool Linear::IsFast(ElementType type) { return OneDnnIsBatchInvariant(type); }

int64_t Linear::bytes() const {
  int64_t bytes = 0;
  for (const auto& slice : slices_) bytes += slice->bytes();
  return bytes;
}

void Linear::Forward(const Activations& x, int32_t first, int32_t rows,
                     ColumnBlocks& y) {
  CHECK(x.type() == type_);
  CHECK_EQ(x.cols(), in_);
  CHECK_GE(first, 0);
  CHECK_LE(first + RoundUpRows(rows, max_rows_), x.max_rows());
  CHECK_EQ(y.max_rows(), max_rows_);
  CHECK(y.cuts() == cuts_);
  executor_->ParallelFor(
      static_cast<int>(slices_.size()), [&](int slice, int /*worker*/) {
        HoldOpenMpToOneThread();
        slices_[slice]->Forward(x.row(first), rows, y.block_data(slice));
      });
}

}  // namespace folio
