#include "cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/completion/bash_completion.h"
#include "cli/key_hint.h"
#include "cli/outcome.h"
#include "cli/version.h"
#include "common/base/text.h"
#include "common/storage/files.h"

namespace dt::cli {
namespace {

// Commands that the documentation names but that do not exist yet.
constexpr std::string_view kLater[] = {"serve"};

const std::vector<std::pair<std::string, LogLevel>> kLevels = {{"debug", LogLevel::kDebug},
                                                               {"info", LogLevel::kInfo},
                                                               {"warn", LogLevel::kWarn},
                                                               {"error", LogLevel::kError},
                                                               {"off", LogLevel::kOff}};

class Parser {
 public:
  explicit Parser(CommandLine& out) : out_(out) {
    app_.set_version_flag("--version", std::string("dovetail ") + kVersion);
    app_.require_subcommand(1);
    app_.name("dovetail");
    app_.footer(
        "Exit codes: 0 done, 1 the job failed, 2 wrong usage or configuration, 3 bad data, "
        "129 SIGHUP, 130 SIGINT, 143 SIGTERM.");
    AddJobCommands();
    AddRoles();
    AddInspection();
    AddOutputs();
    AddDataCommands();
    AddBench();
    RefuseFlagsAsValues(app_);
  }

  int Parse(int argc, char** argv) {
    try {
      if (argc > 1) CheckCommand(argv[1]);
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      std::ostringstream out, problem;
      const int code = app_.exit(e, out, problem);
      PrintText(out.str());
      const bool unknown = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
      const std::string hint = unknown ? KeyHint(std::span(argv, argc), e.what()) : "";
      std::fputs(Printable(problem.str() + hint).c_str(), stderr);
      if (code == 0) return 0;
      KeepResult(argc, argv, e.what());
      return 2;
    }
    for (const CLI::App* sub = app_.get_subcommands().front(); sub != nullptr;) {
      out_.command += (out_.command.empty() ? "" : " ") + sub->get_name();
      const auto deeper = sub->get_subcommands();
      sub = deeper.empty() ? nullptr : deeper.front();
    }
    if (out_.command == "completion") {
      PrintText(BashCompletion(app_));
      return 0;
    }
    return -1;
  }

 private:
  // CLI11 would only report that a subcommand is required.
  void CheckCommand(const std::string& name) const {
    if (name.starts_with("-")) return;
    std::vector<std::string> names;
    for (const CLI::App* sub : app_.get_subcommands({})) names.push_back(sub->get_name());
    if (std::ranges::find(names, name) != names.end()) return;
    if (std::ranges::find(kLater, name) != std::end(kLater)) {
      throw CLI::ValidationError("dovetail", "the command " + name + " is not available yet");
    }
    throw CLI::ValidationError("dovetail",
                               "there is no command \"" + name + "\"" + DidYouMean(name, names));
  }

  // CLI11 would take whatever follows as an option's value: `--result --no-progress`.
  static void RefuseFlagsAsValues(CLI::App& app) {
    const auto problem = [&app](const std::string& value) {
      const bool is_flag = value.starts_with("--") && app.get_option_no_throw(value) != nullptr;
      return is_flag ? "a value is missing before " + value : std::string();
    };
    for (CLI::Option* option : app.get_options()) {
      if (option->get_items_expected_min() > 0) option->check(CLI::Validator(problem, ""));
    }
    for (CLI::App* sub : app.get_subcommands({})) RefuseFlagsAsValues(*sub);
  }

  // Writes the result file, if one is asked for, also after a usage error.
  static void KeepResult(int argc, char** argv, const std::string& why) {
    JobResult result;
    result.status = Invalid("{}", why);
    for (int i = 1; i < argc; ++i) {
      const std::string flag = argv[i];
      const bool separate =
          flag == "--result" && i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--");
      if (!separate && !flag.starts_with("--result=")) continue;
      const std::string path = separate ? argv[i + 1] : flag.substr(flag.find('=') + 1);
      if (Status s = WriteWholeFile(path, ToJson(result)); !s.ok()) PrintError(s);
    }
  }

  CLI::App* Command(CLI::App& parent, const std::string& name, const std::string& what,
                    const std::string& example) {
    CLI::App* sub = parent.add_subcommand(name, what);
    sub->footer("Example:\n  dovetail " + example);
    return sub;
  }

