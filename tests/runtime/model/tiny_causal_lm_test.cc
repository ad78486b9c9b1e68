#include "runtime/model/tiny_causal_lm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/model/embedded_model.h"
#include "runtime/model/model_registry.h"
#include "runtime/weights/json_file.h"
#include "tests/runtime/model/step_runner.h"
#include "tests/support/test_executors.h"

namespace folio {

// For the names of tests, which would otherwise show the bytes.
void PrintTo(const TinyCausalLmConfig& config, std::ostream* out) {
  *out << config.vocab_size << " tokens, " << config.hidden_size << " wide";
}

namespace {

using Logits = std::vector<std::vector<float>>;
using nlohmann::json;

constexpr ModelLimits kLimits{.max_batch_tokens = 160, .max_logits_rows = 8};

std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count, int32_t vocab) {
  std::vector<TokenId> tokens(count);
  for (int32_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>(PhiloxAt(seed, 0, i)[0] % vocab);
  }
  return tokens;
}

std::unique_ptr<Model> RandomModel(const TinyCausalLmConfig& config,
                                   uint64_t seed, Executor* executor) {
  return MakeTinyCausalLm("random", config,
                          RandomTinyCausalLmWeights(config, seed), kLimits,
                          executor);
}

// All tokens of one sequence in chunks of `chunk`.
Logits RunAlone(Model& model, std::span<const TokenId> tokens, int32_t chunk,
                int32_t page_size) {
  StepRunner runner(model, page_size, 1, static_cast<int32_t>(tokens.size()));
  Logits logits;
  for (size_t i = 0; i < tokens.size(); i += chunk) {
    runner.Add(0,
               tokens.subspan(i, std::min<size_t>(chunk, tokens.size() - i)));
    for (auto& row : runner.Run()) logits.push_back(std::move(row));
  }
  return logits;
}

double LogSumExpOf(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  return std::log(sum);
}

// The definition, in double precision and without a cache.
class NaiveTinyCausalLm {
 public:
  NaiveTinyCausalLm(const TinyCausalLmConfig& config,
                    const TinyCausalLmWeights& weights)
      : config_(config), weights_(weights) {}

  std::vector<std::vector<double>> Run(std::span<const TokenId> tokens) const {
    Rows x;
    for (const TokenId token : tokens) {
      const auto begin =
          weights_.token_emb.begin() + token * config_.hidden_size;
      x.emplace_back(begin, begin + config_.hidden_size);
    }
    for (const TinyCausalLmLayerWeights& layer : weights_.layers) {
      const Rows qkv = Product(Norm(x, layer.attn_norm), layer.qkv);
      Add(x, Product(Attention(qkv), layer.out));
      Rows wide = Product(Norm(x, layer.ffn_norm), layer.ffn_in);
      for (Row& row : wide) {
        for (double& v : row) v = v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
      }
      Add(x, Product(wide, layer.ffn_out));
    }
    return Product(Norm(x, weights_.norm), {weights_.lm_head, {}});
  }

 private:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  static void Add(Rows& x, const Rows& y) {
    for (size_t r = 0; r < x.size(); ++r) {
      for (size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
    }
  }

  static Rows Product(const Rows& x, const WeightAndBias& w) {
    const size_t in = x[0].size();
    Rows y;
    for (const Row& row : x) {
      Row& out = y.emplace_back(w.weight.size() / in);
      for (size_t c = 0; c < out.size(); ++c) {
        out[c] = w.bias.empty() ? 0 : w.bias[c];
        for (size_t k = 0; k < in; ++k) out[c] += row[k] * w.weight[c * in + k];
      }
    }
    return y;
  }

  static Rows Norm(const Rows& x, const WeightAndBias& w) {
    Rows y = x;
    for (Row& row : y) {
      const double n = static_cast<double>(row.size());
      const double mean = std::accumulate(row.begin(), row.end(), 0.0) / n;
      double variance = 0;
      for (const double v : row) variance += (v - mean) * (v - mean) / n;
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * w.weight[i] +
                 w.bias[i];
      }
    }
    return y;
  }

