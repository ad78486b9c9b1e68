#include "bench/load/load_flags.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/load/lengths.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/flags.h"

namespace folio {
namespace {

constexpr int32_t kMaxRequests = 1'000'000;

constexpr char kWithinContext[] = ", cut to half of the target's context";

constexpr char kArrivals[] = "Arrivals";
constexpr char kLoad[] = "Load";
constexpr char kBehaviour[] = "Behaviour of clients";
constexpr char kResults[] = "Results";

// What parses `text` throws with the flag's name.
template <typename Parse, typename Value>
CLI::Option* AddParsed(CLI::App& app, const std::string& name,
                       const Parse& parse, Value& value,
                       const std::string& description) {
  return app.add_option_function<std::string>(
      name,
      [name, parse, &value](const std::string& text) {
        auto parsed = parse(text);
        if (!parsed.ok()) {
          throw CLI::ValidationError(name,
                                     std::string(parsed.status().message()));
        }
        value = *std::move(parsed);
      },
      description);
}

CLI::Option* AddNumber(CLI::App& app, const std::string& name, int32_t& number,
                       int32_t least, int32_t most,
                       const std::string& description) {
  return app.add_option(name, number, description)
      ->check(CLI::Range(least, most).description(""))
      ->capture_default_str()
      ->type_name("N");
}

// (CLI::Range lets through what is not a number.)
CLI::Validator RealRange(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        double number;
        if (absl::SimpleAtod(text, &number) && number >= least &&
            number <= most) {
          return "";
        }
        return absl::StrCat("'", text, "' is not a number from ", least, " to ",
                            most);
      },
      "");
}

CLI::Option* AddShare(CLI::App& app, const std::string& name, double& share,
                      const std::string& description) {
  return app.add_option(name, share, description)
      ->check(RealRange(0, 1))
      ->capture_default_str()
      ->type_name("SHARE");
}

CLI::Option* AddTime(CLI::App& app, const std::string& name,
                     absl::Duration& duration, const std::string& description) {
  const auto parse =
      [](const std::string& text) -> absl::StatusOr<absl::Duration> {
    absl::Duration parsed;
    if (!absl::ParseDuration(text, &parsed) || parsed <= absl::ZeroDuration() ||
        parsed > absl::Hours(24)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text,
          "' is not a length of time above zero, of a day at most; "
          "give a number and a unit, such as 50ms or 1.5s"));
    }
    return parsed;
  };
  return AddParsed(app, name, parse, duration,
                   absl::StrCat(description,
                                ". Default: ", absl::FormatDuration(duration)))
      ->type_name("TIME");
}

void AddArrivalFlags(CLI::App& app, LoadFlags& flags) {
  app.add_option("--rate", flags.rate,
                 "Requests a second of an open loop, by a Poisson process. "
                 "Without it and --concurrency, all arrive at once")
      ->check(RealRange(kMinRate, kMaxRate))
      ->type_name("R")
      ->group(kArrivals);
  app.add_option("--burstiness", flags.burstiness,
                 "With --rate: gaps are gamma distributed with this shape. "
                 "1: Poisson; less: in bursts; more: more evenly")
      ->check(RealRange(1e-2, 1e4))
      ->type_name("B")
      ->group(kArrivals);
  app.add_flag("--constant", flags.constant, "With --rate: gaps are all equal")
      ->group(kArrivals);
  AddNumber(app, "--concurrency", flags.concurrency, 1, kMaxRequests,
            "A closed loop: as many requests are on their way at any time; the "
            "next one goes when one has ended")
      ->default_str("")
      ->group(kArrivals);
  AddParsed(
      app, "--sweep", [](const std::string& text) { return ParseSweep(text); },
      flags.sweep,
      "A run for each value: rate=FROM:TO:STEP or "
      "concurrency=FROM:TO:STEP")
      ->type_name("NAME=FROM:TO:STEP")
      ->group(kArrivals);
}

