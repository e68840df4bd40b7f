import { help, type Mistake } from './mistake.ts';

/** Command lines, what is wrong with each, and what is said to be meant. */
const meant = [
  ['rnu suite.yaml', "unknown command 'rnu'", 'run'],
  ['service prompts gett x', "unknown command 'gett'", 'get'],
  ['models chek m', "unknown command 'chek'", 'check'],
  ['backup folder', "unknown command 'backup'", 'data backup'],
  ['daemon resume batch_1', "offsite daemon resume takes no 'batch_1'", 'offsite resume batch_1'],
  ['daemon pause d1', "offsite daemon pause takes no 'd1'", '--data-folder d1'],
  ['daemon status d1', "offsite daemon status takes no 'd1'", '--data-folder d1'],
  [
    'daemon enqueue suite.yaml --for-daemons',
    "unknown option '--for-daemons'",
    'offsite service start --for-daemons',
  ],
  ['service keys create bob', "offsite service keys create takes no 'bob'", '--name bob'],
  ['serve 4600', "offsite serve takes no '4600'", '--port 4600'],
  ['daemon run suite.yaml', "unknown command 'run'", 'daemon enqueue'],
  ['daemon list', "unknown command 'list'", 'daemon status'],
  ['daemon start', "unknown command 'start'", 'offsite daemon, without a further word'],
  ['daemon stop', "unknown command 'stop'", 'offsite daemon drain'],
  ['eval suite.yaml', "unknown command 'eval'", 'run'],
  ['run suite.yaml --fail-below 0.8', "unknown option '--fail-below'", '--fail-under'],
  ['run suite.yaml --repeat 3', "unknown option '--repeat'", '--trials'],
  ['run suite.yaml --n-concurrent 4', "unknown option '--n-concurrent'", '--concurrency'],
  ['run suite.yaml --max-samples=4', "unknown option '--max-samples'", '--concurrency'],
  ['resume --max-parallel 4', "unknown option '--max-parallel'", '--concurrency'],
  ['resume --max-concurrency 4', "unknown option '--max-concurrency'", '--concurrency'],
  ['run --tasks . --n-tasks 3', "unknown option '--n-tasks'", '--limit'],
  ['serve --listen 127.0.0.1:4600', "unknown option '--listen'", '--host and --port'],
  ['run suite.yaml --concurency 2', "unknown option '--concurency'", '--concurrency'],
  [
    'run suite.yaml --baseline last',
    "unknown option '--baseline'",
    '--compare-to last, or --compare-to baseline',
  ],
  ['run suite.yaml --parallel 4', "unknown option '--parallel'", '--concurrency'],
].map(([line = '', wrong, right]) => ({
  mistake: `offsite ${line}`,
  args: line.split(' '),
  printed: [`error: ${wrong}`, `(Did you mean ${right}?)`, help],
}));

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
    mistake: 'a unit of a user that runs as another',
    args: ['daemon', 'install', '--user', '--run-as', 'nobody'],
    printed: ["error: option '--run-as <user>' cannot be used with option '--user'", help],
  },
  ...meant,
  {
    mistake: 'a file for JSON, which goes to stdout',
    args: ['run', 'suite.yaml', '--json', 'results.json'],
    printed: ['error: --json takes no file: write --json > results.json', help],
  },
  {
    mistake: 'an option without its value',
    args: ['run', 'suite.yaml', '--junit'],
    printed: [
      "error: option '--junit <file>' argument missing",
      '(also write the results as JUnit XML)',
      help,
    ],
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
  ...['1.2', '80x', '120%'].map((value) => ({
    mistake: `${value} in place of a rate`,
    args: ['run', 'suite.yaml', '--fail-under', value],
    printed: [
      `error: option '--fail-under <rate>' argument '${value}' is invalid. expected a number from 0 to 1, such as 0.8.`,
      help,
    ],
  })),
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