  Rows Attention(const Rows& qkv) const {
    const int32_t hidden = config_.hidden_size;
    const int32_t d = config_.head_dim();
    Rows out(qkv.size(), Row(hidden, 0.0));
    for (size_t t = 0; t < qkv.size(); ++t) {
      for (int32_t first = 0; first < hidden; first += d) {
        Row weights(t + 1, 0.0);
        double total = 0;
        for (size_t j = 0; j <= t; ++j) {
          for (int32_t i = first; i < first + d; ++i) {
            weights[j] += qkv[t][i] * qkv[j][hidden + i];
          }
          total += weights[j] = std::exp(weights[j] / std::sqrt(double(d)));
        }
        for (size_t j = 0; j <= t; ++j) {
          for (int32_t i = first; i < first + d; ++i) {
            out[t][i] += weights[j] / total * qkv[j][2 * hidden + i];
          }
        }
      }
    }
    return out;
  }

  const TinyCausalLmConfig& config_;
  const TinyCausalLmWeights& weights_;
};

TEST(TinyCausalLmTest, AgreesWithTheDefinition) {
  const TinyCausalLmConfig config{.vocab_size = 50,
                                  .hidden_size = 40,
                                  .num_heads = 5,
                                  .num_layers = 3,
                                  .bos_token = {},
                                  .eos_tokens = {}};
  constexpr uint64_t kSeed = 77;
  const TinyCausalLmWeights weights = RandomTinyCausalLmWeights(config, kSeed);
  SerialExecutor executor;
  const auto model = RandomModel(config, kSeed, &executor);
  const std::vector<TokenId> tokens = RandomTokens(1, 150, config.vocab_size);
  const Logits logits = RunAlone(*model, tokens, 150, 16);
  const auto exact = NaiveTinyCausalLm(config, weights).Run(tokens);
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (int32_t i = 0; i < config.vocab_size; ++i) {
      // Logits are up to about 15; a relative error of 2^-24 in each of some
      // hundred roundings on the way adds up to about 15 * 100 * 2^-24.
      ASSERT_NEAR(logits[t][i], exact[t][i], 1e-4) << "row " << t;
    }
  }
}

TEST(TinyCausalLmTest, AgreesWithTheReference) {
  const std::string folder =
      std::string(FOLIO_SHARED_DIR) + "/reference/tiny-causal-lm";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "There is no reference data at " << folder;
  }
  SerialExecutor executor;
  const auto model = OpenModel(folder, kLimits, &executor);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto cases = ReadJsonFile(folder + "/cases.json");
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 8u);
  for (const json& c : *cases) {
    const auto prompt = c["prompt"].get<std::vector<TokenId>>();
    SCOPED_TRACE(std::to_string(prompt.size()) + " tokens");
    const Logits all = RunAlone(**model, prompt, 100, 16);
    const std::vector<float>& last = all.back();
    // The reference was computed in f32 too and is printed to six digits.
    constexpr double kTolerance = 2e-4;
    for (int i = 0; i < 16; ++i) {
      EXPECT_NEAR(last[i], c["last_logits_first16"][i].get<double>(),
                  kTolerance);
    }
    double sum = 0;
    double squares = 0;
    for (const float logit : last) {
      sum += logit;
      squares += double{logit} * logit;
    }
    // Errors of 128 logits that do not agree in sign.
    EXPECT_NEAR(sum, c["last_logits_sum"].get<double>(), 10 * kTolerance);
    EXPECT_NEAR(std::sqrt(squares), c["last_logits_l2"].get<double>(),
                kTolerance);
    const auto logprob = [&](size_t row, TokenId token) {
      return all[row][token] - LogSumExpOf(all[row]);
    };
    for (size_t i = 0; i + 1 < prompt.size(); ++i) {
      EXPECT_NEAR(logprob(i, prompt[i + 1]),
                  c["prompt_logprobs"][i].get<double>(), kTolerance);
    }
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(logprob(prompt.size() - 1, c["top5_ids"][i].get<TokenId>()),
                  c["top5_logprobs"][i].get<double>(), kTolerance);
    }
    EXPECT_EQ(std::max_element(last.begin(), last.end()) - last.begin(),
              c["top5_ids"][0].get<int64_t>());
  }
}

