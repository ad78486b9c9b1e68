#include "runtime/kernels/split_qkv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/kv_places.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/random_floats.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

constexpr std::byte kUntouched{0xA5};
constexpr float kEpsilon = 1e-3f;

struct Case {
  AttentionShape shape;
  bool has_norm;
  bool has_rotary;
};

std::string NameOf(const Case& c) {
  return "Heads" + std::to_string(c.shape.num_heads) + "Kv" +
         std::to_string(c.shape.num_kv_heads) + "Dim" +
         std::to_string(c.shape.head_dim) + (c.has_norm ? "Norm" : "") +
         (c.has_rotary ? "Rotary" : "");
}
void PrintTo(const Case& c, std::ostream* os) { *os << NameOf(c); }

// One batch: the product, and pages with a slot for each row, no two of them
// neighbours.
class SplitProblem {
 public:
  SplitProblem(const Case& which, int32_t rows, uint64_t seed)
      : case_(which),
        rows_(rows),
        cols_((shape().num_heads + 2 * shape().num_kv_heads) *
              shape().head_dim),
        qkv_(RandomFloats(seed, size_t(rows) * cols_, 3)),
        q_norm_(RandomFloats(seed + 1, shape().head_dim, 2)),
        k_norm_(RandomFloats(seed + 2, shape().head_dim, 2)),
        positions_(rows) {
    for (int32_t r = 0; r < rows; ++r) {
      positions_[r] = static_cast<int32_t>(PhiloxAt(seed, 3, r)[0] % 5000);
    }
    if (!which.has_rotary) return;
    rotary_.emplace(RopeFrequencies(shape().head_dim, 10000, {}), 5000, rows);
    SerialExecutor executor;
    rotary_->SetPositions(positions_, executor);
  }

  const AttentionShape& shape() const { return case_.shape; }
  int32_t rows() const { return rows_; }
  int32_t cols() const { return cols_; }
  std::span<const float> Row(int32_t row) const {
    return std::span(qkv_).subspan(size_t(row) * cols_, cols_);
  }
  std::span<const float> all() const { return qkv_; }

  HeadTransforms Transforms() const {
    HeadTransforms transforms{.norm_epsilon = kEpsilon};
    if (case_.has_norm) {
      transforms.q_norm = q_norm_;
      transforms.k_norm = k_norm_;
    }
    if (rotary_.has_value()) transforms.rotary = &*rotary_;
    return transforms;
  }

  // What `head` of a row becomes, in double precision, and by how much the
  // kernel may err.
  struct Exact {
    std::vector<double> values;
    double bound;
  };
  Exact Transformed(int32_t row, std::span<const float> head,
                    bool is_query) const {
    std::vector<double> x(head.begin(), head.end());
    const int32_t d = shape().head_dim;
    double bound = 0;
    if (case_.has_norm) {
      double squares = 0;
      for (double v : x) squares += v * v;
      const double scale = 1 / std::sqrt(squares / d + double{kEpsilon});
      for (int32_t i = 0; i < d; ++i) {
        x[i] *= scale * (is_query ? q_norm_ : k_norm_)[i];
      }
      bound = 0.5 * (d + 2) + 4;  // As for RmsNorm: units of 2^-24.
    }
    double greatest = 0;
    for (double v : x) greatest = std::max(greatest, std::abs(v));
    if (rotary_.has_value()) {
      const std::vector<double> before = x;
      for (int32_t i = 0; i < d / 2; ++i) {
        const double cosine = rotary_->cosines(row)[i];
        const double sine = rotary_->sines(row)[i];
        x[i] = before[i] * cosine - before[i + d / 2] * sine;
        x[i + d / 2] = before[i + d / 2] * cosine + before[i] * sine;
      }
      bound = 2 * bound + 4;  // Two terms; two products and a sum round.
    }
    return {x, bound * 0x1p-24 * greatest};
  }

 private:
  Case case_;
  int32_t rows_;
  int32_t cols_;
  std::vector<float> qkv_;
  std::vector<float> q_norm_;
  std::vector<float> k_norm_;
  std::vector<int32_t> positions_;
  std::optional<Rotary> rotary_;
};

// Pages that hold a slot for each row, between slots of others.
class Pages {
 public:
  Pages(const AttentionShape& shape, ElementType type, int32_t rows)
      : head_dim_(shape.head_dim),
        kv_{.type = type, .page_size = kPageSize, .key_offset = 40} {
    // Gaps everywhere, which nobody may touch.
    const int64_t array_bytes = KvArrayBytes(kv_, head_dim_);
    const int64_t scale_bytes = kPageSize * int64_t{sizeof(float)};
    kv_.value_offset = kv_.key_offset + array_bytes + 8;
    kv_.key_scale_offset = kv_.value_offset + array_bytes + 8;
    kv_.value_scale_offset = kv_.key_scale_offset + scale_bytes + 4;
    kv_.head_stride = kv_.value_scale_offset + scale_bytes + 24;
    page_bytes_ = static_cast<size_t>(kv_.key_offset +
                                      shape.num_kv_heads * kv_.head_stride);
    memory_.assign(page_bytes_ * rows, kUntouched);
    // Row r has the page r from the end and slot 3 r % kPageSize.
    for (int32_t r = 0; r < rows; ++r) {
      slots_.push_back(
          {memory_.data() + (rows - 1 - r) * page_bytes_, 3 * r % kPageSize});
    }
  }

