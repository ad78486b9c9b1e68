#include "bench/load/load_command.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/load/client_meter.h"
#include "bench/load/document.h"
#include "bench/load/progress_bar.h"
#include "bench/load/report.h"
#include "bench/load/result_file.h"
#include "bench/load/run.h"
#include "bench/load/run_table.h"
#include "bench/load/trace.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/mapped_file.h"

namespace folio {
namespace {

using Json = nlohmann::json;

constexpr int32_t kDefaultVocabSize = 32000;

// Set by a signal; a second one ends the process as if there were no handler.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void OnInterrupt(int /*signal*/) { interrupted = true; }

void HandleInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// One run of a sweep, or the only one.
struct Point {
  // Each has prompts of its own: those of the one before may be in a cache.
  uint64_t seed = 0;
  std::optional<double> rate;
  int32_t concurrency = 0;
  std::string label;  // "rate=2"; empty: the only one.
};

std::vector<Point> PointsOf(const LoadFlags& flags) {
  if (!flags.sweep.has_value()) {
    return {{.seed = flags.synthetic.seed,
             .rate = flags.rate,
             .concurrency = flags.concurrency}};
  }
  const bool is_rate = flags.sweep->variable == Sweep::Variable::kRate;
  std::vector<Point> points;
  for (const double value : flags.sweep->values) {
    Point point{.seed = flags.synthetic.seed + points.size(),
                .concurrency = flags.concurrency,
                .label = absl::StrFormat(
                    "%s=%g", is_rate ? "rate" : "concurrency", value)};
    if (is_rate) {
      point.rate = value;
    } else {
      point.concurrency = static_cast<int32_t>(value);
    }
    points.push_back(std::move(point));
  }
  return points;
}

Arrivals ArrivalsOf(const LoadFlags& flags, const Point& point) {
  if (!point.rate.has_value()) return {};
  const auto process = flags.constant ? Arrivals::Process::kConstant
                       : flags.burstiness.has_value()
                           ? Arrivals::Process::kGamma
                           : Arrivals::Process::kPoisson;
  return {.process = process,
          .rate = *point.rate,
          .burstiness = flags.burstiness.value_or(1)};
}

struct MadeLoad {
  std::vector<LoadRequest> requests;
  std::string description;
  uint64_t seed = 0;
};

// Half of the context each for prompts and outputs, of a length that nobody
// asked for.
Length WithinContext(LogNormalLength length, const TargetInfo& info) {
  if (info.context_length.has_value()) {
    length.most = std::clamp(*info.context_length / 2, 1, length.most);
    length.median = std::min(length.median, std::max(length.most / 4.0, 1.0));
  }
  return length;
}

absl::StatusOr<MadeLoad> MakeLoadOf(const LoadFlags& flags, const Point& point,
                                    const TargetInfo& info) {
  MadeLoad made{.seed = point.seed};
  if (!flags.trace.empty()) {
    FOLIO_ASSIGN_OR_RETURN(made.requests, ReadTrace(flags.trace));
    made.description =
        absl::StrCat(made.requests.size(), " requests of ", flags.trace,
                     point.concurrency == 0
                         ? ""
                         : absl::StrCat(" ", point.concurrency, " at a time"));
    return made;
  }
  SyntheticLoad load = flags.synthetic;
  load.seed = point.seed;
  load.arrivals = ArrivalsOf(flags, point);
  load.prompt = flags.prompt.value_or(
      WithinContext(std::get<LogNormalLength>(load.prompt), info));
  load.output = flags.output.value_or(
      WithinContext(std::get<LogNormalLength>(load.output), info));
  made.requests = MakeLoad(load);
  made.description = Describe(load, point.concurrency);
  return made;
}

// Of a conversation, only what its turns add counts.
void WarnOfContext(std::span<const LoadRequest> load, const TargetInfo& info) {
  if (!info.context_length.has_value()) return;
  const auto is_longer = [&info](const LoadRequest& request) {
    const int64_t prompt =
        request.prompt_text.empty()
            ? int64_t{request.prefix_tokens} + request.prompt_tokens
            : 0;
    return prompt + request.output_tokens > *info.context_length;
  };
  const int64_t count = std::ranges::count_if(load, is_longer);
  if (count == 0) return;
  std::cerr << "folio-load: " << count << " of " << load.size()
            << " requests are longer than the target's context of "
            << *info.context_length
            << " tokens; they will be refused, or cut short\n";
}

// An error where the numbers are not those of the load that was asked for.
absl::Status HowItWent(const RunResult& result, const LoadMetrics& metrics) {
  if (!result.broke_off.ok()) {
    return absl::Status(result.broke_off.code(),
                        absl::StrCat("the run broke off: ",
                                     std::string(result.broke_off.message())));
  }
  if (metrics.served == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no request was served: ",
                     std::string(FirstFailure(result.records).message())));
  }
  const auto unavailable = metrics.statuses.find("UNAVAILABLE");
  if (unavailable == metrics.statuses.end()) return absl::OkStatus();
  const auto first =
      std::ranges::find_if(result.records, [](const RequestRecord& record) {
        return absl::IsUnavailable(record.status);
      });
  return absl::UnavailableError(absl::StrCat(
      "the server was not there for ", unavailable->second, " of ",
      metrics.requests, " requests: ", std::string(first->status.message())));
}