// One of each kind: several blocks of 64 positions, heads that vectors do not
// divide, columns that nothing divides.
std::string NameOf(const TinyCausalLmConfig& config) {
  return "Vocab" + std::to_string(config.vocab_size) + "Hidden" +
         std::to_string(config.hidden_size);
}

class BitsTest : public testing::TestWithParam<TinyCausalLmConfig> {
 protected:
  std::vector<TokenId> Tokens(uint64_t seed, int32_t count) const {
    return RandomTokens(seed, count, GetParam().vocab_size);
  }
};

TEST_P(BitsTest, DoNotDependOnChunksOrPageSize) {
  SerialExecutor executor;
  const auto model = RandomModel(GetParam(), 1, &executor);
  const std::vector<TokenId> tokens = Tokens(2, 140);
  const Logits whole = RunAlone(*model, tokens, 140, 16);
  for (int32_t chunk : {1, 7, 64, 100}) {
    EXPECT_EQ(RunAlone(*model, tokens, chunk, 16), whole) << chunk;
  }
  for (int32_t page_size : {1, 8, 32, 128}) {
    EXPECT_EQ(RunAlone(*model, tokens, 50, page_size), whole) << page_size;
  }
}

TEST_P(BitsTest, DoNotDependOnThreads) {
  SerialExecutor serial;
  const std::vector<TokenId> tokens = Tokens(3, 100);
  const Logits expected =
      RunAlone(*RandomModel(GetParam(), 4, &serial), tokens, 30, 16);
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::make_unique<BackwardExecutor>(3));
  executors.push_back(std::make_unique<ThreadExecutor>(2));
  executors.push_back(MakeParallelTestExecutor(2));
  for (const auto& executor : executors) {
    EXPECT_EQ(
        RunAlone(*RandomModel(GetParam(), 4, executor.get()), tokens, 30, 16),
        expected);
  }
}

TEST_P(BitsTest, DoNotDependOnCompany) {
  SerialExecutor executor;
  const auto model = RandomModel(GetParam(), 5, &executor);
  const std::vector<TokenId> a = Tokens(6, 90);
  const std::vector<TokenId> b = Tokens(7, 40);
  const Logits a_alone = RunAlone(*model, a, 90, 16);
  const Logits b_alone = RunAlone(*model, b, 40, 16);

  // b decodes one token a step, while a is computed in chunks of 9.
  StepRunner runner(*model, 16, 2, 90);
  runner.Add(1, std::span(b).first(30));
  runner.Run();
  for (size_t step = 0; step < 10; ++step) {
    runner.Add(1, std::span(b).subspan(30 + step, 1));
    runner.Add(0, std::span(a).subspan(9 * step, 9));
    const Logits logits = runner.Run();
    EXPECT_EQ(logits[0], b_alone[30 + step]);
    for (size_t i = 0; i < 9; ++i) {
      EXPECT_EQ(logits[1 + i], a_alone[9 * step + i]);
    }
  }
}

