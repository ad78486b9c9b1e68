// Early returns for absl::Status and absl::StatusOr; Debian's Abseil has none.

#ifndef RUNTIME_BASE_STATUS_MACROS_H_
#define RUNTIME_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FOLIO_STATUS_CONCAT_INNER(a, b) a##b
#define FOLIO_STATUS_CONCAT(a, b) FOLIO_STATUS_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr`, an absl::Status, is not OK.
#define FOLIO_RETURN_IF_ERROR(expr)                               \
  do {                                                            \
    if (absl::Status folio_status = (expr); !folio_status.ok()) { \
      return folio_status;                                        \
    }                                                             \
  } while (false)

// Evaluates `expr`, an absl::StatusOr<T>; returns its status from the enclosing
// function, or moves its value into `lhs` (a declaration or an lvalue).
#define FOLIO_ASSIGN_OR_RETURN(lhs, expr)                                     \
  FOLIO_ASSIGN_OR_RETURN_INNER(FOLIO_STATUS_CONCAT(folio_or_, __LINE__), lhs, \
                               expr)
#define FOLIO_ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                                 \
  if (!result.ok()) return std::move(result).status();  \
  lhs = *std::move(result)

#endif  // RUNTIME_BASE_STATUS_MACROS_H_
