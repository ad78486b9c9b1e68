#include "runtime/model/embedded_model.h"

#include <cstddef>
#include <span>

// FOLIO_TINY_DIR is the folder of the files. The assembler copies each of them
// into the program, between two symbols.
#define FOLIO_EMBED(symbol, file)              \
  asm(".pushsection .rodata\n"                 \
      ".balign 64\n"                           \
      ".global " #symbol "_begin\n" #symbol    \
      "_begin:\n"                              \
      ".incbin \"" FOLIO_TINY_DIR "/" file     \
      "\"\n"                                   \
      ".global " #symbol "_end\n" #symbol      \
      "_end:\n"                                \
      ".popsection\n");                        \
  extern "C" const std::byte symbol##_begin[]; \
  extern "C" const std::byte symbol##_end[]

FOLIO_EMBED(folio_tiny_config, "config.json");
FOLIO_EMBED(folio_tiny_generation_config, "generation_config.json");
FOLIO_EMBED(folio_tiny_tokenizer, "tokenizer.json");
FOLIO_EMBED(folio_tiny_tokenizer_config, "tokenizer_config.json");
FOLIO_EMBED(folio_tiny_weights, "model.safetensors");

namespace folio {

ModelFiles EmbeddedModelFiles() {
  return ModelFiles::InMemory(
      kEmbeddedModelName,
      {{"config.json", {folio_tiny_config_begin, folio_tiny_config_end}},
       {"generation_config.json",
        {folio_tiny_generation_config_begin, folio_tiny_generation_config_end}},
       {"tokenizer.json",
        {folio_tiny_tokenizer_begin, folio_tiny_tokenizer_end}},
       {"tokenizer_config.json",
        {folio_tiny_tokenizer_config_begin, folio_tiny_tokenizer_config_end}},
       {"model.safetensors",
        {folio_tiny_weights_begin, folio_tiny_weights_end}}});
}

}  // namespace folio