  void JobFlags(CLI::App* sub, bool required = true) {
    CLI::Option* job = sub->add_option("job", out_.job_path, "The job file")->type_name("JOB.yaml");
    if (required) job->required();
    sub->add_option("--set", out_.overrides,
                    "Override a key of the job (repeatable); the value is YAML")
        ->type_name("a.b.c=value")
        ->take_all();
    LogFlag(sub);
  }

  void RunningJobFlags(CLI::App* sub) {
    JobFlags(sub, false);
    sub->add_option("--scheduler", out_.scheduler, "Ask this scheduler")
        ->type_name("tcp://HOST:PORT");
    sub->add_option("--key", out_.key_path, "The job's key, if JOB.yaml is not given")
        ->type_name("FILE");
  }

  void LogFlag(CLI::App* sub) {
    sub->add_option_function<std::string>(
           "--log-level",
           [this](const std::string& name) {
             const auto level =
                 std::ranges::find(kLevels, name, &decltype(kLevels)::value_type::first);
             if (level == kLevels.end()) {
               throw CLI::ValidationError(
                   "--log-level",
                   "found \"" + name + "\", expected debug, info, warn, error or off");
             }
             out_.log_level = level->second;
           },
           "What is logged to standard error; default: warn")
        ->type_name("debug|info|warn|error|off");
  }

  // All commands accept --resume, so that all roles of a job can be started with the same flags.
  // Only those that decide where training begins use it.
  void RunFlags(CLI::App* sub) {
    const bool begins =
        sub->get_name() == "train" || sub->get_name() == "launch" || sub->get_name() == "scheduler";
    JobFlags(sub);
    sub->add_option("--result", out_.result_path,
                    "Write one JSON object here at the end, on failure too")
        ->type_name("FILE.json");
    sub->add_option("--resume", out_.resume,
                    begins ? "never (default), auto (the newest complete checkpoint), or DIR"
                           : "Changes nothing here: it is for train, launch and scheduler")
        ->type_name("auto|never|DIR");
    sub->add_option("--init", out_.init,
                    begins
                        ? "Begin with the rows and dense parameters of another job's checkpoint: "
                          "its folder, with a slash in it, or the job's name for the newest one"
                        : "Changes nothing here: it is for train, launch and scheduler")
        ->type_name("DIR|JOB");
    sub->add_flag("--no-progress", out_.no_progress,
                  "No progress line (default when standard output is no terminal)");
  }

  void AddJobCommands() {
    RunFlags(Command(app_, "train", "Run the whole job in one process",
                     "train configs/frappe_deepfm.yaml --set train.epochs=2"));
    RunFlags(Command(app_, "launch", "Run the job as separate processes on this machine",
                     "launch configs/quickstart.yaml --result result.json"));
    CLI::App* eval =
        Command(app_, "eval", "Evaluate a checkpoint on the test data, else the validation data",
                "eval job.yaml --checkpoint runs/job/checkpoints/best");
    RunFlags(eval);
    eval->add_option("--checkpoint", out_.checkpoint, "Folder of the checkpoint")->required();
    CLI::App* predict = Command(
        app_, "predict", "Write a prediction for every sample of some files",
        "predict job.yaml --checkpoint DIR --data new.csv --keep user,item --out scores.csv");
    RunFlags(predict);
    predict->add_option("--checkpoint", out_.checkpoint, "Folder of the checkpoint")->required();
    predict
        ->add_option("--data", out_.data_paths,
                     "Samples in the job's format: files, \"globs\", or - for standard input")
        ->required();
    predict
        ->add_option("--keep", out_.kept_columns,
                     "Columns of the samples to write in front of the predictions")
        ->delimiter(',');
    predict->add_option("--out", out_.out_path, "CSV to write")->required();
  }

  void AddRoles() {
    for (const char* role : {"scheduler", "server", "worker"}) {
      CLI::App* sub =
          Command(app_, role, std::string("Run one ") + role + " of a job in the foreground",
                  std::string(role) + (role == std::string_view("scheduler")
                                           ? " job.yaml --listen tcp://10.0.0.1:7000"
                                           : " job.yaml --scheduler tcp://10.0.0.1:7000"));
      RunFlags(sub);
      if (role != std::string_view("scheduler")) {
        sub->add_option("--scheduler", out_.scheduler,
                        "Where the scheduler is (default: cluster.scheduler of the job)")
            ->type_name("tcp://HOST:PORT");
      }
      // Not in the help: only `launch` passes it.
      sub->add_option("--child", out_.child)->group("");
      sub->add_flag("--follows-killed", out_.follows_killed)->group("");
      sub->add_option("--listen", out_.listen, "Address to bind and to be reached at")
          ->type_name("ADDR");
    }
  }

