#include "bench/load/open_target.h"

#include <glog/logging.h>

#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/load/engine_target.h"
#include "bench/load/folio_target.h"
#include "bench/load/openai_target.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/host_port.h"

namespace folio {
namespace {

// An engine, and the target that it is.
class OwnedEngineTarget final : public Target {
 public:
  explicit OwnedEngineTarget(std::unique_ptr<OpenedEngine> opened)
      : opened_(std::move(opened)),
        target_(OpenEngineTarget(opened_->engine.get(),
                                 opened_->tokenizer.get())) {}

  absl::StatusOr<TargetInfo> Describe() override { return target_->Describe(); }
  std::unique_ptr<TargetCall> Start(TargetRequest request,
                                    TargetListener* listener) override {
    return target_->Start(std::move(request), listener);
  }
  bool WatchBatches(std::function<void(const BatchSample&)> on_batch) override {
    return target_->WatchBatches(std::move(on_batch));
  }
  void StopWatching() override { target_->StopWatching(); }

 private:
  const std::unique_ptr<OpenedEngine> opened_;
  const std::unique_ptr<Target> target_;
};

absl::StatusOr<std::unique_ptr<Target>> OpenFolio(const TargetFlags& flags) {
  const std::string address(absl::StripPrefix(flags.target, kFolio));
  FOLIO_RETURN_IF_ERROR(ParseHostPort(address, /*min_port=*/1).status());
  FOLIO_ASSIGN_OR_RETURN(const ClientOptions options,
                         ClientOptionsOf(flags.security, address));
  return OpenFolioTarget(address, options);
}

absl::StatusOr<std::unique_ptr<Target>> OpenOpenAi(const TargetFlags& flags) {
  const std::string_view address(flags.target);
  const std::string server(
      address.substr(0, address.find('/', sizeof(kOpenAi) - 1)));
  FOLIO_ASSIGN_OR_RETURN(
      const ClientOptions options,
      ClientOptionsOf(flags.security,
                      std::string(absl::StripPrefix(server, kOpenAi))));
  return OpenOpenAiTarget(flags.target,
                          {.model = flags.api_model, .token = options.token});
}

absl::StatusOr<std::unique_ptr<Target>> OpenInProcess(
    const TargetFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<OpenedEngine> opened,
                         OpenEngine(flags.engine, flags.engine.ToOptions()));
  return std::make_unique<OwnedEngineTarget>(std::move(opened));
}

}  // namespace

bool IsTarget(std::string_view target) {
  return target.starts_with(kFolio) || target.starts_with(kOpenAi) ||
         target == kInProcess;
}

absl::StatusOr<std::unique_ptr<Target>> OpenTarget(const TargetFlags& flags) {
  CHECK(IsTarget(flags.target));
  if (flags.target.starts_with(kFolio)) return OpenFolio(flags);
  if (flags.target.starts_with(kOpenAi)) return OpenOpenAi(flags);
  return OpenInProcess(flags);
}

}  // namespace folio
