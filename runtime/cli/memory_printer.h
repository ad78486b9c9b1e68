// How `folio memory` shows a report.

#ifndef RUNTIME_CLI_MEMORY_PRINTER_H_
#define RUNTIME_CLI_MEMORY_PRINTER_H_

#include <string>
#include <string_view>

#include "folio/v1/introspection.pb.h"

namespace folio {

// A lower-case word; "none" when nobody waits.
std::string_view WaitReasonName(v1::WaitReason reason);

// When the batch began, as 2024-02-29T12:00:00.000Z.
std::string StartTime(const v1::BatchReport& report);

// The others write to stdout at once.

// The memory between two steps, for people, with the sums that its numbers are
// part of.
void PrintReportTable(const v1::BatchReport& report);

// A line for each batch under one header.
void PrintBatchHeader();
void PrintBatchLine(const v1::BatchReport& report);

// Every field, under its name in the proto; null for what is not known.
void PrintBatchJson(const v1::BatchReport& report);

}  // namespace folio

#endif  // RUNTIME_CLI_MEMORY_PRINTER_H_