// No two processes' requests may share names on one server.
std::string NamePrefix() {
  return absl::StrFormat("load-%08x-", std::random_device()());
}

// The runs of one command, on one target.
class LoadCommand {
 public:
  explicit LoadCommand(const LoadFlags& flags) : flags_(flags) {}

  absl::Status Run();

 private:
  absl::Status CheckFiles() const;
  absl::Status RunPoint(const Point& point);
  void PrintSweep() const;
  // Writes the files that were asked for, with what there is. `status` with
  // what can be said of them.
  absl::Status Finish(absl::Status status) const;

  const LoadFlags& flags_;
  std::unique_ptr<Target> target_;
  TargetInfo info_;
  std::vector<Json> runs_;
  std::vector<bool> meets_limits_;  // Each of them.
};

absl::Status LoadCommand::Run() {
  const std::vector<Point> points = PointsOf(flags_);
  // A mistake in the load is told before the target is bothered.
  FOLIO_RETURN_IF_ERROR(CheckFiles());
  FOLIO_RETURN_IF_ERROR(MakeLoadOf(flags_, points[0], info_).status());
  if (!flags_.target.target.empty()) {
    FOLIO_ASSIGN_OR_RETURN(target_, OpenTarget(flags_.target));
    FOLIO_ASSIGN_OR_RETURN(info_, target_->Describe());
  }
  if (!flags_.write_trace.empty()) {
    FOLIO_ASSIGN_OR_RETURN(const MadeLoad first,
                           MakeLoadOf(flags_, points[0], info_));
    FOLIO_RETURN_IF_ERROR(
        WriteResult(flags_.write_trace, WriteTrace(first.requests)));
  }
  if (target_ == nullptr) return absl::OkStatus();
  HandleInterrupts();
  absl::Status status;
  for (const Point& point : points) {
    status = RunPoint(point);
    if (!status.ok()) break;
  }
  if (flags_.sweep.has_value() && flags_.json != "-") PrintSweep();
  return Finish(status);
}

absl::Status LoadCommand::CheckFiles() const {
  for (const std::string& path :
       {flags_.json, flags_.report, flags_.write_trace}) {
    if (!path.empty() && path != "-")
      FOLIO_RETURN_IF_ERROR(CheckWritable(path));
  }
  return absl::OkStatus();
}