  const PagedKv& kv() const { return kv_; }
  std::span<const KvSlot> slots() const { return slots_; }
  const std::vector<std::byte>& memory() const { return memory_; }

  // What was stored for a row, as floats (of int8, without the scale).
  std::vector<float> Read(int32_t row, int32_t head, bool is_key) const {
    std::vector<float> values;
    for (int32_t i = 0; i < head_dim_; ++i) {
      values.push_back(FloatAt(Place(row, head, is_key, i)));
    }
    return values;
  }

  // The same, and makes the place one that nobody has touched. What pads a key
  // must be zeros.
  std::vector<float> Take(int32_t row, int32_t head, bool is_key) {
    std::vector<float> values = Read(row, head, is_key);
    const int32_t columns = is_key ? PaddedKeySize(kv_, head_dim_) : head_dim_;
    for (int32_t i = 0; i < columns; ++i) {
      std::byte* const place = Place(row, head, is_key, i);
      if (i >= head_dim_) {
        EXPECT_EQ(FloatAt(place), 0) << "column " << i;
      }
      std::fill_n(place, BytesOf(kv_.type), kUntouched);
    }
    return values;
  }
  float TakeScale(int32_t row, int32_t head, bool is_key) {
    std::byte* const place =
        ScalePlace(kv_, slots_[row].page, head, is_key, slots_[row].slot);
    float scale;
    std::memcpy(&scale, place, sizeof(scale));
    std::fill_n(place, sizeof(scale), kUntouched);
    return scale;
  }

  bool IsUntouched() const {
    return std::all_of(memory_.begin(), memory_.end(),
                       [](std::byte b) { return b == kUntouched; });
  }

 private:
  static constexpr int32_t kPageSize = 8;

  std::byte* Place(int32_t row, int32_t head, bool is_key,
                   int32_t column) const {
    const auto& [page, slot] = slots_[row];
    return is_key ? KeyPlace(kv_, page, head, slot, column)
                  : ValuePlace(kv_, page, head, head_dim_, slot, column);
  }
  float FloatAt(const std::byte* place) const {
    if (kv_.type == ElementType::kInt8) return static_cast<int8_t>(*place);
    if (kv_.type == ElementType::kF32) {
      float value;
      std::memcpy(&value, place, sizeof(value));
      return value;
    }
    uint16_t bits;
    std::memcpy(&bits, place, sizeof(bits));
    return FromBf16(bits);
  }

  int32_t head_dim_;
  PagedKv kv_;
  size_t page_bytes_ = 0;
  std::vector<std::byte> memory_;
  std::vector<KvSlot> slots_;
};

// Splits all rows, cut as given; returns q.
std::vector<float> Split(const SplitProblem& p, std::vector<int32_t> cuts,
                         Pages& pages, Executor& executor) {
  const ColumnBlocks qkv = Blocks(p.all(), std::move(cuts));
  std::vector<float> q(size_t(p.rows()) * p.shape().num_heads *
                       p.shape().head_dim);
  SplitQkv(qkv, {0, p.rows()}, p.shape(), p.Transforms(), pages.kv(),
           pages.slots(), q, executor);
  return q;
}

class SplitQkvTest : public testing::TestWithParam<Case> {
 protected:
  const AttentionShape& shape() const { return GetParam().shape; }
};

TEST_P(SplitQkvTest, AgreesWithDoublePrecisionAndTouchesNothingElse) {
  const SplitProblem p(GetParam(), 7, /*seed=*/1);
  const int32_t d = shape().head_dim;
  const auto expect_near = [](std::span<const float> out,
                              const SplitProblem::Exact& exact) {
    ASSERT_EQ(out.size(), exact.values.size());
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], exact.values[i], exact.bound) << "element " << i;
    }
  };
  SerialExecutor executor;
  ForEachTarget([&] {
    Pages pages(shape(), ElementType::kF32, p.rows());
    const std::vector<float> q =
        Split(p, ColumnBlocks::EvenCuts(p.cols(), 3), pages, executor);
    for (int32_t r = 0; r < p.rows(); ++r) {
      std::span<const float> heads = p.Row(r);
      const auto next = [&] {
        const std::span<const float> head = heads.first(d);
        heads = heads.subspan(d);
        return head;
      };
      for (int32_t h = 0; h < shape().num_heads; ++h) {
        const size_t place = (size_t(r) * shape().num_heads + h) * d;
        expect_near(std::span(q).subspan(place, d),
                    p.Transformed(r, next(), /*is_query=*/true));
      }
      for (int32_t h = 0; h < shape().num_kv_heads; ++h) {
        expect_near(pages.Take(r, h, /*is_key=*/true),
                    p.Transformed(r, next(), /*is_query=*/false));
      }
      for (int32_t h = 0; h < shape().num_kv_heads; ++h) {
        EXPECT_TRUE(SameBits(pages.Take(r, h, /*is_key=*/false), next()));
      }
    }
    EXPECT_TRUE(pages.IsUntouched());
  });
}

