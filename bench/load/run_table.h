// The results of runs as text, for terminals.

#ifndef BENCH_LOAD_RUN_TABLE_H_
#define BENCH_LOAD_RUN_TABLE_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace folio {

// Of a run as a document has it: latencies, totals, how requests ended, and
// what to mind. Lines of at most 80 characters, unless a message is longer.
std::string RunTable(const nlohmann::json& run);

// A line for each run: its name, and its main numbers.
std::string SummaryTable(std::span<const nlohmann::json> runs);

}  // namespace folio

#endif  // BENCH_LOAD_RUN_TABLE_H_
