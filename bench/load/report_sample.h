// From reports to what a load test keeps of them.

#ifndef BENCH_LOAD_REPORT_SAMPLE_H_
#define BENCH_LOAD_REPORT_SAMPLE_H_

#include <functional>
#include <string>

#include "bench/load/batch_sample.h"
#include "folio/v1/introspection.pb.h"
#include "runtime/base/types.h"
#include "scheduler/batch_report.h"

namespace folio {

// Of a server's.
BatchSample SampleOf(const v1::BatchReport& report);

// Of an engine's in this process; `name_of` is what the load calls a request.
BatchSample SampleOf(const BatchReport& report,
                     const std::function<std::string(RequestId)>& name_of);

}  // namespace folio

#endif  // BENCH_LOAD_REPORT_SAMPLE_H_
