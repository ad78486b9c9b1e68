// How `folio memory` shows a report.

#ifndef RUNTIME_CLI_MEMORY_PRINTER_H_
#define RUNTIME_CLI_MEMORY_PRINTER_H_

#include "folio/v1/introspection.pb.h"

namespace folio {

// All write to stdout at once.

// The memory between two steps, for people, with the sums that its numbers are
// part of.
void PrintReportTable(const v1::BatchReport& report);

// A line for each batch under one header.
void PrintBatchHeader();
void PrintBatchLine(const v1::BatchReport& report);

// Every field, under its name in the proto.
void PrintBatchJson(const v1::BatchReport& report);

}  // namespace folio

#endif  // RUNTIME_CLI_MEMORY_PRINTER_H_
