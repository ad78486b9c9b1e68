#include "runtime/kernels/linear.h"

#include <glog/logging.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

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
  // y, a dense [RoundUpRows(rows), cols] array, = x W^T + b.
  virtual void Forward(const float* x, int32_t rows, float* y) = 0;
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
  const dnnl::matmul::desc desc =
      has_bias ? dnnl::matmul::desc(Dense(rows, in), weights, Dense(1, out),
                                    Dense(rows, out))
               : dnnl::matmul::desc(Dense(rows, in), weights, Dense(rows, out));
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

// Whether oneDNN keeps Linear's promise on this machine; linear.h says why one
// product speaks for all.
bool OneDnnIsBatchInvariant() {
  static const bool result = IsBatchInvariant(
      DescribeProduct(/*rows=*/16, /*in=*/64, /*out=*/64, /*has_bias=*/true));
  return result;
}

// Every row count that RoundUpRows can give.
std::vector<int32_t> RowBuckets(int32_t max_rows) {
  std::vector<int32_t> buckets;
  for (int32_t rows = 1; rows <= max_rows; rows = buckets.back() + 1) {
    buckets.push_back(RoundUpRows(rows, max_rows));
  }
  return buckets;
}

class OneDnnSlice final : public Linear::Slice {
 public:
  // REQUIRES: OneDnnIsBatchInvariant().
  OneDnnSlice(const LinearWeights& weights, int32_t max_rows)
      : stream_(CpuEngine()),
        buckets_(RowBuckets(max_rows)),
        has_bias_(!weights.bias.empty()),
        // One layout for all row counts.
        layout_(DescribeProduct(max_rows, weights.in, weights.out, has_bias_)
                    .weights_desc()),
        products_(buckets_.size()) {
    size_t scratch_bytes = 1;
    for (const int32_t rows : buckets_) {
      const auto product = DescribeProduct(rows, layout_, has_bias_);
      CHECK(IsBatchInvariant(product))
          << "For " << rows << " rows times [" << weights.in << ", "
          << weights.out << "] oneDNN chose " << product.impl_info_str()
          << ", which may give other results in another batch, although it has "
             "brg kernels here. Set ONEDNN_MAX_CPU_ISA=AVX2 to compute with "
             "Folio's own kernel.";
      scratch_bytes =
          std::max(scratch_bytes, product.scratchpad_desc().get_size());
    }
    scratch_ = AlignedArray<std::byte>(scratch_bytes);
    Pack(weights);
  }

  void Forward(const float* x, int32_t rows, float* y) override {
    const auto bucket =
        std::lower_bound(buckets_.begin(), buckets_.end(), rows);
    std::optional<Product>& product = products_[bucket - buckets_.begin()];
    if (!product.has_value()) product = MakeProduct(*bucket);
    // oneDNN's API has no const; it only reads the source.
    product->source.set_data_handle(const_cast<float*>(x));
    product->destination.set_data_handle(y);
    product->primitive.execute(stream_, product->arguments);
  }

 private:
  // What one row count needs; `arguments` refers to the two handles.
  struct Product {
    dnnl::matmul primitive;
    memory source;
    memory destination;
    std::unordered_map<int, memory> arguments;
  };

  void Pack(const LinearWeights& weights) {
    packed_ = AlignedArray<std::byte>(layout_.get_size());
    // [out, in] row-major is [in, out] column-major.
    memory plain({{weights.in, weights.out},
                  memory::data_type::f32,
                  memory::format_tag::ba},
                 CpuEngine(), const_cast<float*>(weights.weight.data()));
    memory packed(layout_, CpuEngine(), packed_.data());
    dnnl::reorder(plain, packed).execute(stream_, plain, packed);
    stream_.wait();
    bias_.assign(weights.bias.begin(), weights.bias.end());
  }

  Product MakeProduct(int32_t rows) {
    const auto desc = DescribeProduct(rows, layout_, has_bias_);
    Product product{dnnl::matmul(desc),
                    memory(desc.src_desc(), CpuEngine(), nullptr),
                    memory(desc.dst_desc(), CpuEngine(), nullptr),
                    {}};
    product.arguments = {
        {DNNL_ARG_SRC, product.source},
        {DNNL_ARG_DST, product.destination},
        {DNNL_ARG_WEIGHTS, memory(layout_, CpuEngine(), packed_.data())},
        {DNNL_ARG_SCRATCHPAD,
         memory(desc.scratchpad_desc(), CpuEngine(), scratch_.data())}};
    if (has_bias_) {
      product.arguments.emplace(
          DNNL_ARG_BIAS, memory(desc.bias_desc(), CpuEngine(), bias_.data()));
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

class PortableSlice final : public Linear::Slice {
 public:
  explicit PortableSlice(const LinearWeights& weights)
      : product_(weights.weight, weights.bias, weights.in, weights.out) {}

  void Forward(const float* x, int32_t rows, float* y) override {
    product_.Run(x, rows, y);
  }

 private:
  PortableProduct product_;
};

// Output columns [first, first + count) of `weights`.
LinearWeights Columns(const LinearWeights& weights, int32_t first,
                      int32_t count) {
  LinearWeights slice;
  slice.in = weights.in;
  slice.out = count;
  slice.weight = weights.weight.subspan(size_t(first) * weights.in,
                                        size_t(count) * weights.in);
  if (!weights.bias.empty()) slice.bias = weights.bias.subspan(first, count);
  return slice;
}

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

Linear::Linear(const LinearWeights& weights, int32_t max_rows,
               Executor* executor, LinearPath path)
    : in_(weights.in),
      max_rows_(max_rows),
      cuts_(ColumnBlocks::EvenCuts(weights.out, executor->num_workers())),
      executor_(executor),
      path_(OneDnnIsBatchInvariant() ? path : LinearPath::kPortable),
      slices_(cuts_.size() - 1) {
  CHECK_GE(max_rows, 1);
  CHECK_EQ(weights.weight.size(), size_t(weights.in) * weights.out);
  CHECK(weights.bias.empty() || weights.bias.size() == size_t(weights.out));
  executor_->ParallelFor(
      static_cast<int>(slices_.size()), [&](int slice, int /*worker*/) {
        HoldOpenMpToOneThread();
        const int32_t first = cuts_[slice];
        const LinearWeights columns =
            Columns(weights, first, cuts_[slice + 1] - first);
        if (path_ == LinearPath::kFastest) {
          slices_[slice] = std::make_unique<OneDnnSlice>(columns, max_rows);
        } else {
          slices_[slice] = std::make_unique<PortableSlice>(columns);
        }
      });
  LogPathOnce(path_);
}

Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;

void Linear::Forward(std::span<const float> x, int32_t rows, ColumnBlocks& y) {
  const int32_t computed_rows = RoundUpRows(rows, max_rows_);
  CHECK_GE(x.size(), size_t(computed_rows) * in_);
  CHECK_EQ(y.max_rows(), max_rows_);
  CHECK(y.cuts() == cuts_);
  executor_->ParallelFor(
      static_cast<int>(slices_.size()), [&](int slice, int /*worker*/) {
        HoldOpenMpToOneThread();
        slices_[slice]->Forward(x.data(), rows, y.block_data(slice));
      });
}

}  // namespace folio
