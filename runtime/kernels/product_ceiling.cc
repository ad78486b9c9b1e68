#include "runtime/kernels/product_ceiling.h"

#include <glog/logging.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtime/kernels/aligned_array.h"
#include "runtime/kernels/column_blocks.h"

namespace folio {
namespace {

using dnnl::memory;

// Rows of the int8 product whose time a row bounds that of int4.
constexpr int32_t kManyRows = 512;

// Many times what caches hold.
constexpr size_t kBufferBytes = size_t{256} << 20;

// 32 weights of 4 bits, and a scale of 16 bits.
constexpr double kInt4BytesPerWeight = 4.5 / 8;

dnnl::engine& CpuEngine() {
  static auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

memory::data_type FactorType(CeilingType type) {
  switch (type) {
    case CeilingType::kF32:
      return memory::data_type::f32;
    case CeilingType::kBf16:
      return memory::data_type::bf16;
    case CeilingType::kInt8:
    case CeilingType::kInt4:
      return memory::data_type::s8;
  }
  LOG(FATAL) << "not a CeilingType: " << static_cast<int>(type);
}

// `any`: a layout of the weights that oneDNN chooses.
dnnl::matmul::primitive_desc Describe(int64_t rows, ProductShape shape,
                                      CeilingType type) {
  const memory::data_type factor = FactorType(type);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (factor == memory::data_type::s8) {
    constexpr int kByColumn = 1 << 1;
    attributes.set_output_scales(kByColumn,
                                 std::vector<float>(shape.out, 0.01f));
  }
  const memory::desc x({rows, shape.in}, factor, memory::format_tag::ab);
  const memory::desc weights({shape.in, shape.out}, factor,
                             memory::format_tag::any);
  const memory::desc y({rows, shape.out}, memory::data_type::f32,
                       memory::format_tag::ab);
  return {dnnl::matmul::desc(x, weights, y), attributes, CpuEngine()};
}

// Numbers near 1 (of any type), none of which would make a sum slow.
void FillWithNumbers(CeilingType type, AlignedArray<std::byte>& bytes) {
  const auto fill = [&](auto one) {
    for (size_t at = 0; at + sizeof(one) <= bytes.size(); at += sizeof(one)) {
      std::memcpy(bytes.data() + at, &one, sizeof(one));
    }
  };
  switch (type) {
    case CeilingType::kF32:
      return fill(1.0f);
    case CeilingType::kBf16:
      return fill(uint16_t{0x3F80});
    case CeilingType::kInt8:
    case CeilingType::kInt4:
      return fill(uint8_t{1});
  }
}

// Reads in four places at a time, which is faster than in one: more pages of
// memory are open, and more of what comes next is foreseen.
uint64_t Sum(std::span<const uint64_t> numbers) {
  constexpr size_t kPlaces = 4;
  constexpr size_t kLine = kCacheLineBytes / sizeof(uint64_t);
  const size_t stride = numbers.size() / kPlaces;
  uint64_t sums[kLine] = {};
  for (size_t i = 0; i + kLine <= stride; i += kLine) {
    for (size_t place = 0; place < kPlaces; ++place) {
      const uint64_t* line = numbers.data() + place * stride + i;
      for (size_t j = 0; j < kLine; ++j) sums[j] += line[j];
    }
  }
  return std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// A slice of a product's columns, for one row count.
struct Call {
  dnnl::stream stream;
  dnnl::matmul primitive;
  AlignedArray<std::byte> scratch;
  AlignedArray<std::byte> y;
  memory weights;  // The layer's are put into it.
  std::unordered_map<int, memory> arguments;
};

}  // namespace

// One product, in all layers.
class ProductCeiling::Product {
 public:
  Product(ProductShape shape, int32_t num_layers, CeilingType type,
          Executor* executor)
      : shape_(shape),
        type_(type),
        executor_(executor),
        cuts_(ColumnBlocks::EvenCuts(shape.out, executor->num_workers())),
        layers_(num_layers) {
    for (auto& slices : layers_) slices.resize(cuts_.size() - 1);
    executor->ParallelFor(num_slices(), [&](int slice, int /*worker*/) {
      const size_t size = Describe(kManyRows, SliceShape(slice), type)
                              .weights_desc()
                              .get_size();
      for (auto& slices : layers_) {
        slices[slice] = AlignedArray<std::byte>(size);
        FillWithNumbers(type, slices[slice]);
      }
    });
  }

  int32_t num_layers() const { return static_cast<int32_t>(layers_.size()); }
  int64_t layer_weights() const { return int64_t{shape_.in} * shape_.out; }

  // Makes what `rows` rows need.
  void Prepare(int32_t rows) {
    if (calls_.contains(rows)) return;
    PrepareSource(rows);
    std::vector<Call>& calls = calls_[rows];
    for (int slice = 0; slice < num_slices(); ++slice) {
      calls.push_back(MakeCall(rows, slice));
    }
    RunLayer(0, calls);
  }

  void RunLayer(int32_t layer, int32_t rows) {
    RunLayer(layer, calls_.at(rows));
  }

 private:
  int num_slices() const { return static_cast<int>(cuts_.size()) - 1; }

  ProductShape SliceShape(int slice) const {
    return {shape_.in, cuts_[slice + 1] - cuts_[slice]};
  }

  void PrepareSource(int32_t rows) {
    const size_t bytes = memory::data_type_size(FactorType(type_)) *
                         static_cast<size_t>(rows) * shape_.in;
    if (x_.size() >= bytes) return;
    x_ = AlignedArray<std::byte>(bytes);
    FillWithNumbers(type_, x_);
    for (auto& [unused, calls] : calls_) {
      for (Call& call : calls) {
        call.arguments.at(DNNL_ARG_SRC).set_data_handle(x_.data());
      }
    }
  }

  Call MakeCall(int32_t rows, int slice) {
    const auto desc = Describe(rows, SliceShape(slice), type_);
    // One packing serves all row counts.
    CHECK_EQ(desc.weights_desc().get_size(), layers_[0][slice].size());
    Call call{dnnl::stream(CpuEngine()),
              dnnl::matmul(desc),
              AlignedArray<std::byte>(desc.scratchpad_desc().get_size()),
              AlignedArray<std::byte>(desc.dst_desc().get_size()),
              memory(desc.weights_desc(), CpuEngine(), nullptr),
              {}};
    call.arguments = {
        {DNNL_ARG_SRC, memory(desc.src_desc(), CpuEngine(), x_.data())},
        {DNNL_ARG_WEIGHTS, call.weights},
        {DNNL_ARG_DST, memory(desc.dst_desc(), CpuEngine(), call.y.data())},
        {DNNL_ARG_SCRATCHPAD,
         memory(desc.scratchpad_desc(), CpuEngine(), call.scratch.data())}};
    return call;
  }

  void RunLayer(int32_t layer, std::vector<Call>& calls) {
    executor_->ParallelFor(num_slices(), [&](int slice, int /*worker*/) {
      // OpenMP's threads would compete with the Executor's.
      omp_set_num_threads(1);
      Call& call = calls[slice];
      call.weights.set_data_handle(layers_[layer][slice].data());
      call.primitive.execute(call.stream, call.arguments);
    });
  }

  const ProductShape shape_;
  const CeilingType type_;
  Executor* const executor_;
  const std::vector<int32_t> cuts_;
  std::vector<std::vector<AlignedArray<std::byte>>> layers_;  // [layer][slice]
  AlignedArray<std::byte> x_;                   // Enough rows for all calls.
  std::map<int32_t, std::vector<Call>> calls_;  // By rows; [slice].
};

ProductCeiling::ProductCeiling(const std::vector<ProductShape>& layer,
                               int32_t num_layers, ProductShape head,
                               CeilingType type, Executor* executor)
    : type_(type),
      head_(std::make_unique<Product>(head, /*num_layers=*/1, type, executor)) {
  for (const ProductShape& shape : layer) {
    layer_.push_back(
        std::make_unique<Product>(shape, num_layers, type, executor));
  }
}

ProductCeiling::~ProductCeiling() = default;

bool ProductCeiling::IsPossible(CeilingType type) {
  try {
    Describe(/*rows=*/1, {.in = 64, .out = 64}, type);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

double ProductCeiling::LayersSeconds(int32_t rows, int32_t last_rows,
                                     double read_bandwidth) {
  std::vector<Product*> products;
  for (const auto& product : layer_) products.push_back(product.get());
  const auto all = std::span<Product* const>(products);
  const int32_t last = products[0]->num_layers() - 1;
  double seconds = Seconds(all, {0, last}, rows, read_bandwidth) +
                   Seconds(all.first(1), {last, 1}, rows, read_bandwidth);
  if (last_rows > 0) {
    seconds += Seconds(all.subspan(1), {last, 1}, last_rows, read_bandwidth);
  }
  return seconds;
}

double ProductCeiling::HeadSeconds(int32_t rows, double read_bandwidth) {
  Product* const head[] = {head_.get()};
  return Seconds(head, {0, 1}, rows, read_bandwidth);
}

double ProductCeiling::Seconds(std::span<Product* const> products,
                               Layers layers, int32_t rows,
                               double read_bandwidth) {
  const bool is_int4 = type_ == CeilingType::kInt4;
  const int32_t run_rows = is_int4 ? kManyRows : rows;
  for (Product* product : products) product->Prepare(run_rows);
  std::vector<double> seconds(products.size());
  for (int32_t i = 0; i < layers.count; ++i) {
    for (size_t p = 0; p < products.size(); ++p) {
      const auto start = std::chrono::steady_clock::now();
      products[p]->RunLayer(layers.first + i, run_rows);
      seconds[p] += SecondsSince(start);
    }
  }
  double total = 0;
  for (size_t p = 0; p < products.size(); ++p) {
    if (is_int4) {
      const double bytes =
          kInt4BytesPerWeight *
          static_cast<double>(products[p]->layer_weights() * layers.count);
      seconds[p] =
          std::max(bytes / read_bandwidth, seconds[p] * rows / kManyRows);
    }
    total += seconds[p];
  }
  return total;
}

std::optional<CeilingType> CeilingTypeOf(std::string_view name) {
  constexpr std::pair<std::string_view, CeilingType> kNames[] = {
      {"f32", CeilingType::kF32},
      {"bf16", CeilingType::kBf16},
      {"int8", CeilingType::kInt8},
      {"int4", CeilingType::kInt4}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

ReadCeiling::ReadCeiling(Executor* executor)
    : executor_(executor), buffer_(kBufferBytes / sizeof(uint64_t)) {
  std::ranges::fill(buffer_.span(), uint64_t{1});
}

double ReadCeiling::Seconds() {
  const int workers = executor_->num_workers();
  const size_t part = buffer_.size() / workers;
  std::vector<uint64_t> sums(workers);
  const auto start = std::chrono::steady_clock::now();
  executor_->ParallelFor(workers, [&](int task, int /*worker*/) {
    sums[task] = Sum(buffer_.span().subspan(task * part, part));
  });
  const double seconds = SecondsSince(start);
  // Whoever reads nothing has no sum.
  for (const uint64_t sum : sums) CHECK_NE(sum, 0u);
  return seconds * static_cast<double>(buffer_.size()) /
         static_cast<double>(part * workers);
}

}  // namespace folio