absl::Status LoadCommand::RunPoint(const Point& point) {
  FOLIO_ASSIGN_OR_RETURN(const MadeLoad load, MakeLoadOf(flags_, point, info_));
  WarnOfContext(load.requests, info_);
  const std::string name =
      flags_.name.empty() ? flags_.target.target : flags_.name;
  const RunFacts facts{.name = point.label.empty()
                                   ? name
                                   : absl::StrCat(name, ", ", point.label),
                       .target = flags_.target.target,
                       .info = info_,
                       .seed = load.seed,
                       .command = flags_.command,
                       .load = load.description,
                       .limits = flags_.limits,
                       .offered_rate = point.rate,
                       .started = absl::Now()};
  SystemRunClock clock;
  ClientMeter meter;
  RunResult result;
  {
    const ProgressBar bar;
    result = folio::Run(load.requests, *target_, clock,
                        {.concurrency = point.concurrency,
                         .name_prefix = NamePrefix(),
                         .vocab_size = flags_.vocab_size.value_or(
                             info_.vocab_size.value_or(kDefaultVocabSize)),
                         .interrupted = &interrupted,
                         .on_progress = [&bar](const RunProgress& progress) {
                           bar.Show(progress);
                         }});
  }
  const ClientLag lag = meter.Stop(result.send_lags);
  runs_.push_back(RunDocument(facts, result, lag));
  if (flags_.json != "-") {
    std::cout << RunTable(runs_.back()) << "\n" << std::flush;
  }
  const LoadMetrics metrics = Measure(result.records, flags_.limits);
  meets_limits_.push_back(MeetsLimits(metrics, flags_.goodput_share));
  return HowItWent(result, metrics);
}

void LoadCommand::PrintSweep() const {
  std::cout << SummaryTable(runs_) << "\n";
  if (!flags_.has_limits) return;
  const auto best =
      std::find(meets_limits_.rbegin(), meets_limits_.rend(), true);
  const std::string share = absl::StrFormat("%g%%", 100 * flags_.goodput_share);
  if (best == meets_limits_.rend()) {
    std::cout << "At no value did " << share
              << " of the requests keep the limits.\n";
    return;
  }
  const size_t index = meets_limits_.rend() - best - 1;
  std::cout << "The highest value at which " << share
            << " of the requests kept the limits: "
            << PointsOf(flags_)[index].label << "\n";
}

absl::Status LoadCommand::Finish(absl::Status status) const {
  const Json document = Document(runs_);
  // (What a server says of an error need not be UTF-8.)
  const std::string text = document.dump(-1, ' ', /*ensure_ascii=*/false,
                                         Json::error_handler_t::replace);
  std::string written;
  const auto write = [&](const std::string& path, std::string_view contents) {
    if (path.empty()) return;
    const absl::Status result = WriteResult(path, contents);
    if (result.ok()) {
      absl::StrAppend(&written, written.empty() ? "" : " and ", path);
    } else {
      status.Update(result);
    }
  };
  if (flags_.json == "-") {
    std::cout << text << "\n";
  } else {
    write(flags_.json, text);
  }
  if (!flags_.report.empty()) write(flags_.report, RenderReport(document));
  if (status.ok() || written.empty()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(std::string(status.message()),
                                   "; what was measured is in ", written));
}

absl::Status Compare(const LoadFlags& flags) {
  std::vector<Json> runs;
  for (const std::string& path : flags.compare) {
    FOLIO_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                           MappedFile::Open(path));
    FOLIO_ASSIGN_OR_RETURN(std::vector<Json> more,
                           ParseDocument(file->text(), path));
    std::move(more.begin(), more.end(), std::back_inserter(runs));
  }
  std::cout << SummaryTable(runs);
  if (flags.report.empty()) return absl::OkStatus();
  return WriteResult(flags.report, RenderReport(Document(runs)));
}

}  // namespace

absl::Status RunLoadCommand(const LoadFlags& flags) {
  return flags.compare.empty() ? LoadCommand(flags).Run() : Compare(flags);
}

}  // namespace folio
