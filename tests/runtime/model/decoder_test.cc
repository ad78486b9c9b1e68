#include "runtime/model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/bf16.h"
#include "runtime/model/model_registry.h"
#include "tests/runtime/model/model_logits.h"
#include "tests/runtime/model/naive_decoder.h"
#include "tests/runtime/model/step_runner.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

constexpr ModelLimits kLimits{.max_batch_tokens = 160, .max_logits_rows = 8};

ModelSource RandomSource(const std::string& items) {
  auto location = FindModel("random:" + items);
  CHECK(location.ok()) << location.status();
  auto source = OpenModelSource(*location);
  CHECK(source.ok()) << source.status();
  return *std::move(source);
}

std::unique_ptr<Model> RandomModel(const std::string& items, ModelTypes types,
                                   Executor* executor) {
  return LoadModel(RandomSource(items), types, kLimits, executor);
}

// Each family, in sizes that vectors, cuts and blocks of 64 do not divide.
constexpr const char* kFamilies[] = {
    "arch=tiny,vocab=50,hidden=40,heads=5,layers=3",
    "arch=llama,vocab=77,hidden=48,heads=6,kv_heads=2,ffn=101,layers=2",
    "arch=llama,vocab=61,hidden=36,heads=3,kv_heads=1,ffn=50,layers=2",
    "arch=mistral,vocab=77,hidden=48,heads=4,kv_heads=2,ffn=64,window=24",
    "arch=mistral,vocab=77,hidden=48,heads=4,kv_heads=1,ffn=64,window=70",
    "arch=qwen2,vocab=77,hidden=48,heads=6,kv_heads=3,ffn=101",
    "arch=qwen3,vocab=77,hidden=40,heads=4,kv_heads=2,head_dim=18,ffn=101",
    "arch=gpt2,vocab=50,hidden=40,heads=5,layers=3,context=200",
};

std::string TestName(const testing::TestParamInfo<const char*>& test) {
  const std::string items = test.param;
  return items.substr(5, items.find(',') - 5) + std::to_string(test.index);
}

class FamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilyTest, AgreesWithTheDefinition) {
  const ModelSource source = RandomSource(GetParam());
  const std::vector<TokenId> tokens =
      RandomTokens(1, 150, source.config.vocab_size);
  const NaiveDecoder::Rows exact = NaiveDecoder(source).Run(tokens);
  SerialExecutor executor;
  const auto model = LoadModel(source, {}, kLimits, &executor);
  const Logits logits = RunAlone(*model, tokens, 150, 16);
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (size_t i = 0; i < logits[t].size(); ++i) {
      // Logits are up to about 15; a relative error of 2^-24 in each of some
      // hundred roundings on the way adds up to about 15 * 100 * 2^-24.
      ASSERT_NEAR(logits[t][i], exact[t][i], 1e-4) << "row " << t;
    }
  }
}

// bf16 rounds weights, activations and K/V by up to 2^-9 each.
TEST_P(FamilyTest, AgreesWithTheDefinitionToBf16sPrecision) {
  const ModelSource source = RandomSource(GetParam());
  const std::vector<TokenId> tokens =
      RandomTokens(1, 150, source.config.vocab_size);
  const NaiveDecoder::Rows exact = NaiveDecoder(source).Run(tokens);
  SerialExecutor executor;
  const auto model = LoadModel(source, {ElementType::kBf16, ElementType::kBf16},
                               kLimits, &executor);
  const Logits logits = RunAlone(*model, tokens, 150, 16);
  double squares = 0;
  double error = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (size_t i = 0; i < logits[t].size(); ++i) {
      squares += exact[t][i] * exact[t][i];
      error += (logits[t][i] - exact[t][i]) * (logits[t][i] - exact[t][i]);
    }
  }
  // Some tens of independent roundings of 2^-9 / sqrt(3) at most, relative to
  // the size of what they round: together about 2^-9 * sqrt(30).
  EXPECT_LT(std::sqrt(error / squares), 0.02);
  EXPECT_GT(std::sqrt(error / squares), 1e-4) << "is it bf16 at all?";
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, testing::ValuesIn(kFamilies),
                         TestName);

class BitsTest
    : public testing::TestWithParam<std::tuple<const char*, ElementType>> {
 protected:
  std::unique_ptr<Model> Make(Executor* executor) const {
    const auto& [items, type] = GetParam();
    return RandomModel(items, {type, type}, executor);
  }
};

