// The identities that introspection.proto promises.

#ifndef TESTS_RUNTIME_SERVER_REPORT_IDENTITIES_H_
#define TESTS_RUNTIME_SERVER_REPORT_IDENTITIES_H_

#include "folio/v1/introspection.pb.h"

namespace folio {

// Expects all of them, and what else has to add up in a report.
void ExpectIdentities(const v1::BatchReport& report);

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_REPORT_IDENTITIES_H_
