#include "bench/load/synthetic.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/philox.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr int32_t kCount = 20000;

// Of a share of kCount: five standard deviations of the binomial distribution.
double Tolerance(double share) {
  return 5 * std::sqrt(share * (1 - share) / kCount);
}

double ShareOf(const std::vector<LoadRequest>& load,
               const std::function<bool(const LoadRequest&)>& is_one) {
  return static_cast<double>(std::ranges::count_if(load, is_one)) /
         static_cast<double>(load.size());
}

// Chat as its formulas have it, with everything else at zero. Measurements
// that were made on such loads are compared with later ones, so the positions
// of the draws count, too.
TEST(MakeLoadTest, MakesTheChatOfItsFormulas) {
  constexpr uint64_t kSeed = 7;
  const std::vector<LoadRequest> load = MakeLoad(
      {.count = 500,
       .arrivals = {.process = Arrivals::Process::kPoisson, .rate = 10},
       .prompt = LogNormalLength{130, 0.9, 800},
       .output = LogNormalLength{90, 0.7, 400},
       .long_prompt_every = 10,
       .seed = kSeed});
  const auto length = [](uint64_t stream, uint64_t i, double median,
                         double sigma, double most) {
    const double u = 1 - UniformDouble(kSeed, stream, 2 * i);
    const double v = UniformDouble(kSeed, stream, 2 * i + 1);
    const double normal =
        std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    return static_cast<int32_t>(
        std::clamp(std::round(median * std::exp(sigma * normal)), 1.0, most));
  };
  ASSERT_EQ(load.size(), 500u);
  double arrival = 0;
  for (uint64_t i = 0; i < load.size(); ++i) {
    const LoadRequest expected{
        .arrival = load[i].arrival,
        .prompt_tokens = i % 10 == 9 ? 3000 : length(0, i, 130, 0.9, 800),
        .output_tokens = length(1, i, 90, 0.7, 400),
        .token_seed = (kSeed << 32) + i};
    EXPECT_EQ(load[i], expected) << i;
    // Sums of Durations are rounded to a quarter of a nanosecond each time.
    EXPECT_NEAR(absl::ToDoubleSeconds(load[i].arrival), arrival, 1e-6) << i;
    arrival -= std::log(1 - UniformDouble(kSeed, 2, i)) / 10;
  }
}

// What the benchmarks printed in the README were measured with.
TEST(MakeLoadTest, MakesTheLoadsOfTheBenchmarks) {
  const auto sums = [](const std::vector<LoadRequest>& load) {
    std::pair<int64_t, int64_t> tokens;
    for (const LoadRequest& request : load) {
      tokens.first += request.prompt_tokens;
      tokens.second += request.output_tokens;
    }
    return tokens;
  };
  EXPECT_EQ(sums(MakeLoad({.count = 2000})), std::pair(582877L, 419255L));
  EXPECT_EQ(sums(MakeLoad({.count = 48,
                           .prompt = LogNormalLength{32, 0.5, 128},
                           .output = LogNormalLength{40, 0.8, 200}})),
            std::pair(1648L, 2429L));
  const std::vector<LoadRequest> steady = MakeLoad(
      {.count = 40,
       .arrivals = {.process = Arrivals::Process::kPoisson, .rate = 1.7},
       .prompt = LogNormalLength{130, 0.9, 800},
       .output = LogNormalLength{90, 0.7, 400},
       .long_prompt_every = 10});
  EXPECT_EQ(sums(steady), std::pair(18139L, 4107L));
  EXPECT_NEAR(absl::ToDoubleSeconds(steady[1].arrival), 1.373213393, 1e-9);
  EXPECT_NEAR(absl::ToDoubleSeconds(steady[39].arrival), 25.207700564, 1e-8);
}

TEST(MakeLoadTest, PutsLongPromptsBetween) {
  const std::vector<LoadRequest> load = MakeLoad({.count = 30,
                                                  .prompt = FixedLength{5},
                                                  .long_prompt_every = 10,
                                                  .long_prompt_tokens = 3000});
  for (size_t i = 0; i < load.size(); ++i) {
    EXPECT_EQ(load[i].prompt_tokens, i % 10 == 9 ? 3000 : 5) << i;
    EXPECT_EQ(load[i].arrival, absl::ZeroDuration());
  }
}