TEST_P(BitsTest, DoNotDependOnChunksOrPageSize) {
  SerialExecutor executor;
  const auto model = Make(&executor);
  const std::vector<TokenId> tokens =
      RandomTokens(2, 140, model->info().vocab_size);
  const Logits whole = RunAlone(*model, tokens, 140, 16);
  for (int32_t chunk : {1, 7, 64, 100}) {
    EXPECT_EQ(RunAlone(*model, tokens, chunk, 16), whole) << chunk;
  }
  for (int32_t page_size : {8, 24, 32, 128}) {
    EXPECT_EQ(RunAlone(*model, tokens, 50, page_size), whole) << page_size;
  }
}

TEST_P(BitsTest, DoNotDependOnThreads) {
  SerialExecutor serial;
  const auto alone = Make(&serial);
  const std::vector<TokenId> tokens =
      RandomTokens(3, 160, alone->info().vocab_size);
  const Logits expected = RunAlone(*alone, tokens, 30, 16);
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::make_unique<BackwardExecutor>(3));
  executors.push_back(std::make_unique<ThreadExecutor>(2));
  executors.push_back(MakeParallelTestExecutor(2));
  for (const auto& executor : executors) {
    const auto model = Make(executor.get());
    // So few rows that all compute them together, and so many that each has
    // strips of its own.
    EXPECT_EQ(RunAlone(*model, tokens, 30, 16), expected);
    EXPECT_EQ(RunAlone(*model, tokens, 160, 16), expected);
  }
}