TEST_P(SplitQkvTest, Bf16IsTheRoundedF32) {
  const SplitProblem p(GetParam(), 5, /*seed=*/2);
  SerialExecutor executor;
  ForEachTarget([&] {
    Pages f32(shape(), ElementType::kF32, p.rows());
    Pages bf16(shape(), ElementType::kBf16, p.rows());
    const std::vector<int32_t> cuts = ColumnBlocks::EvenCuts(p.cols(), 2);
    EXPECT_TRUE(SameBits(Split(p, cuts, f32, executor),
                         Split(p, cuts, bf16, executor)));
    for (int32_t r = 0; r < p.rows(); ++r) {
      for (int32_t h = 0; h < shape().num_kv_heads; ++h) {
        for (bool is_key : {false, true}) {
          EXPECT_TRUE(
              SameBits(bf16.Take(r, h, is_key),
                       Rounded(f32.Take(r, h, is_key), ElementType::kBf16)));
        }
      }
    }
    EXPECT_TRUE(bf16.IsUntouched());
  });
}

// The definition: scale = max |x| / 127, and the nearest integer; where x /
// scale is nearly between two of them, the kernel's rounding (of 127 / max, and
// of the product) may choose the other.
void ExpectQuantised(std::span<const float> q, float scale,
                     std::span<const float> x) {
  ASSERT_EQ(q.size(), x.size());
  float greatest = 0;
  for (const float v : x) greatest = std::max(greatest, std::abs(v));
  EXPECT_NEAR(scale, greatest / 127.0, greatest * 0x1p-24 / 127);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(q[i], std::nearbyint(q[i]));
    EXPECT_NEAR(q[i], x[i] * 127.0 / greatest, 0.5 + 127 * 0x1p-22);
  }
}

TEST_P(SplitQkvTest, Int8IsTheRoundedF32) {
  const SplitProblem p(GetParam(), 5, /*seed=*/5);
  SerialExecutor executor;
  ForEachTarget([&] {
    Pages f32(shape(), ElementType::kF32, p.rows());
    Pages int8(shape(), ElementType::kInt8, p.rows());
    const std::vector<int32_t> cuts = ColumnBlocks::EvenCuts(p.cols(), 2);
    EXPECT_TRUE(SameBits(Split(p, cuts, f32, executor),
                         Split(p, cuts, int8, executor)));
    for (int32_t r = 0; r < p.rows(); ++r) {
      for (int32_t h = 0; h < shape().num_kv_heads; ++h) {
        for (bool is_key : {false, true}) {
          ExpectQuantised(int8.Take(r, h, is_key), int8.TakeScale(r, h, is_key),
                          f32.Take(r, h, is_key));
        }
      }
    }
    EXPECT_TRUE(int8.IsUntouched());
  });
}

TEST_P(SplitQkvTest, DoesNotDependOnCutsOrThreads) {
  const SplitProblem p(GetParam(), 29, /*seed=*/3);
  SerialExecutor serial;
  const auto parallel = MakeParallelTestExecutor(2);
  Pages expected(shape(), ElementType::kF32, p.rows());
  const std::vector<float> q = Split(p, {0, p.cols()}, expected, serial);
  for (int32_t num_blocks = 2; num_blocks <= 9; ++num_blocks) {
    Pages pages(shape(), ElementType::kF32, p.rows());
    EXPECT_TRUE(SameBits(Split(p, ColumnBlocks::EvenCuts(p.cols(), num_blocks),
                               pages, *parallel),
                         q));
    EXPECT_EQ(pages.memory(), expected.memory()) << num_blocks << " blocks";
  }
}

