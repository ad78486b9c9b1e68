#include "bench/bench_model.h"

#include <glog/logging.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/cli/engine_flags.h"

namespace folio {
namespace {

// Somebody else's model, for an engine that wants to own one.
class BorrowedModel final : public Model {
 public:
  explicit BorrowedModel(Model* model) : model_(model) {}

  const ModelInfo& info() const override { return model_->info(); }
  void Forward(const StepInput& input, KvStorage& storage) override {
    model_->Forward(input, storage);
  }
  const ColumnBlocks& Logits(int32_t first, int32_t count) override {
    return model_->Logits(first, count);
  }

 private:
  Model* const model_;
};

}  // namespace

void AddModelFlags(CLI::App& app, BenchModelFlags& flags) {
  app.add_option("--model", flags.model, "As of folio bench")
      ->capture_default_str()
      ->type_name("PATH|random:KEY=N,...");
  AddTypeOptions(app, flags.types);
  app.add_option("--threads", flags.threads,
                 "Threads that compute. Default: one for each usable core")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
}

absl::StatusOr<std::unique_ptr<BenchModel>> BenchModel::Open(
    const BenchModelFlags& flags, const ModelLimits& limits) {
  std::unique_ptr<BenchModel> opened(new BenchModel(flags.threads));
  FOLIO_ASSIGN_OR_RETURN(
      opened->model_,
      OpenModel(flags.model, limits, opened->executor_.get(), flags.types));
  opened->tokenizer_ =
      std::make_unique<ByteTokenizer>(opened->info().vocab_size);
  return opened;
}

absl::StatusOr<std::unique_ptr<Engine>> BenchModel::MakeEngine(
    const EngineOptions& options) {
  return Engine::Create(options, std::make_unique<BorrowedModel>(model_.get()),
                        tokenizer_.get(), &clock_, executor_.get());
}

absl::StatusOr<std::vector<RequestRecord>> BenchModel::Serve(
    std::vector<TimedRequest> requests, Engine& engine,
    const InprocOptions& options) const {
  std::vector<RequestRecord> records =
      RunInProcess(std::move(requests), engine, clock_, options);
  FOLIO_RETURN_IF_ERROR(FirstFailure(records));
  return records;
}

absl::StatusOr<std::vector<RequestRecord>> BenchModel::Serve(
    std::span<const LoadRequest> load, Engine& engine,
    const InprocOptions& options) const {
  return Serve(ToTimedRequests(load, info().vocab_size), engine, options);
}

int RunBenchmark(CLI::App& app, int argc, char** argv,
                 const std::function<absl::Status()>& run) {
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = run();
  if (status.ok()) return 0;
  std::cerr << argv[0] << ": " << std::string(status.message()) << "\n";
  return 1;
}

double Median(std::vector<double> values) {
  CHECK(!values.empty());
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace folio
