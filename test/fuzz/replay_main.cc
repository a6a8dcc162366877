// Runs a fuzz target without libFuzzer, first on every file of a corpus, then on seeded mutations
// of them. Usage: NAME CORPUS_DIR MUTATIONS [ONLY]
//
// A crash prints the number of its input. With that number as ONLY, the program prints that input
// and runs it alone.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "common/base/philox.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

volatile uint64_t g_input = 0;  // Number of the running input; the signal handler reads it.

void ReportCrash(int signal_number) {
  char text[64] = "replay: crashed on input ";
  char* const end = std::to_chars(text + 25, text + 60, g_input).ptr;
  *end = '\n';
  const ssize_t ignored = write(STDERR_FILENO, text, static_cast<size_t>(end + 1 - text));
  static_cast<void>(ignored);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

std::vector<std::string> ReadCorpus(const std::string& dir) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Random numbers of one mutation.
class Dice {
 public:
  explicit Dice(uint64_t number) : number_(number) {}
  size_t Below(size_t bound) {
    return bound == 0 ? 0 : dt::Philox(0x6675'7a7a, number_, at_++)[0] % bound;
  }

 private:
  const uint64_t number_;
  uint64_t at_ = 0;
};

void Change(std::string& text, const std::vector<std::string>& corpus, Dice& dice) {
  static const std::string kOdd[] = {std::string(1, '\0'),
                                     "\xff\xff\xff\xff\xff\xff\xff\xff",
                                     "\n",
                                     "\r\n",
                                     "\t",
                                     ",",
                                     "\"",
                                     ":",
                                     "|",
                                     " ",
                                     "-",
                                     "1e999",
                                     "18446744073709551616",
                                     "nan",
                                     "\x80",
                                     "{",
                                     "}",
                                     "\x7f"};
  const size_t at = dice.Below(text.size() + 1);
  switch (dice.Below(6)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << dice.Below(8)));
      break;
    case 1:
      text.erase(at, 1 + dice.Below(8));
      break;
    case 2:
      text.insert(at, kOdd[dice.Below(std::size(kOdd))]);
      break;
    case 3:
      text.insert(at, text.substr(dice.Below(text.size() + 1), 1 + dice.Below(64)));
      break;
    case 4: {
      const std::string& other = corpus[dice.Below(corpus.size())];
      text = text.substr(0, at) + other.substr(dice.Below(other.size() + 1));
      break;
    }
    default:
      text.resize(at);
  }
}

// Input `number` is a file of the corpus, or a mutation of one. A pure function.
std::string InputOf(const std::vector<std::string>& corpus, uint64_t number) {
  if (number < corpus.size()) return corpus[number];
  Dice dice(number);
  std::string text = corpus[dice.Below(corpus.size())];
  for (size_t changes = 1 + dice.Below(5); changes > 0; --changes) Change(text, corpus, dice);
  return text;
}

void RunOne(const std::string& text, uint64_t number) {
  g_input = number;
  // A copy of the exact size, so that AddressSanitizer detects reads past the end.
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CORPUS_DIR MUTATIONS [ONLY]\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> corpus = ReadCorpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no files found\n", argv[1]);
    return 2;
  }
  for (const int signal_number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    signal(signal_number, ReportCrash);
  }
  if (argc > 3) {
    const uint64_t only = std::strtoull(argv[3], nullptr, 10);
    const std::string text = InputOf(corpus, only);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    RunOne(text, only);
    return 0;
  }
  const uint64_t inputs = corpus.size() + std::strtoull(argv[2], nullptr, 10);
  for (uint64_t number = 0; number < inputs; ++number) RunOne(InputOf(corpus, number), number);
  std::printf("replay: %zu files and %llu mutations, no crash\n", corpus.size(),
              static_cast<unsigned long long>(inputs - corpus.size()));
  return 0;
}