  void AddInspection() {
    CLI::App* plan = Command(app_, "plan", "Show what would run where, and why",
                             "plan configs/frappe_deepfm.yaml --after differentiate --format dot");
    JobFlags(plan, false);
    const CLI::App* query =
        Command(*plan, "query", "Answer questions about layouts: a line of JSON in, one out",
                "plan query < questions.jsonl");
    plan->parse_complete_callback([this, query] {
      if (!query->parsed() && out_.job_path.empty()) throw CLI::RequiredError("job");
    });
    plan->add_option("--after", out_.pass, "Show the graph after this pass (or: all, as text)");
    plan->add_option("--rank", out_.rank, "Show what this worker gets, if several are a team")
        ->check(CLI::Range(0, 4095));
    plan->add_option("--format", out_.format,
                     "text, json, dot or html (these three: of the last pass)")
        ->check(CLI::IsMember({"text", "json", "dot", "html"}));
    CLI::App* status = Command(app_, "status", "Show a running job: processes, shards, progress",
                               "status job.yaml --json");
    RunningJobFlags(status);
    status->add_flag("--json", out_.json, "One JSON object");
    CLI::App* drain =
        Command(app_, "drain", "Take a server out of a running job; its shards go to the others",
                "drain 2 job.yaml");
    drain->add_option("server", out_.server, "The server's number, as `dovetail status` shows it")
        ->required();
    RunningJobFlags(drain);
    CLI::App* scale = Command(app_, "scale", "Change how many servers or workers a running job has",
                              "scale workers 4 job.yaml");
    scale->add_option("role", out_.role, "servers or workers")
        ->required()
        ->check(CLI::IsMember({"servers", "workers"}));
    scale->add_option("count", out_.count, "How many the job is to have")->required();
    RunningJobFlags(scale);
    CLI::App* schema =
        Command(app_, "schema", "Print the JSON Schema of the job file, or of what is written",
                "schema > job.schema.json");
    schema
        ->add_option("of", out_.schema,
                     "job (default), status (/status), plan (the plan as JSON) or manifest (of a "
                     "checkpoint)")
        ->check(CLI::IsMember({"job", "status", "plan", "manifest"}));
    Command(app_, "completion", "Print the script by which a shell completes commands and flags",
            "completion bash > ~/.local/share/bash-completion/completions/dovetail")
        ->add_option("shell", out_.format, "The shell")
        ->required()
        ->check(CLI::IsMember({"bash"}));
    CLI::App* keygen =
        Command(app_, "keygen", "Make a pair of keys: STEM.key, which is secret, and STEM.pub",
                "keygen keys/job");
    keygen->add_option("stem", out_.key_path, "Where; without an ending")
        ->required()
        ->type_name("STEM");
  }

  void AddOutputs() {
    CLI::App* checkpoint =
        Command(app_, "checkpoint", "Look at checkpoints", "checkpoint list job.yaml");
    checkpoint->require_subcommand(1);
    JobFlags(Command(*checkpoint, "list", "The complete checkpoints of a job, oldest first",
                     "checkpoint list job.yaml"));
    CLI::App* verify =
        Command(*checkpoint, "verify", "Check every file of a checkpoint against its digest",
                "checkpoint verify runs/job/checkpoints/best");
    verify->add_option("folder", out_.checkpoint, "Folder of the checkpoint")->required();
    CLI::App* inspect =
        Command(*checkpoint, "inspect", "What a checkpoint holds: tables, rows, sizes, files",
                "checkpoint inspect runs/job/checkpoints/best");
    inspect->add_option("folder", out_.checkpoint, "Folder of the checkpoint")->required();
    inspect->add_flag("--json", out_.json, "One JSON object");
    CLI::App* exported =
        Command(app_, "export", "Write tables and dense parameters for other programs",
                "export runs/job/checkpoints/best --format safetensors --out model.safetensors");
    exported->add_option("folder", out_.checkpoint, "Folder of the checkpoint")
        ->required()
        ->type_name("CHECKPOINT");
    exported->add_option("--format", out_.format, "safetensors or npz")
        ->required()
        ->check(CLI::Validator(
            [](const std::string& format) {
              return std::string(format == "onnx" ? "onnx is not available yet; use safetensors "
                                                    "or npz"
                                                  : "");
            },
            ""))
        ->check(CLI::IsMember({"safetensors", "npz"}));
    exported->add_option("--table", out_.table, "This table alone, without dense parameters")
        ->type_name("NAME");
    exported->add_option("--out", out_.out_path, "File to write (default: named after both)")
        ->type_name("FILE");
    CLI::App* report = Command(app_, "report", "Write the report page of a result file",
                               "report runs/job/result.json --out report.html");
    report->add_option("result", out_.result_path, "Result file")
        ->required()
        ->type_name("FILE.json");
    report->add_option("--out", out_.out_path, "Page to write")->required();
    report
        ->add_option("--truth", out_.truth_path,
                     "truth.json of generated data: the best possible result")
        ->type_name("FILE.json");
  }

