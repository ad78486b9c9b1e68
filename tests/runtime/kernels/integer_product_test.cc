#include "runtime/kernels/integer_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/random_floats.h"

namespace folio {
namespace {

struct Case {
  ElementType type;
  Int4Grid grid;
};
constexpr Case kCases[] = {{ElementType::kInt8, Int4Grid::kSymmetric},
                           {ElementType::kInt4, Int4Grid::kSymmetric},
                           {ElementType::kInt4, Int4Grid::kAffine}};

// Weights [out, in] as the type keeps them, computed in the plainest way.
std::vector<float> Kept(const Case& c, const std::vector<float>& weights,
                        int32_t in) {
  std::vector<float> kept = weights;
  for (size_t row = 0; row < weights.size(); row += in) {
    if (c.type == ElementType::kInt8) {
      float greatest = 0;
      for (int32_t k = 0; k < in; ++k) {
        greatest = std::max(greatest, std::abs(weights[row + k]));
      }
      for (int32_t k = 0; k < in; ++k) {
        const float q = std::nearbyint(weights[row + k] * (127 / greatest));
        kept[row + k] = greatest / 127 * q;
      }
      continue;
    }
    for (int32_t k = 0; k < in; k += 32) {
      float group[32] = {};
      const int32_t count = std::min(32, in - k);
      std::copy_n(weights.data() + row + k, count, group);
      const Int4Group quantised = QuantiseInt4(group, c.grid);
      for (int32_t i = 0; i < count; ++i) {
        kept[row + k + i] = quantised.Weight(i, c.grid);
      }
    }
  }
  return kept;
}

struct Product {
  Product(const Case& c, int32_t in, int32_t out)
      : weights(RandomFloats(1, size_t(in) * out, 0.3f)),
        bias(RandomFloats(2, out, 1)),
        product(c.type, c.grid, in, out) {
    product.PackRows(0, weights);
    product.SetBias(bias);
  }

  std::vector<float> Run(const Activations& x, int32_t first, int32_t rows) {
    std::vector<float> y(rows * bias.size());
    for (int32_t i = 0; i < product.num_panels(); ++i) {
      // (The last one asks for the first, as if another product followed.)
      product.RunPanel(x, first, rows, i,
                       product.Panel((i + 1) % product.num_panels()), y.data());
    }
    return y;
  }