TEST_P(SplitQkvTest, RowsDoNotDependOnTheBatch) {
  // (Angles belong to the row, so the first rows of the same batch.)
  const SplitProblem p(GetParam(), 20, /*seed=*/4);
  SerialExecutor executor;
  const std::vector<int32_t> cuts = ColumnBlocks::EvenCuts(p.cols(), 2);
  Pages all(shape(), ElementType::kBf16, p.rows());
  const std::vector<float> q = Split(p, cuts, all, executor);
  const ColumnBlocks qkv = Blocks(p.all(), cuts);
  // In strips, whose products have their own row 0.
  Pages in_strips(shape(), ElementType::kBf16, p.rows());
  std::vector<float> q_of_strips(q.size(), 7.0f);
  for (const Rows rows : {Rows{0, 3}, Rows{3, 11}, Rows{14, 6}}) {
    const auto part = std::span(p.all()).subspan(size_t(rows.first) * p.cols(),
                                                 size_t(rows.count) * p.cols());
    SplitQkv(Blocks(part, cuts), rows, shape(), p.Transforms(), in_strips.kv(),
             in_strips.slots(), q_of_strips, executor);
  }
  EXPECT_TRUE(SameBits(q_of_strips, q));
  EXPECT_EQ(in_strips.memory(), all.memory());
  for (int32_t rows : {0, 1, 2, 9, 19}) {
    Pages pages(shape(), ElementType::kBf16, p.rows());
    std::vector<float> some(q.size(), 7.0f);
    SplitQkv(qkv, {0, rows}, shape(), p.Transforms(), pages.kv(), pages.slots(),
             some, executor);
    const size_t size = size_t(rows) * shape().num_heads * shape().head_dim;
    EXPECT_TRUE(
        SameBits(std::span(some).first(size), std::span(q).first(size)));
    for (size_t i = size; i < some.size(); ++i) EXPECT_EQ(some[i], 7.0f);
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t h = 0; h < shape().num_kv_heads; ++h) {
        for (bool is_key : {false, true}) {
          EXPECT_TRUE(
              SameBits(pages.Take(r, h, is_key), all.Read(r, h, is_key)));
        }
      }
    }
    EXPECT_TRUE(pages.IsUntouched());
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (bool has_norm : {false, true}) {
    for (bool has_rotary : {false, true}) {
      for (const AttentionShape& shape :
           {AttentionShape{4, 4, 16}, AttentionShape{9, 3, 64},
            AttentionShape{4, 1, 128}, AttentionShape{3, 1, 2},
            AttentionShape{5, 5, 10}, AttentionShape{2, 1, 34},
            AttentionShape{1, 1, kMaxHeadDim}}) {
        cases.push_back({shape, has_norm, has_rotary});
      }
    }
    cases.push_back({{2, 1, 7}, has_norm, false});
    cases.push_back({{3, 3, 1}, has_norm, false});
    cases.push_back({{2, 2, 37}, has_norm, false});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, SplitQkvTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return NameOf(test.param); });

// One head of one row, [q, k, v] with k and v the same.
float ScaleOf(std::vector<float> head, std::vector<float>& stored) {
  const AttentionShape shape{.num_heads = 1,
                             .num_kv_heads = 1,
                             .head_dim = static_cast<int32_t>(head.size())};
  std::vector<float> qkv(head.size(), 0.0f);
  for (int i = 0; i < 2; ++i) qkv.insert(qkv.end(), head.begin(), head.end());
  const int32_t cols = static_cast<int32_t>(qkv.size());
  Pages pages(shape, ElementType::kInt8, 1);
  std::vector<float> q(head.size());
  SerialExecutor executor;
  SplitQkv(Blocks(qkv, {0, cols}), {0, 1}, shape, {}, pages.kv(), pages.slots(),
           q, executor);
  stored = pages.Take(0, 0, /*is_key=*/true);
  EXPECT_EQ(pages.Take(0, 0, /*is_key=*/false), stored);
  const float scale = pages.TakeScale(0, 0, /*is_key=*/true);
  const float value_scale = pages.TakeScale(0, 0, /*is_key=*/false);
  EXPECT_TRUE(SameBits({&scale, 1}, {&value_scale, 1}));
  return scale;
}

TEST(SplitQkvInt8Test, HandComputedAndNoNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ForEachTarget([&] {
    std::vector<float> stored;
    EXPECT_EQ(ScaleOf({127, -1, 2.5f, -3.5f, 0.4f}, stored), 1);
    EXPECT_EQ(stored,
              (std::vector<float>{127, -1, 2, -4, 0}));  // Ties to even.
    EXPECT_EQ(ScaleOf({-254, 2}, stored), 2);
    EXPECT_EQ(stored, (std::vector<float>{-127, 1}));
    EXPECT_EQ(ScaleOf({0, -0.0f, 0}, stored), 0);
    EXPECT_EQ(stored, (std::vector<float>{0, 0, 0}));
    for (const float bad : {inf, -inf, nan, -nan}) {
      EXPECT_TRUE(std::isnan(ScaleOf({1, bad, 3}, stored)));
    }
  });
}

}  // namespace
}  // namespace folio
