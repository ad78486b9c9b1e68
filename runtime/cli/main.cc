#include "runtime/cli/command_line.h"

int main(int argc, char** argv) { return folio::RunCommandLine(argc, argv); }
