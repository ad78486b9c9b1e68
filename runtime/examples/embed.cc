// Generates in this process, without a server: embed [PROMPT [MODEL]]

#include <glog/logging.h>

#include <iostream>

#include "runtime/folio.h"

absl::Status Generate(const char* prompt, const char* model) {
  folio::OpenOptions options;
  options.model = model;
  FOLIO_ASSIGN_OR_RETURN(const auto opened, folio::OpenEngine(options));

  folio::Request request;
  FOLIO_ASSIGN_OR_RETURN(
      request.prompt, opened->tokenizer->Encode(prompt, {.add_special = true}));
  request.max_tokens = 32;
  FOLIO_RETURN_IF_ERROR(opened->engine->Prepare(request));
  FOLIO_RETURN_IF_ERROR(opened->engine->Submit(request));

  folio::StepOutput output;
  for (bool live = true; live;) {
    live = opened->engine->Step(output);
    for (const folio::TokenEvent& event : output.events) {
      std::cout << event.text << (event.terminal ? "\n" : "") << std::flush;
      if (!event.terminal) continue;
      std::clog << event.usage.generated_tokens << " tokens generated\n";
    }
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::GLOG_WARNING;
  const auto status = Generate(argc > 1 ? argv[1] : "In the beginning",
                               argc > 2 ? argv[2] : "");
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