// Two conversations of three turns, and one that `count` ends.
TEST(MakeLoadTest, MakesConversations) {
  const SyntheticLoad wanted{
      .count = 8,
      .arrivals = {.process = Arrivals::Process::kConstant, .rate = 2},
      .prompt = FixedLength{20},
      .output = FixedLength{30},
      .shared_prefix_tokens = 100,
      .turns = 3,
      .think_ms = FixedLength{250},
      .tenants = 1000};
  const std::vector<LoadRequest> load = MakeLoad(wanted);
  const auto first = [&](int i, int half_seconds) {
    return LoadRequest{.arrival = absl::Milliseconds(500) * half_seconds,
                       .prompt_tokens = 20,
                       .output_tokens = 30,
                       .token_seed = (uint64_t{1} << 32) + i,
                       .prefix_seed = load[0].prefix_seed,
                       .prefix_tokens = 100,
                       .tenant = load[i].tenant};
  };
  const auto later = [&](int i, int opener) {
    return LoadRequest{.prompt_tokens = 20,
                       .output_tokens = 30,
                       .token_seed = (uint64_t{1} << 32) + i,
                       .tenant = load[opener].tenant,
                       .previous = i - 1,
                       .think_time = absl::Milliseconds(250)};
  };
  EXPECT_THAT(load,
              ElementsAre(first(0, 0), later(1, 0), later(2, 0), first(3, 1),
                          later(4, 3), later(5, 3), first(6, 2), later(7, 6)));
  EXPECT_NE(load[0].tenant, load[3].tenant);
}

TEST(MakeLoadTest, ThinksAsLongAsItIsTold) {
  SyntheticLoad wanted{.count = 1000, .turns = 2};
  std::set<absl::Duration> times;
  for (const LoadRequest& request : MakeLoad(wanted)) {
    times.insert(request.think_time);
  }
  EXPECT_THAT(times, ElementsAre(absl::ZeroDuration()));

  // 500 draws miss one of four with probability 4 * 0.75^500 < 1e-61.
  wanted.think_ms = UniformLength{.least = 7, .most = 10};
  for (const LoadRequest& request : MakeLoad(wanted)) {
    times.insert(request.think_time);
  }
  EXPECT_THAT(times, ElementsAre(absl::ZeroDuration(), absl::Milliseconds(7),
                                 absl::Milliseconds(8), absl::Milliseconds(9),
                                 absl::Milliseconds(10)));
}

TEST(MakeLoadTest, DrawsGroupsAndTenantsEvenly) {
  const std::vector<LoadRequest> load = MakeLoad({.count = kCount,
                                                  .shared_prefix_tokens = 1000,
                                                  .prefix_groups = 4,
                                                  .tenants = 5});
  std::map<uint64_t, int> groups;
  std::map<std::string, int> tenants;
  std::map<std::pair<uint64_t, std::string>, int> both;
  std::set<uint64_t> own_seeds;
  for (const LoadRequest& request : load) {
    EXPECT_EQ(request.prefix_tokens, 1000);
    ++groups[request.prefix_seed];
    ++tenants[request.tenant];
    ++both[{request.prefix_seed, request.tenant}];
    own_seeds.insert(request.token_seed);
  }
  ASSERT_EQ(groups.size(), 4u);
  for (const auto& [seed, count] : groups) {
    EXPECT_NEAR(count, kCount / 4.0, Tolerance(0.25) * kCount);
    EXPECT_FALSE(own_seeds.contains(seed));
  }
  ASSERT_EQ(tenants.size(), 5u);
  EXPECT_EQ(tenants.begin()->first, "tenant-0");
  EXPECT_EQ(tenants.rbegin()->first, "tenant-4");
  for (const auto& [tenant, count] : tenants) {
    EXPECT_NEAR(count, kCount / 5.0, Tolerance(0.2) * kCount);
  }
  // Neither depends on the other.
  ASSERT_EQ(both.size(), 20u);
  for (const auto& [pair, count] : both) {
    EXPECT_NEAR(count, kCount / 20.0, Tolerance(0.05) * kCount);
  }
  EXPECT_EQ(own_seeds.size(), size_t{kCount});
}