  std::vector<float> weights;
  std::vector<float> bias;
  IntegerProduct product;
};

TEST(IntegerProductTest, AgreesWithDoublePrecisionOnWhatIsKept) {
  constexpr int32_t kRows = 8;
  for (const Case& c : kCases) {
    for (const auto& [in, out] :
         {std::pair{1, 1}, {31, 70}, {32, 64}, {33, 63}, {300, 130}}) {
      Activations x(c.type, kRows, in, /*num_workers=*/1);
      SetRows(x, 0, RandomFloats(3, size_t(kRows) * in, 2));
      const std::vector<float> kept_x = Values(x, kRows);
      ForEachTarget([&] {
        Product p(c, in, out);
        const std::vector<float> kept = Kept(c, p.weights, in);
        const std::vector<float> y = p.Run(x, 0, kRows);
        for (int32_t r = 0; r < kRows; ++r) {
          for (int32_t o = 0; o < out; ++o) {
            double exact = p.bias[o];
            double size = std::abs(exact);
            for (int32_t k = 0; k < in; ++k) {
              const double term =
                  double{kept[size_t(o) * in + k]} * kept_x[size_t(r) * in + k];
              exact += term;
              size += std::abs(term);
            }
            // A few roundings for each group, for the scales, and for writing
            // what is kept as floats.
            const double bound = (2 * (in / 32 + 1) + 6) * 0x1p-24 * size;
            ASSERT_NEAR(y[size_t(r) * out + o], exact, bound)
                << NameOf(c.type) << " " << in << " to " << out;
          }
        }
      });
    }
  }
}

// Integers add up exactly: all machines agree to the bit where no fraction is
// added up, and few rows, which are multiplied in another way, with many.
TEST(IntegerProductTest, RowsAndInstructionSetsAgreeToTheBit) {
  constexpr int32_t kIn = 333;
  constexpr int32_t kOut = 100;
  constexpr int32_t kRows = 29;
  for (const Case& c : kCases) {
    Activations x(c.type, kRows, kIn, /*num_workers=*/1);
    SetRows(x, 0, RandomFloats(3, size_t{kRows} * kIn, 2));
    std::vector<float> expected;
    ForEachTarget([&] {
      Product p(c, kIn, kOut);
      // (A bias is added in one rounding where there is an instruction for it.)
      p.product.SetBias(std::vector<float>(kOut));
      const std::vector<float> all = p.Run(x, 0, kRows);
      if (expected.empty()) expected = all;
      if (c.type == ElementType::kInt8) {
        EXPECT_TRUE(SameBits(all, expected));
      }
      for (int32_t rows = 1; rows <= 14; ++rows) {
        for (int32_t first : {0, 3, kRows - rows}) {
          ASSERT_TRUE(SameBits(p.Run(x, first, rows),
                               std::span(all).subspan(size_t(first) * kOut,
                                                      size_t(rows) * kOut)))
              << rows << " rows";
        }
      }
    });
  }
}

// The greatest sums that there are: they fit into 32 bits, and nothing
// saturates on the way.
TEST(IntegerProductTest, GreatestSumsAreExact) {
  constexpr int32_t kIn = IntegerProduct::kMaxIn;
  Activations x(ElementType::kInt8, 1, kIn, /*num_workers=*/1);
  SetRows(x, 0, std::vector<float>(kIn, 127.0f));
  const std::vector<float> weights(kIn, -127.0f);
  ForEachTarget([&] {
    IntegerProduct product(ElementType::kInt8, Int4Grid::kSymmetric, kIn, 1);
    product.PackRows(0, weights);
    float y = 0;
    product.RunPanel(x, 0, 1, 0, /*next=*/{}, &y);
    EXPECT_EQ(y, -127.0f * 127.0f * kIn);
  });
}

TEST(IntegerProductTest, BytesAreThoseOfCodesScalesAndBias) {
  const auto bytes = [](const Case& c) {
    return IntegerProduct(c.type, c.grid, 64, 128).bytes();
  };
  EXPECT_EQ(bytes(kCases[0]), 64 * 128 + 2 * 128 * 4);
  EXPECT_EQ(bytes(kCases[1]), 64 * 128 / 32 * 18 + 128 * 4);
  EXPECT_EQ(bytes(kCases[2]), 64 * 128 / 32 * 20 + 128 * 4);
}

using Weights = std::vector<float>;

double SquaredError(const Weights& weights, const Int4Group& group,
                    Int4Grid grid) {
  double sum = 0;
  for (int32_t i = 0; i < 32; ++i) {
    const double error = double{weights[i]} - group.Weight(i, grid);
    sum += error * error;
  }
  return sum;
}

TEST(Int4GroupsTest, WhatIsOnAGridStays) {
  ForEachTarget([] {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const Weights random = RandomFloats(seed, 34, 1);
      // Codes of any range, and a step and a minimum that f16 holds exactly.
      const int least = static_cast<int>((random[32] + 1) * 7);
      const int most =
          least + 1 + static_cast<int>((random[33] + 1) / 2 * (14 - least));
      Weights symmetric(32);
      Weights affine(32);
      for (int32_t i = 0; i < 32; ++i) {
        const int code = least + static_cast<int>((random[i] + 1) / 2 *
                                                  (most - least + 0.99f));
        symmetric[i] = 0.046875f * static_cast<float>(code - 8);
        affine[i] = 0.046875f * static_cast<float>(code) - 0.375f;
      }
      ASSERT_EQ(SquaredError(symmetric,
                             QuantiseInt4(std::span<const float, 32>(symmetric),
                                          Int4Grid::kSymmetric),
                             Int4Grid::kSymmetric),
                0)
          << "seed " << seed;
      ASSERT_EQ(SquaredError(affine,
                             QuantiseInt4(std::span<const float, 32>(affine),
                                          Int4Grid::kAffine),
                             Int4Grid::kAffine),
                0)
          << "seed " << seed;
    }
  });
}

// Never worse than the usual choice: the greatest in size is code 0, or the
// least and the greatest are the ends of the grid.
TEST(Int4GroupsTest, IsAtLeastAsNearAsTheUsualGrid) {
  ForEachTarget([] {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const Weights weights = RandomFloats(seed, 32, 1);
      const auto [least, greatest] = std::ranges::minmax(weights);
      const float largest =
          std::abs(least) > std::abs(greatest) ? least : greatest;
      Int4Group usual{.step = static_cast<Float16>(largest / -8)};
      Int4Group ends{.step = static_cast<Float16>((greatest - least) / 15),
                     .minimum = static_cast<Float16>(least)};
      for (int32_t i = 0; i < 32; ++i) {
        usual.codes[i] = static_cast<uint8_t>(std::clamp(
            std::nearbyint(weights[i] / static_cast<float>(usual.step)) + 8,
            0.0f, 15.0f));
        ends.codes[i] = static_cast<uint8_t>(std::clamp(
            std::nearbyint((weights[i] - static_cast<float>(ends.minimum)) /
                           static_cast<float>(ends.step)),
            0.0f, 15.0f));
      }
      const auto error = [&](Int4Grid grid) {
        return SquaredError(
            weights, QuantiseInt4(std::span<const float, 32>(weights), grid),
            grid);
      };
      // (Errors are compared as floats of 32 squares.)
      const double slack = 1 + 40 * 0x1p-24;
      EXPECT_LE(error(Int4Grid::kSymmetric),
                SquaredError(weights, usual, Int4Grid::kSymmetric) * slack);
      EXPECT_LE(error(Int4Grid::kAffine),
                SquaredError(weights, ends, Int4Grid::kAffine) * slack);
    }
  });
}

TEST(Int4GroupsTest, TakesZerosAndWhatF16CannotHold) {
  for (const Int4Grid grid : {Int4Grid::kSymmetric, Int4Grid::kAffine}) {
    for (const float value : {0.0f, 1e30f, -1e30f, 1e-30f}) {
      const Weights weights(32, value);
      const Int4Group group =
          QuantiseInt4(std::span<const float, 32>(weights), grid);
      for (int32_t i = 0; i < 32; ++i) {
        EXPECT_TRUE(std::isfinite(group.Weight(i, grid)));
      }
    }
  }
}

}  // namespace
}  // namespace folio