TEST_P(BitsTest, LogitsComeInTiles) {
  SerialExecutor executor;
  const auto model = RandomModel(GetParam(), 8, &executor);
  const std::vector<TokenId> tokens = Tokens(9, 20);
  const Logits expected = RunAlone(*model, tokens, 20, 16);
  // RunAlone has left its last Forward behind, with 20 rows of logits.
  for (int32_t first : {0, 3, 12}) {
    const ColumnBlocks& tile = model->Logits(first, 8);
    for (int32_t row = 0; row < 8; ++row) {
      std::vector<float> logits(GetParam().vocab_size);
      tile.CopyRow(row, 0, logits);
      EXPECT_EQ(logits, expected[first + row]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Configs, BitsTest,
    testing::Values(TinyCausalLmConfig{128, 64, 4, 2, 4096, {}, {}},
                    TinyCausalLmConfig{77, 30, 3, 2, 4096, {}, {}},
                    TinyCausalLmConfig{1009, 128, 2, 1, 4096, {}, {}}),
    [](const auto& test) { return NameOf(test.param); });

// Only the rows asked for get logits.
TEST(TinyCausalLmTest, LogitsRowsAreChosen) {
  SerialExecutor executor;
  const TinyCausalLmConfig config;
  const auto model = RandomModel(config, 3, &executor);
  const std::vector<TokenId> tokens = RandomTokens(4, 12, 128);
  const Logits all = RunAlone(*model, tokens, 12, 16);

  const KvLayout layout(model->info().kv_shape, 16);
  auto storage = KvStorage::Create(layout, layout.page_bytes());
  ASSERT_TRUE(storage.ok()) << storage.status();
  const PageId page{0};
  std::vector<int32_t> positions(12);
  std::vector<Slot> slots;
  for (int32_t i = 0; i < 12; ++i) {
    positions[i] = i;
    slots.push_back({page, i});
  }
  const SequenceInput sequence{0, 12, 0, {&page, 1}};
  const std::vector<int32_t> rows = {2, 3, 11};
  StepInput input;
  input.tokens = tokens;
  input.positions = positions;
  input.slots = slots;
  input.sequences = {&sequence, 1};
  input.logits_rows = rows;
  model->Forward(input, **storage);
  const ColumnBlocks& logits = model->Logits(0, 3);
  for (int32_t i = 0; i < 3; ++i) {
    std::vector<float> row(128);
    logits.CopyRow(i, 0, row);
    EXPECT_EQ(row, all[rows[i]]);
  }
}

TEST(TinyCausalLmTest, TellsItsFacts) {
  SerialExecutor executor;
  TinyCausalLmConfig config;
  config.bos_token = 1;
  config.eos_tokens = {2, 3};
  const auto model = RandomModel(config, 1, &executor);
  const ModelInfo& info = model->info();
  EXPECT_EQ(info.architecture, "TinyCausalLM");
  EXPECT_EQ(info.vocab_size, 128);
  EXPECT_EQ(info.context_length, 4096);
  EXPECT_EQ(info.kv_shape.num_layers, 2);
  EXPECT_EQ(info.kv_shape.num_kv_heads, 4);
  EXPECT_EQ(info.kv_shape.head_dim, 16);
  EXPECT_EQ(info.kv_shape.bytes_per_element, 4);
  EXPECT_EQ(info.bos_token, 1);
  EXPECT_THAT(info.eos_tokens, testing::ElementsAre(2, 3));
  // The reference checkpoint of this shape has 465,920 bytes of f32.
  EXPECT_EQ(info.num_parameters, 465920 / 4);
}

// Random weights are the same on every machine: spot values, worked out from
// Philox (which has its own test) by the formula in the source.
TEST(TinyCausalLmTest, RandomWeightsAreAFunctionOfTheSeed) {
  const TinyCausalLmConfig config;
  const TinyCausalLmWeights a = RandomTinyCausalLmWeights(config, 1);
  EXPECT_EQ(a.token_emb, RandomTinyCausalLmWeights(config, 1).token_emb);
  EXPECT_NE(a.token_emb, RandomTinyCausalLmWeights(config, 2).token_emb);
  EXPECT_NE(a.lm_head[0], 4 * a.token_emb[0]);
  const float uniform = (PhiloxAt(1, 0, 1)[2] >> 8) * 0x1p-23f - 1.0f;
  EXPECT_EQ(a.token_emb[6], 1.7320508f * uniform);
  const double n = static_cast<double>(a.token_emb.size());
  double mean = 0;
  double variance = 0;
  for (const float v : a.token_emb) mean += v / n;
  for (const float v : a.token_emb) variance += (v - mean) * (v - mean) / n;
  // Five standard deviations of each estimate.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(variance, 1, 5 * std::sqrt(0.8 / n));
}

TEST(EmbeddedModelTest, GreedyTextIsPrintable) {
  SerialExecutor executor;
  const auto model = MakeEmbeddedModel(kLimits, &executor);
  EXPECT_TRUE(model->info().eos_tokens.empty());
  for (TokenId start = 0; start < 128; ++start) {
    StepRunner runner(*model, 16, 1, 64);
    TokenId token = start;
    for (int i = 0; i < 64; ++i) {
      runner.Add(0, {&token, 1});
      const Logits logits = runner.Run();
      token = static_cast<TokenId>(
          std::max_element(logits[0].begin(), logits[0].end()) -
          logits[0].begin());
      ASSERT_TRUE(token >= ' ' && token <= '~')
          << token << " follows from " << start;
    }
  }
}

#ifndef __SANITIZE_THREAD__
// Notes which workers had a part in each ParallelFor of a step, over many
// steps.
class RecordingExecutor final : public Executor {
 public:
  struct Call {
    int num_tasks = 0;
    std::array<std::atomic<bool>, 2> ran{};  // By worker.
  };

  explicit RecordingExecutor(Executor* executor) : executor_(*executor) {}
  int num_workers() const override { return executor_.num_workers(); }
  void ParallelFor(
      int num_tasks,
      absl::FunctionRef<void(int task, int worker)> body) override {
    Call& call = calls_[next_call_++];
    call.num_tasks = num_tasks;
    executor_.ParallelFor(num_tasks, [&](int task, int worker) {
      call.ran[worker] = true;
      body(task, worker);
    });
  }

  void StartStep() { next_call_ = 0; }
  void Forget() { calls_.clear(); }
  // By their order within a step.
  const std::map<int, Call>& calls() const { return calls_; }

  bool BothRanInEveryCall() const {
    return std::all_of(calls_.begin(), calls_.end(), [](const auto& entry) {
      return entry.second.ran[0] && entry.second.ran[1];
    });
  }

 private:
  Executor& executor_;
  int next_call_ = 0;
  std::map<int, Call> calls_;
};

TEST(TinyCausalLmTest, BothWorkersComputeAPartOfEveryProduct) {
  const auto parallel = MakeParallelExecutor(2);
  RecordingExecutor executor(parallel.get());
  const TinyCausalLmConfig config{50257, 576, 9, 2, 4096, {}, {}};
  const auto model = MakeTinyCausalLm(
      "random", config, RandomTinyCausalLmWeights(config, 1),
      {.max_batch_tokens = 8, .max_logits_rows = 8}, &executor);
  executor.Forget();
  // On an idle machine it takes a few steps. A machine that is busy with other
  // work may keep a worker from its core for a step or twenty; then the other
  // one does everything.
  constexpr int kMaxSteps = 2000;
  StepRunner runner(*model, 16, 8, kMaxSteps + 1);
  for (int step = 0; step == 0 || !executor.BothRanInEveryCall(); ++step) {
    ASSERT_LT(step, kMaxSteps);
    executor.StartStep();
    const TokenId token = step;
    for (int32_t sequence = 0; sequence < 8; ++sequence) {
      runner.Add(sequence, {&token, 1});
    }
    runner.Run();
  }
  // Each layer has four products and attention; then comes lm_head.
  EXPECT_EQ(executor.calls().size(), 2u * 5 + 1);
  for (const auto& [index, call] : executor.calls()) {
    EXPECT_GE(call.num_tasks, 2) << "call " << index;
  }
}
#endif  // __SANITIZE_THREAD__

}  // namespace
}  // namespace folio