TEST(MakeLoadTest, GivesEachTroubleToItsShare) {
  const std::vector<LoadRequest> load =
      MakeLoad({.count = kCount,
                .cancel_share = 0.3,
                .cancel_within = absl::Seconds(8),
                .deadline_share = 0.2,
                .deadline = absl::Seconds(3),
                .slow_reader_share = 0.1,
                .read_delay = absl::Milliseconds(40)});
  const auto cancelled = [](const LoadRequest& r) {
    return r.cancel_after.has_value();
  };
  const auto hurried = [](const LoadRequest& r) {
    return r.deadline == absl::Seconds(3);
  };
  const auto slow = [](const LoadRequest& r) {
    return r.read_delay == absl::Milliseconds(40);
  };
  EXPECT_NEAR(ShareOf(load, cancelled), 0.3, Tolerance(0.3));
  EXPECT_NEAR(ShareOf(load, hurried), 0.2, Tolerance(0.2));
  EXPECT_NEAR(ShareOf(load, slow), 0.1, Tolerance(0.1));
  // None depends on another.
  const auto share_of_both = [&](const auto& a, const auto& b) {
    return ShareOf(load, [&](const LoadRequest& r) { return a(r) && b(r); });
  };
  EXPECT_NEAR(share_of_both(cancelled, hurried), 0.06, Tolerance(0.06));
  EXPECT_NEAR(share_of_both(cancelled, slow), 0.03, Tolerance(0.03));
  EXPECT_NEAR(share_of_both(hurried, slow), 0.02, Tolerance(0.02));

  // Half of those that are cancelled are so in the first half.
  for (const LoadRequest& request : load) {
    if (!cancelled(request)) continue;
    EXPECT_GE(*request.cancel_after, absl::ZeroDuration());
    EXPECT_LE(*request.cancel_after, absl::Seconds(8));
  }
  const auto soon = [](const LoadRequest& r) {
    return r.cancel_after.has_value() && *r.cancel_after < absl::Seconds(4);
  };
  EXPECT_NEAR(ShareOf(load, soon), 0.15, Tolerance(0.15));
}

TEST(MakeLoadTest, SharesOfNoneAndAll) {
  for (const LoadRequest& request : MakeLoad({.count = 1000})) {
    EXPECT_TRUE(CheckPlain(std::span(&request, 1)).ok());
    EXPECT_EQ(request.tenant, "");
    EXPECT_EQ(request.prefix_tokens, 0);
  }
  for (const LoadRequest& request : MakeLoad({.count = 1000,
                                    .n = 3,
                                    .cancel_share = 1,
                                    .deadline_share = 1,
                                    .slow_reader_share = 1})) {
    EXPECT_TRUE(request.cancel_after.has_value());
    EXPECT_TRUE(request.deadline.has_value());
    EXPECT_GT(request.read_delay, absl::ZeroDuration());
    EXPECT_EQ(request.n, 3);
  }
}

TEST(MakeLoadTest, IsAFunctionOfItsArgument) {
  SyntheticLoad wanted{
      .count = 300,
      .arrivals = {.process = Arrivals::Process::kGamma, .burstiness = 0.5},
      .shared_prefix_tokens = 10,
      .prefix_groups = 3,
      .turns = 4,
      .think_ms = UniformLength{1, 1000},
      .tenants = 3,
      .cancel_share = 0.5,
      .seed = 5};
  const std::vector<LoadRequest> load = MakeLoad(wanted);
  EXPECT_EQ(MakeLoad(wanted), load);
  wanted.seed = 6;
  const std::vector<LoadRequest> other = MakeLoad(wanted);
  for (size_t i = 0; i < load.size(); ++i) {
    EXPECT_NE(other[i].token_seed, load[i].token_seed);
  }
}

TEST(DescribeTest, IsOneLineForPeople) {
  EXPECT_EQ(Describe({.count = 64}),
            "64 requests at once; prompt tokens: log-normal, median 200, sigma "
            "0.9, at most 2000; output tokens: log-normal, median 150, sigma "
            "0.8, at most 1000; seed 1");
  EXPECT_THAT(Describe({.count = 64}, /*concurrency=*/8),
              StartsWith("64 requests 8 at a time; prompt"));
  EXPECT_EQ(
      Describe(
          {.count = 40,
           .arrivals = {.process = Arrivals::Process::kPoisson, .rate = 1.5},
           .prompt = FixedLength{100},
           .output = UniformLength{10, 20},
           .long_prompt_every = 10,
           .shared_prefix_tokens = 1000,
           .prefix_groups = 4,
           .turns = 3,
           .think_ms = FixedLength{500},
           .n = 2,
           .tenants = 5,
           .cancel_share = 0.1,
           .deadline_share = 0.25,
           .slow_reader_share = 0.5,
           .seed = 9}),
      "40 requests in conversations of 3 turns, the first ones at 1.5 a second "
      "(Poisson); "
      "prompt tokens: 100 (one in 10: 3000); output tokens: 10 to 20; 1000 "
      "tokens in front shared in 4 groups; ms between turns: 500; 2 samples "
      "each; 5 tenants; 10% cancelled within 10s; 25% with a deadline of 10s; "
      "50% read a message every 100ms; seed 9");
}

}  // namespace
}  // namespace folio
