// The page that shows what load tests measured.

#ifndef BENCH_LOAD_REPORT_H_
#define BENCH_LOAD_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace folio {

// One page of HTML with everything in it: it loads nothing, from the network or
// from files. `document` is what --json writes, of one run or of several, which
// the page compares. Its strings may hold anything: they become text, never
// markup; bytes that are not UTF-8 become U+FFFD.
std::string RenderReport(const nlohmann::json& document);

}  // namespace folio

#endif  // BENCH_LOAD_REPORT_H_
