// From what the engine says about a request to what its client reads.

#ifndef RUNTIME_SERVER_RESPONSE_CONVERSION_H_
#define RUNTIME_SERVER_RESPONSE_CONVERSION_H_

#include "folio/v1/generation.pb.h"
#include "scheduler/token_event.h"

namespace folio {

// Appends the event's tokens, text and logprobs to those that `response` has,
// and sets its finish reason and usage when the event has them. All events of
// one response must be of one sample, in order.
void AppendToProto(const TokenEvent& event, v1::GenerateResponse& response);

}  // namespace folio

#endif  // RUNTIME_SERVER_RESPONSE_CONVERSION_H_