  void AddDataCommands() {
    CLI::App* data =
        Command(app_, "data", "Make, convert and describe data", "data stats job.yaml");
    data->require_subcommand(1);
    CLI::App* generate =
        Command(*data, "generate",
                "Criteo-shaped rows with a planted model: the best possible AUC is known",
                "data generate --rows 1000000 --seed 1 --out data/synthetic");
    generate->add_option("--rows", out_.rows, "Rows in all; 80/10/10 go to train, valid, test")
        ->check(CLI::Range(uint64_t{10}, uint64_t{100'000'000'000}));
    generate->add_option("--seed", out_.seed, "Same seed, same bytes");
    generate->add_option("--out", out_.out_path, "Folder to write")->required();
    LogFlag(generate);
    JobFlags(Command(*data, "convert", "Read a job's data into its binary cache now",
                     "data convert job.yaml"));
    CLI::App* stats = Command(*data, "stats", "Rows, label mean, keys and lengths of every column",
                              "data stats job.yaml --json");
    JobFlags(stats);
    stats->add_flag("--json", out_.json, "One JSON object");
  }

  void AddBench() {
    CLI::App* bench = Command(app_, "bench", "Measure this machine", "bench store --json");
    bench->require_subcommand(1);
    for (const char* what : {"store", "disk", "transport", "plan", "devices"}) {
      CLI::App* sub = Command(*bench, what, std::string("Measure: ") + what,
                              std::string("bench ") + what + " --json");
      sub->add_flag("--json", out_.json, "One JSON object");
      if (std::string_view(what) != "devices") continue;
      sub->add_option("--out", out_.out_path, "Write a device profile, for parallel.profile")
          ->type_name("FILE.yaml");
    }
    CLI::App* peer = Command(*bench, "peer", "The other process of bench transport", "");
    peer->group("");  // Not in the help: `bench transport` starts it.
    peer->add_option("--scheduler", out_.scheduler)->required();
    peer->add_option("--format", out_.format)->required();
    CLI::App* train = Command(*bench, "train", "Measure training of a job, and where the time goes",
                              "bench train configs/frappe_deepfm.yaml --budget");
    JobFlags(train, false);
    train->add_flag("--json", out_.json, "One JSON object");
    train->add_flag("--budget", out_.budget, "A step's time by kind of work (no job: four models)");
  }

  CommandLine& out_;
  CLI::App app_{"Dovetail: recommendation models whose tables do not fit in one machine's memory."};
};

}  // namespace

int ParseCommandLine(int argc, char** argv, CommandLine& out) {
  out.program = argv[0];
  Parser parser(out);
  const int parsed = parser.Parse(argc, argv);
  // The other roles get the key, too. It comes last, so it counts.
  if (!out.init.empty()) out.overrides.push_back(fmt::format("init.from=\"{}\"", out.init));
  return parsed;
}

std::vector<std::string> SharedArguments(const CommandLine& line) {
  std::vector<std::string> arguments = {line.job_path};
  for (const std::string& set : line.overrides) {
    arguments.push_back("--set");
    arguments.push_back(set);
  }
  for (const auto& [name, level] : kLevels) {
    if (level == line.log_level) {
      arguments.push_back("--log-level");
      arguments.push_back(name);
    }
  }
  return arguments;
}

}  // namespace dt::cli
