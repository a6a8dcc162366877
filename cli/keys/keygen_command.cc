// `dovetail keygen`: creates the keys of a job, or of one machine that takes part in it.
#include <cstdio>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/control/key_files.h"

namespace dt::cli {

int RunKeygen(const CommandLine& line) {
  const Status made = WriteKeyFiles(line.key_path, MakeKeyPair());
  if (!made.ok()) return EndWithError(line, "", made);
  std::printf("%s.key: secret; for those who may run the job\n%s.pub: public\n",
              line.key_path.c_str(), line.key_path.c_str());
  return 0;
}

}  // namespace dt::cli
