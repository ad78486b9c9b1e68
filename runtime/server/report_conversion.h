// From the engine's batch reports to those that clients read.

#ifndef RUNTIME_SERVER_REPORT_CONVERSION_H_
#define RUNTIME_SERVER_REPORT_CONVERSION_H_

#include "folio/v1/introspection.pb.h"
#include "runtime/server/request_registry.h"
#include "scheduler/batch_report.h"

namespace folio {

// `registry` knows what clients call the requests of the report, which have to
// be live still.
v1::BatchReport ToProto(const BatchReport& report,
                        const RequestRegistry& registry);

}  // namespace folio

#endif  // RUNTIME_SERVER_REPORT_CONVERSION_H_
