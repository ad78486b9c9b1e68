#include "runtime/model/embedded_model.h"

#include <cstddef>
#include <span>

#include "runtime/base/embed.h"

// FOLIO_TINY_DIR is the folder of the files.
FOLIO_EMBED(std::byte, folio_tiny_config, FOLIO_TINY_DIR "/config.json");
FOLIO_EMBED(std::byte, folio_tiny_generation_config,
            FOLIO_TINY_DIR "/generation_config.json");
FOLIO_EMBED(std::byte, folio_tiny_tokenizer, FOLIO_TINY_DIR "/tokenizer.json");
FOLIO_EMBED(std::byte, folio_tiny_tokenizer_config,
            FOLIO_TINY_DIR "/tokenizer_config.json");
FOLIO_EMBED(std::byte, folio_tiny_weights, FOLIO_TINY_DIR "/model.safetensors");

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