void AddLengthFlags(CLI::App& app, LoadFlags& flags) {
  SyntheticLoad& load = flags.synthetic;
  const auto length = [](const std::string& text) { return ParseLength(text); };
  app.add_option("--trace", flags.trace,
                 "Requests with their times from a file, an object of JSON a "
                 "line")
      ->check(NotEmptyCheck())
      ->type_name("FILE")
      ->group(kLoad);
  AddNumber(app, "--requests", load.count, 1, kMaxRequests,
            "How many; each turn of a conversation is one")
      ->group(kLoad);
  AddParsed(app, "--prompt-tokens", length, flags.prompt,
            absl::StrCat("N, uniform:LEAST-MOST or "
                         "lognormal:MEDIAN,SIGMA,MOST. Default: ",
                         ToString(load.prompt), kWithinContext))
      ->type_name("LENGTH")
      ->group(kLoad);
  AddParsed(app, "--output-tokens", length, flags.output,
            absl::StrCat("As --prompt-tokens. Default: ", ToString(load.output),
                         kWithinContext))
      ->type_name("LENGTH")
      ->group(kLoad);
  AddNumber(app, "--long-prompt-every", load.long_prompt_every, 0, kMaxRequests,
            "Every so many requests, one has a long prompt. 0: none")
      ->group(kLoad);
  AddNumber(app, "--long-prompt-tokens", load.long_prompt_tokens, 1, kMaxTokens,
            "Of those")
      ->group(kLoad);
  AddNumber(app, "--shared-prefix", load.shared_prefix_tokens, 0, kMaxTokens,
            "Tokens in front of each prompt that others have, too")
      ->group(kLoad);
  AddNumber(app, "--prefix-groups", load.prefix_groups, 1, kMaxRequests,
            "How many different ones there are")
      ->group(kLoad);
  AddNumber(app, "--turns", load.turns, 1, kMaxRequests,
            "Turns of each conversation, which send their history again")
      ->group(kLoad);
  AddParsed(app, "--think-ms", length, load.think_ms,
            "Milliseconds between an answer and the next turn, as "
            "--prompt-tokens. Default: none")
      ->type_name("LENGTH")
      ->group(kLoad);
  AddNumber(app, "--n", load.n, 1, 1 << 16, "Samples of each request")
      ->group(kLoad);
  AddNumber(app, "--tenants", load.tenants, 0, kMaxRequests,
            "Tenants whose the requests are. 0: none is named")
      ->group(kLoad);
  app.add_option("--vocab-size", flags.vocab_size,
                 "Ids of prompts are below this. Default: what the target "
                 "tells, else 32000")
      ->check(
          CLI::Range(1, std::numeric_limits<int32_t>::max()).description(""))
      ->type_name("N")
      ->group(kLoad);
}

void AddBehaviourFlags(CLI::App& app, LoadFlags& flags) {
  SyntheticLoad& load = flags.synthetic;
  AddShare(app, "--cancel-share", load.cancel_share,
           "Of requests whose clients give up")
      ->group(kBehaviour);
  AddTime(app, "--cancel-within", load.cancel_within,
          "When those do: evenly from 0 to this after their arrival")
      ->group(kBehaviour);
  AddShare(app, "--deadline-share", load.deadline_share,
           "Of requests with a deadline")
      ->group(kBehaviour);
  AddTime(app, "--deadline", load.deadline, "That deadline, after the arrival")
      ->group(kBehaviour);
  AddShare(app, "--slow-reader-share", load.slow_reader_share,
           "Of requests whose clients read slowly (not with inproc:)")
      ->group(kBehaviour);
  AddTime(app, "--read-delay", load.read_delay,
          "How long those wait before each message")
      ->group(kBehaviour);
}

void AddResultFlags(CLI::App& app, LoadFlags& flags) {
  const auto limits = [&flags](const std::string& text) {
    flags.has_limits = true;
    return ParseLimits(text);
  };
  AddParsed(
      app, "--goodput", limits, flags.limits,
      "Limits in milliseconds that a good request keeps, of ttft, itl (99% "
      "of its gaps), tpot and e2e, such as ttft:200,itl:50")
      ->type_name("NAME:MS,...")
      ->group(kResults);
  AddShare(app, "--goodput-share", flags.goodput_share,
           "Of requests that have to be good for a run to meet the limits")
      ->group(kResults);
  app.add_option("--name", flags.name,
                 "Of the run, in tables and reports. Default: the target")
      ->type_name("TEXT")
      ->group(kResults);
  for (const auto& [name, path, description] :
       {std::tuple("--json", &flags.json,
                   "Write all results here; -: on stdout, instead of tables"),
        std::tuple("--report", &flags.report,
                   "Write one page of HTML with charts here"),
        std::tuple("--write-trace", &flags.write_trace,
                   "Write the requests here, for --trace")}) {
    app.add_option(name, *path, description)
        ->check(NotEmptyCheck())
        ->type_name("FILE")
        ->group(kResults);
  }
  app.add_option("--compare", flags.compare,
                 "Instead of a run: one report, and one table, of runs that "
                 "--json wrote")
      ->check(NotEmptyCheck())
      ->type_name("FILE FILE...")
      ->group(kResults);
}

// Flags that are there, of those that only matter with --rate.
absl::Status CheckArrivals(const LoadFlags& flags) {
  const bool sweeps_rate = flags.sweep.has_value() &&
                           flags.sweep->variable == Sweep::Variable::kRate;
  const bool sweeps_concurrency = flags.sweep.has_value() && !sweeps_rate;
  const bool has_rate = flags.rate.has_value() || sweeps_rate;
  if (has_rate && (flags.concurrency > 0 || sweeps_concurrency)) {
    return absl::InvalidArgumentError(
        "a rate is of an open loop and a concurrency of a closed one; give one "
        "of them");
  }
  if (flags.rate.has_value() && sweeps_rate) {
    return absl::InvalidArgumentError(
        "--rate and --sweep rate=... say the same; give one of them");
  }
  if (flags.concurrency > 0 && sweeps_concurrency) {
    return absl::InvalidArgumentError(
        "--concurrency and --sweep concurrency=... say the same; give one of "
        "them");
  }
  if (!flags.trace.empty() && has_rate) {
    return absl::InvalidArgumentError(
        "--trace has times of its own; leave the rate out");
  }
  if (!has_rate && (flags.constant || flags.burstiness.has_value())) {
    return absl::InvalidArgumentError(
        "--constant and --burstiness say how requests arrive at a rate; give "
        "--rate, too");
  }
  if (flags.constant && flags.burstiness.has_value()) {
    return absl::InvalidArgumentError(
        "--constant and --burstiness do not go together; give one of them");
  }
  return absl::OkStatus();
}

