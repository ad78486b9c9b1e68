// Files that are a part of the program.

#ifndef RUNTIME_BASE_EMBED_H_
#define RUNTIME_BASE_EMBED_H_

// At the top of a source file: the assembler copies the file at `path`, a
// string literal, into the program, between `symbol`_begin and `symbol`_end,
// two arrays of `type`, a type of one byte. CMake does not see that; the file
// has to be among the OBJECT_DEPENDS of the source.
#define FOLIO_EMBED(type, symbol, path)     \
  asm(".pushsection .rodata\n"              \
      ".balign 64\n"                        \
      ".global " #symbol "_begin\n" #symbol \
      "_begin:\n"                           \
      ".incbin \"" path                     \
      "\"\n"                                \
      ".global " #symbol "_end\n" #symbol   \
      "_end:\n"                             \
      ".popsection\n");                     \
  extern "C" const type symbol##_begin[];   \
  extern "C" const type symbol##_end[]

#endif  // RUNTIME_BASE_EMBED_H_