TEST_P(BitsTest, DoNotDependOnCompany) {
  SerialExecutor executor;
  const auto model = Make(&executor);
  const int32_t vocab = model->info().vocab_size;
  const std::vector<TokenId> a = RandomTokens(6, 90, vocab);
  const std::vector<TokenId> b = RandomTokens(7, 40, vocab);
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

// Rows without logits leave their K and V behind, of the last layer, too, and
// nothing else.
TEST_P(BitsTest, DoNotDependOnWhichRowsHaveLogits) {
  SerialExecutor serial;
  const auto alone = Make(&serial);
  const int32_t vocab = alone->info().vocab_size;
  const std::vector<TokenId> a = RandomTokens(10, 90, vocab);
  const std::vector<TokenId> b = RandomTokens(11, 40, vocab);
  const Logits a_alone = RunAlone(*alone, a, 90, 16);
  const Logits b_alone = RunAlone(*alone, b, 40, 16);

  const auto executor = MakeParallelTestExecutor(2);
  const auto model = Make(executor.get());
  StepRunner runner(*model, 16, 2, 90);
  runner.Add(0, std::span(a).first(60));
  runner.Add(1, std::span(b).first(30));
  EXPECT_TRUE(runner.Run(std::vector<int32_t>{}).empty());
  runner.Add(0, std::span(a).subspan(60));
  runner.Add(1, std::span(b).subspan(30));
  // Runs that begin, end and go on where a sequence does.
  const std::vector<int32_t> rows = {0, 2, 3, 4, 17, 28, 29, 30, 31, 38};
  const Logits logits = runner.Run(rows);
  ASSERT_EQ(logits.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(logits[i],
              rows[i] < 30 ? a_alone[60 + rows[i]] : b_alone[rows[i]])
        << "row " << rows[i];
  }
}

TEST_P(BitsTest, LogitsComeInTiles) {
  SerialExecutor executor;
  const auto model = Make(&executor);
  const int32_t vocab = model->info().vocab_size;
  const std::vector<TokenId> tokens = RandomTokens(9, 20, vocab);
  const Logits expected = RunAlone(*model, tokens, 20, 16);
  // RunAlone has left its last Forward behind, with 20 rows of logits.
  for (int32_t first : {0, 3, 12}) {
    const ColumnBlocks& tile = model->Logits(first, 8);
    for (int32_t row = 0; row < 8; ++row) {
      std::vector<float> logits(vocab);
      tile.CopyRow(row, 0, logits);
      EXPECT_EQ(logits, expected[first + row]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BitsTest,
                         testing::Combine(testing::ValuesIn(kFamilies),
                                          testing::Values(ElementType::kF32,
                                                          ElementType::kBf16)),
                         [](const auto& test) {
                           const std::string items = std::get<0>(test.param);
                           return items.substr(5, items.find(',') - 5) +
                                  std::to_string(test.index) +
                                  std::string(NameOf(std::get<1>(test.param)));
                         });

// Only the rows asked for get logits.
TEST(DecoderTest, LogitsRowsAreChosen) {
  SerialExecutor executor;
  const auto model = RandomModel("", {}, &executor);
  const std::vector<TokenId> tokens = RandomTokens(4, 12, 128);
  const Logits all = RunAlone(*model, tokens, 12, 16);

  const KvLayout layout(model->info().kv_shape, 16);
  auto storage = KvStorage::Create(layout, layout.page_bytes(), executor);
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

TEST(DecoderTest, TellsItsFacts) {
  SerialExecutor executor;
  ModelSource source = RandomSource("arch=mistral");
  source.config.bos_token = 1;
  source.config.eos_tokens = {2, 3};
  const auto model = LoadModel(source, {ElementType::kBf16, ElementType::kF32},
                               kLimits, &executor);
  const ModelInfo& info = model->info();
  EXPECT_EQ(info.architecture, "MistralForCausalLM");
  EXPECT_EQ(info.vocab_size, 256);
  EXPECT_EQ(info.context_length, 4096);
  EXPECT_EQ(info.kv_shape.num_layers, 2);
  EXPECT_EQ(info.kv_shape.num_kv_heads, 2);
  EXPECT_EQ(info.kv_shape.head_dim, 16);
  EXPECT_EQ(info.kv_shape.bytes_per_element, 4);
  EXPECT_EQ(info.kv_type, ElementType::kF32);
  EXPECT_EQ(info.weights_type, ElementType::kBf16);
  EXPECT_EQ(info.window, 24);
  EXPECT_EQ(info.bos_token, 1);
  EXPECT_THAT(info.eos_tokens, testing::ElementsAre(2, 3));
  // Embedding and head, then by layer q, out, k, v, gate, up, down, two norms,
  // and the last norm.
  const int64_t matrices =
      2 * 256 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 172 * 64);
  EXPECT_EQ(info.num_parameters, matrices + 5 * 64);
  EXPECT_EQ(WeightBytes(source.config, source.names, ElementType::kBf16),
            2 * matrices + 4 * 5 * 64);
  // Packing pads rows and columns, to whole blocks of at most 64.
  EXPECT_GE(info.weight_bytes, 2 * matrices);
}

// Random weights are the same on every machine: spot values, worked out from
// Philox (which has its own test) by the formula in the source.
TEST(RandomWeightsTest, AreAFunctionOfTheSeed) {
  const auto read = [](const std::string& items, const std::string& name,
                       int64_t first, size_t count) {
    std::vector<float> values(count);
    RandomSource(items).weights->Read(name, first, values);
    return values;
  };
  const auto a = read("seed=1", "token_emb.weight", 0, 128 * 64);
  EXPECT_EQ(a, read("seed=1", "token_emb.weight", 0, 128 * 64));
  EXPECT_NE(a, read("seed=2", "token_emb.weight", 0, 128 * 64));
  EXPECT_NE(read("seed=1", "lm_head.weight", 0, 1)[0], 4 * a[0]);
  const float uniform = (PhiloxAt(1, 0, 1)[2] >> 8) * 0x1p-23f - 1.0f;
  EXPECT_EQ(a[6], 1.7320508f * uniform);
  // Pieces are pieces of the whole.
  const auto piece = read("seed=1", "token_emb.weight", 5, 10);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), a.begin() + 5));
  const double n = static_cast<double>(a.size());
  double mean = 0;
  double variance = 0;
  for (const float v : a) mean += v / n;
  for (const float v : a) variance += (v - mean) * (v - mean) / n;
  // Five standard deviations of each estimate.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(variance, 1, 5 * std::sqrt(0.8 / n));
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

TEST(DecoderTest, BothWorkersComputeAPartOfEveryProduct) {
  const auto parallel = MakeParallelExecutor(2);
  RecordingExecutor executor(parallel.get());
  const auto model =
      LoadModel(RandomSource("arch=llama,vocab=50257,hidden=576,heads=9,"
                             "kv_heads=3,ffn=1536,layers=2"),
                {}, {.max_batch_tokens = 8, .max_logits_rows = 8}, &executor);
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
  // Each layer has four products and attention; then comes the head.
  EXPECT_EQ(executor.calls().size(), 2u * 5 + 1);
  for (const auto& [index, call] : executor.calls()) {
    EXPECT_GE(call.num_tasks, 2) << "call " << index;
  }
}
#endif  // __SANITIZE_THREAD__

}  // namespace
}  // namespace folio
