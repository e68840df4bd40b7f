import { help, type Mistake } from './mistake.ts';

export const inTheCommandLine: readonly Mistake[] = [
  {
    mistake: 'a page in place of evidence',
    files: { 'report.html': '<!doctype html>\n<p>A page.</p>\n' },
    args: ['audit', 'report.html'],
    printed: [
      'error: report.html is not evidence that can be read: it is not compressed with zstd',
      '  Name the file that `offsite export --evidence` wrote.',
    ],
  },
  {
    mistake: 'a case of a commit where there is no repository and no suite',
    args: ['case', 'add', '--commit', 'HEAD'],
    printed: [
      'error: evals/suite.yaml does not exist',
      '  In the git repository of the change, name a suite with --suite, or write one: offsite init',
    ],
  },
  {
    mistake: 'a command with a typo',
    args: ['rnu', 'suite.yaml'],
    printed: ["error: unknown command 'rnu'", '(Did you mean run?)', help],
  },
  {
    mistake: 'a command below a command with a typo',
    args: ['service', 'prompts', 'gett', 'x'],
    printed: ["error: unknown command 'gett'", '(Did you mean get?)', help],
  },
  {
    mistake: 'a command below one that does something itself, with a typo',
    args: ['models', 'chek', 'm'],
    printed: ["error: unknown command 'chek'", '(Did you mean check?)', help],
  },
  {
    mistake: 'a variable of the shell that is not set, for a batch',
    args: ['compare', ''],
    printed: ["error: the argument 'a' is empty", help],
  },
  {
    mistake: 'a variable of the shell that is not set, for an option',
    args: ['run', 'suite.yaml', '--compare-to', ''],
    printed: ["error: the value of option '--compare-to <batch>' is empty", help],
  },
  {
    mistake: 'the last word of a command',
    args: ['backup', 'folder'],
    printed: ["error: unknown command 'backup'", '(Did you mean data backup?)', help],
  },
  {
    mistake: 'a batch that is resumed with the command that ends a pause of the daemon',
    args: ['daemon', 'resume', 'batch_1'],
    printed: [
      "error: offsite daemon resume takes no 'batch_1'",
      '(Did you mean offsite resume batch_1?)',
      help,
    ],
  },
  {
    mistake: 'a batch that is paused with the command that pauses the daemon',
    args: ['daemon', 'pause', 'batch_1'],
    printed: [
      "error: offsite daemon pause takes no 'batch_1'",
      '(Did you mean offsite daemon cancel batch_1, which ends one batch?)',
      help,
    ],
  },
  {
    mistake: 'a daemon that is asked for by the name of its data folder',
    args: ['daemon', 'status', 'd1'],
    printed: ["error: offsite daemon status takes no 'd1'", '(Did you mean --data-folder d1?)', help],
  },
  {
    mistake: 'a suite for the daemons of a service, queued for the daemon of this folder',
    args: ['daemon', 'enqueue', 'suite.yaml', '--for-daemons'],
    printed: [
      "error: unknown option '--for-daemons'",
      '(Did you mean offsite service start --for-daemons?)',
      help,
    ],
  },
  {
    mistake: 'a name of a key without its option',
    args: ['service', 'keys', 'create', 'bob'],
    printed: ["error: offsite service keys create takes no 'bob'", '(Did you mean --name bob?)', help],
  },
  {
    mistake: 'a port without its option',
    args: ['serve', '4600'],
    printed: ["error: offsite serve takes no '4600'", '(Did you mean --port 4600?)', help],
  },
  {
    mistake: 'a suite that is given to the daemon with the word of `offsite run`',
    args: ['daemon', 'run', 'suite.yaml'],
    printed: ["error: unknown command 'run'", '(Did you mean daemon enqueue?)', help],
  },
  {
    mistake: 'the queue of the daemon, as a list',
    args: ['daemon', 'list'],
    printed: ["error: unknown command 'list'", '(Did you mean daemon status?)', help],
  },
  {
    mistake: 'a unit of a user that runs as another',
    args: ['daemon', 'install', '--user', '--run-as', 'nobody'],
    printed: ["error: option '--run-as <user>' cannot be used with option '--user'", help],
  },
  {
    mistake: 'a daemon that is started with a word that other programs have',
    args: ['daemon', 'start'],
    printed: [
      "error: unknown command 'start'",
      '(Did you mean offsite daemon, without a further word?)',
      help,
    ],
  },
  {
    mistake: 'a daemon that is stopped with a word that other programs have',
    args: ['daemon', 'stop'],
    printed: ["error: unknown command 'stop'", '(Did you mean offsite daemon drain?)', help],
  },
  {
    mistake: 'the command of another program',
    args: ['eval', 'suite.yaml'],
    printed: ["error: unknown command 'eval'", '(Did you mean run?)', help],
  },
  {
    mistake: 'an option of another program',
    args: ['run', 'suite.yaml', '--repeat', '3'],
    printed: ["error: unknown option '--repeat'", '(Did you mean --trials?)', help],
  },
  ...[
    ['run', 'suite.yaml', '--n-concurrent', '4'],
    ['run', 'suite.yaml', '--max-samples=4'],
    ['resume', '--max-parallel', '4'],
    ['resume', '--max-concurrency', '4'],
  ].map((args) => ({
    mistake: `trials at a time, as other programs call them: offsite ${args.join(' ')}`,
    args,
    printed: [
      `error: unknown option '${args.find((word) => word.startsWith('--'))?.replace('=4', '')}'`,
      '(Did you mean --concurrency?)',
      help,
    ],
  })),
  {
    mistake: 'how many tasks, as Harbor calls it',
    args: ['run', '--tasks', '.', '--n-tasks', '3'],
    printed: ["error: unknown option '--n-tasks'", '(Did you mean --limit?)', help],
  },
  {
    mistake: 'an address to serve at, as the daemon takes it',
    args: ['serve', '--listen', '127.0.0.1:4600'],
    printed: ["error: unknown option '--listen'", '(Did you mean --host and --port?)', help],
  },
  {
    mistake: 'an option with a typo',
    args: ['run', 'suite.yaml', '--concurency', '2'],
    printed: ["error: unknown option '--concurency'", '(Did you mean --concurrency?)', help],
  },
  {
    mistake: 'a file for JSON, which goes to stdout',
    args: ['run', 'suite.yaml', '--json', 'results.json'],
    printed: ['error: --json takes no file: write --json > results.json', help],
  },
  {
    mistake: 'an option without its value',
    args: ['run', 'suite.yaml', '--junit'],
    printed: ["error: option '--junit <file>' argument missing", help],
  },
  {
    mistake: 'a value that is no number',
    args: ['run', 'suite.yaml', '-c', 'two'],
    printed: [
      "error: option '-c, --concurrency <n>' argument 'two' is invalid. expected a whole number from 1.",
      help,
    ],
  },
  {
    mistake: 'a percentage in place of a rate',
    args: ['run', 'suite.yaml', '--fail-under', '90'],
    printed: [
      "error: option '--fail-under <rate>' argument '90' is invalid. expected a number from 0 to 1: 90 % is 0.9.",
      help,
    ],
  },
  {
    mistake: 'a choice that there is not',
    args: ['run', '--tasks', '.', '--format', 'harbour'],
    printed: [
      "error: option '--format <format>' argument 'harbour' is invalid. Allowed choices are harbor, terminal-bench, swe-bench.",
      help,
    ],
  },
  {
    mistake: 'no file',
    args: ['run'],
    printed: [
      'error: expected a suite file, or --tasks with a folder',
      '  Name one of them. There is suite.yaml here.',
    ],
  },
  {
    mistake: 'no file, to check',
    files: { 'evals/suite.yaml': '' },
    args: ['check'],
    printed: [
      'error: expected a suite file, or --tasks with a folder',
      '  Name one of them. There is evals/suite.yaml here.',
    ],
  },
  {
    mistake: 'an option before the command',
    args: ['--json', 'run', 'suite.yaml'],
    printed: ["error: unknown option '--json'", '(Write it after the command: offsite run --json)', help],
  },
  {
    mistake: 'the option of another command for a comparison',
    args: ['run', 'suite.yaml', '--baseline', 'last'],
    printed: [
      "error: unknown option '--baseline'",
      '(Did you mean --compare-to last, or --compare-to baseline?)',
      help,
    ],
  },
  {
    mistake: 'a file with the id of a batch in place of the id',
    files: { 'last-green': 'batch_1\n' },
    args: ['run', 'suite.yaml', '--compare-to', 'last-green'],
    printed: [
      'error: last-green is a file, not a batch',
      '  If it has the id of a batch: --compare-to "$(cat last-green)"',
    ],
  },
  {
    mistake: 'two files',
    args: ['run', 'suite.yaml', 'other.yaml'],
    printed: [
      "error: too many arguments for 'run'. Expected 1 argument but got 2: suite.yaml, other.yaml.",
      help,
    ],
  },
  {
    mistake: 'a file that is not there',
    args: ['run', 'suit.yaml'],
    printed: [
      'error: cannot read suit.yaml: it does not exist',
      '  Check the path. In a file it is relative to that file, otherwise to the folder in which the command runs.',
    ],
  },
  {
    mistake: 'the id of a batch in place of a suite',
    args: ['run', 'batch_8Yq1-_xQ'],
    printed: [
      'error: batch_8Yq1-_xQ looks like the id of a batch or a set; name the file of a suite',
      '  Show it with `offsite show batch_8Yq1-_xQ`, or continue it with `offsite resume batch_8Yq1-_xQ`.',
    ],
  },
  {
    mistake: 'a folder in place of a file',
    args: ['run', '.'],
    printed: [
      'error: cannot read .: it is a folder; name a file in it',
      '  Check the path. In a file it is relative to that file, otherwise to the folder in which the command runs.',
    ],
  },
  {
    mistake: 'a configuration that is not there',
    args: ['run', 'suite.yaml', '--config', 'offsite.yml'],
    printed: [
      'error: the configuration file offsite.yml does not exist',
      '  The path comes from --config or OFFSITE_CONFIG. Correct it or remove it.',
    ],
  },
  {
    mistake: 'tasks without a variant',
    args: ['run', '--tasks', 'tasks'],
    printed: [
      'error: --tasks needs a variant',
      '  Add --variant HARNESS:MODEL, such as --variant codex:sonnet.',
    ],
  },
  {
    mistake: 'an option for tasks beside a suite',
    args: ['run', 'suite.yaml', '--profile', 'worker', '--threshold', '0.8'],
    printed: [
      'error: --profile, --threshold are only for --tasks; a suite file has its own settings',
      '  To fail the command below a pass rate, use --fail-under. What a judge must reach is judge.threshold in the suite.',
    ],
  },
  {
    mistake: 'a case that the suite does not have',
    args: ['run', 'suite.yaml', '--include', 'b'],
    printed: ['error: no case matches "b"; available: a', '  A * matches any characters of an id.'],
  },
  {
    mistake: 'cases with commas between them',
    args: ['run', 'suite.yaml', '--include', 'a,b'],
    printed: ['error: no case matches "a,b"; available: a', '  Separate them by spaces: a b'],
  },
  {
    mistake: 'what another program calls an option',
    args: ['run', 'suite.yaml', '--parallel', '4'],
    printed: [
      "error: unknown option '--parallel'",
      '(Did you mean --concurrency?)',
      'Run it with --help to see commands and options.',
    ],
  },
  {
    mistake: 'a variant that the suite does not have',
    args: ['run', 'suite.yaml', '--variant', 'm/bach'],
    printed: [
      'error: the suite has no variant m/bach; did you mean "m/bash"? available: m/bash',
      '  With a suite file, --variant takes names of its variants; with --tasks, HARNESS:MODEL.',
    ],
  },
  {
    mistake: 'more trials than a batch may have',
    args: ['run', 'suite.yaml', '--trials', '20'],
    printed: [
      "error: option '--trials <n>' argument '20' is invalid. expected a whole number from 1 to 10, or auto.",
      help,
    ],
  },
  {
    mistake: 'trials until a rate is known in a dry run',
    args: ['run', 'suite.yaml', '--trials', 'auto', '--dry-run'],
    printed: [
      'error: --trials auto cannot be used with --dry-run',
      '  Leave one of them out, or name how many trials each run has: --trials 3.',
    ],
  },
  {
    mistake: 'an option that needs another',
    args: ['run', 'suite.yaml', '--fail-on-regression'],
    printed: [
      'error: --fail-on-regression needs --compare-to',
      '  Add --compare-to, or remove --fail-on-regression.',
    ],
  },
  {
    mistake: 'one file for two reports',
    args: ['run', 'suite.yaml', '--junit', 'results.xml', '--ctrf', './results.xml'],
    printed: [
      'error: --junit and --ctrf both name ./results.xml',
      '  Nothing was started. Give each of them a file of its own.',
    ],
  },
  {
    mistake: 'one file for two forms of an export',
    args: ['export', '--json', 'batch', '--csv', 'batch'],
    printed: [
      'error: --json and --csv both name batch',
      '  Nothing was started. Give each of them a file of its own.',
    ],
  },
  {
    mistake: 'a batch to resume, before anything has run',
    args: ['resume', 'batch_x'],
    printed: [
      'error: there is no data folder of Offsite at HOME/data',
      '  The first `offsite run` makes it. Results that are elsewhere: name their folder with --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
    ],
  },
  {
    mistake: 'a file of evidence that there is not',
    args: ['audit', 'x.tar.zst'],
    printed: [
      'error: there is no file x.tar.zst',
      '  Name the file that `offsite export --evidence` wrote, or a batch: `offsite data batches` lists them.',
    ],
  },
  {
    mistake: 'a batch to abandon, in a data folder that there is not',
    args: ['data', 'abandon', 'batch_x'],
    printed: [
      'error: there is no data folder of Offsite at HOME/data',
      '  The first `offsite run` makes it. Results that are elsewhere: name their folder with --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
    ],
  },
  {
    mistake: 'a model that there is not, to check',
    args: ['models', 'check', 'n'],
    printed: ['error: there is no model n in the configuration', '  offsite.yaml has: m.'],
  },
  {
    mistake: 'a case of nothing',
    args: ['case', 'add', '--suite', 'gone.yaml'],
    printed: [
      'error: gone.yaml does not exist',
      '  In the git repository of the change, name a suite with --suite, or write one: offsite init',
    ],
  },
];