// The first option in the groups that was given; null if none was.
const CLI::Option* FirstGiven(const CLI::App& app,
                              const std::vector<std::string>& groups,
                              const std::vector<std::string>& except) {
  for (const CLI::Option* const option : app.parse_order()) {
    if (std::ranges::count(groups, option->get_group()) > 0 &&
        std::ranges::count(except, option->get_name()) == 0) {
      return option;
    }
  }
  return nullptr;
}

// A flag without effect is a mistake.
absl::Status CheckEffects(const CLI::App& app, const LoadFlags& flags) {
  if (!flags.compare.empty()) {
    for (const CLI::Option* const option : app.parse_order()) {
      const std::string name = option->get_name();
      if (name == "--compare" || name == "--report") continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--compare reads runs that were made before; leave ", name, " out"));
    }
    return absl::OkStatus();
  }
  if (flags.trace.empty()) return absl::OkStatus();
  const CLI::Option* const given =
      FirstGiven(app, {kLoad, kBehaviour}, {"--trace", "--vocab-size"});
  if (given == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--trace says all of its requests; leave ", given->get_name(), " out"));
}

absl::Status CheckFiles(const LoadFlags& flags) {
  if (flags.report == "-") {
    return absl::InvalidArgumentError(
        "--report is a page for a browser; give it a file");
  }
  if (!flags.report.empty() && flags.report == flags.json) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--json and --report are both '", flags.json, "'; give two files"));
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const LoadFlags& flags) {
  if (flags.target.target.empty() && flags.write_trace.empty()) {
    return absl::InvalidArgumentError(
        "--target is missing; give folio://ADDR:PORT, openai://ADDR:PORT/v1 or "
        "inproc:");
  }
  if (!flags.target.target.empty() && !IsTarget(flags.target.target)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--target '", flags.target.target,
        "' is none; give folio://ADDR:PORT, openai://ADDR:PORT/v1 or "
        "inproc:"));
  }
  const ClientOptions& security = flags.target.security.options;
  if (!security.tls_ca.empty() && !flags.target.target.starts_with(kFolio)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-ca is of folio:// targets; '", flags.target.target,
                     "' is reached without TLS"));
  }
  if (flags.engine->count_all() > 0 && flags.target.target != kInProcess) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.engine->parse_order().empty()
                         ? "a flag of the engine"
                         : flags.engine->parse_order()[0]->get_name(),
                     " is of the engine that --target ", kInProcess, " has; '",
                     flags.target.target, "' has its own"));
  }
  if (flags.target.target == kInProcess &&
      flags.synthetic.slow_reader_share > 0) {
    return absl::InvalidArgumentError(
        "--slow-reader-share is of targets with a connection; inproc: has "
        "none");
  }
  return absl::OkStatus();
}

// Whether the flags go together.
absl::Status Check(const CLI::App& app, const LoadFlags& flags) {
  FOLIO_RETURN_IF_ERROR(CheckEffects(app, flags));
  FOLIO_RETURN_IF_ERROR(CheckFiles(flags));
  if (!flags.compare.empty()) return absl::OkStatus();
  FOLIO_RETURN_IF_ERROR(CheckTarget(flags));
  return CheckArrivals(flags);
}

}  // namespace

void AddLoadFlags(CLI::App& app, LoadFlags& flags) {
  // Enough to see percentiles, and done in half a minute on most machines.
  flags.synthetic.count = 64;
  CLI::Option* const target =
      app.add_option("--target", flags.target.target,
                     "What the load is put on: folio://ADDR:PORT (gRPC), "
                     "openai://ADDR:PORT/v1 (HTTP completions, of llama.cpp's "
                     "server and vLLM, too), or inproc: (the engine in this "
                     "process, of which the flags of an engine are)")
          ->type_name("URL");
  app.add_option("--api-model", flags.target.api_model,
                 "Which model of an openai:// target. Default: its first")
      ->type_name("NAME");
  AddArrivalFlags(app, flags);
  AddLengthFlags(app, flags);
  AddBehaviourFlags(app, flags);
  AddSeedOption(app, flags.seed, "Of all that is drawn. Default: 1")
      ->group(kLoad);
  AddResultFlags(app, flags);
  AddClientSecurityFlags(app, target, flags.target.security);
  CLI::Option_group* const engine =
      app.add_option_group("Engine", "Of --target inproc: alone");
  flags.engine = engine;
  AddEngineFlags(*engine, flags.target.engine);
  AddSchedulingFlags(*engine, flags.target.engine);
  app.callback([&app, &flags] {
    if (flags.seed.has_value()) flags.synthetic.seed = *flags.seed;
    const absl::Status status = Check(app, flags);
    if (!status.ok()) throw CLI::ValidationError(std::string(status.message()));
  });
}

}  // namespace folio
