import { changed, type Mistake } from './mistake.ts';

const judgeWithoutPrices = {
  mistake: 'a limit in USD, and a judge without prices',
  files: {
    'offsite.yaml': `models:
  m: { scripted: script.yaml }
  strict: { wire: openai-chat, baseUrl: "http://127.0.0.1:9/v1" }
  unused: { wire: openai-chat, baseUrl: "http://127.0.0.1:9/v1" }
budgets: { trial: { usd: 5 } }
`,
    ...changed('suite.yaml', 'cases:', 'judges: [strict]\ncases:'),
  },
  printed: [
    'offsite.yaml:5:21: budgets.trial.usd: the model strict has no prices, so its cost cannot be limited; set its prices, or limit tokens instead',
  ],
};

export const inConfigurations: readonly Mistake[] = [
  judgeWithoutPrices,
  ...['run --dry-run', 'check'].map((command) => ({
    ...judgeWithoutPrices,
    mistake: `${judgeWithoutPrices.mistake}: ${command}`,
    args: [...command.split(' '), 'suite.yaml'],
  })),
  {
    mistake: 'a key that is not set, of a model with prices',
    files: {
      'offsite.yaml': `models:
  m:
    wire: openai-chat
    baseUrl: http://127.0.0.1:9/v1
    apiKeyEnv: KEY_OF_M
    prices: { date: 2026-01-01, input: 1, output: 2 }
`,
    },
    printed: [
      'error: the model m needs a key, and KEY_OF_M is not set',
      '  Set KEY_OF_M, or name another variable as apiKeyEnv of the model in offsite.yaml.',
    ],
  },
  {
    mistake: 'a key in the singular, which deeper places have too',
    files: {
      'offsite.yaml': `model:
  m: { scripted: script.yaml }
`,
    },
    printed: ['offsite.yaml:1:1: model: unknown key; did you mean "models"?'],
  },
  {
    mistake: 'a key in a file',
    files: changed(
      'offsite.yaml',
      'scripted: script.yaml',
      'wire: openai-chat, baseUrl: "http://127.0.0.1:9/v1", apiKey: sk-1',
    ),
    printed: [
      'offsite.yaml:2:61: models.m.apiKey: unknown key; keys stay in the environment: name the variable that holds it as apiKeyEnv',
    ],
  },
  {
    mistake: 'a misspelled price of a scripted model',
    files: changed('offsite.yaml', 'yaml', 'yaml, prices: { date: 2026-01-01, inptu: 1, output: 2 }'),
    printed: [
      'offsite.yaml:2:31: models.m.prices.input: is required: expected a number',
      'offsite.yaml:2:59: models.m.prices.inptu: unknown key; did you mean "input"?',
    ],
  },
  {
    mistake: 'a misspelled key that says what kind of model it is',
    files: changed('offsite.yaml', 'scripted', 'script'),
    printed: [
      'offsite.yaml:2:3: models.m.scripted: is required: expected a text',
      'offsite.yaml:2:8: models.m.script: unknown key; did you mean "scripted"?',
    ],
  },
  {
    mistake: 'a wire that there is not',
    files: changed('offsite.yaml', 'scripted: script.yaml', 'wire: openai, baseUrl: "http://127.0.0.1:9/v1"'),
    printed: [
      'offsite.yaml:2:8: models.m.wire: expected openai-chat, openai-responses, anthropic-messages, gemini, or a list of them',
    ],
  },
  {
    mistake: 'an address without its protocol',
    files: changed('offsite.yaml', 'scripted: script.yaml', 'wire: openai-chat, baseUrl: "127.0.0.1:9/v1"'),
    printed: ['offsite.yaml:2:27: models.m.baseUrl: expected a URL that begins with https:// or http://'],
  },
  {
    mistake: 'memory without a unit',
    files: changed('offsite.yaml', '3g', '512'),
    printed: [
      'offsite.yaml:6:12: sandboxes.roomy.memory: 512 bytes are too few to start anything; expected a size such as 512m or 2g',
    ],
  },
  {
    mistake: 'memory in a unit that there is not',
    files: changed('offsite.yaml', '3g', '512MB'),
    printed: ['offsite.yaml:6:12: sandboxes.roomy.memory: expected a size such as 512m or 2g'],
  },
  {
    mistake: 'a time without a unit',
    files: changed('offsite.yaml', 'memory: 3g', 'timeouts: { harness: 30 }'),
    printed: [
      'offsite.yaml:6:24: sandboxes.roomy.timeouts.harness: expected a duration such as 90s, 10m or 2h',
    ],
  },
  {
    mistake: 'a number as a text',
    files: changed('offsite.yaml', 'memory: 3g', 'cpus: two'),
    printed: ['offsite.yaml:6:12: sandboxes.roomy.cpus: expected a number, but this is a text'],
  },
  {
    mistake: 'a variable with its braces, in a map of braces',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what somebody wrote
    files: { 'offsite.yaml': 'models: { m: { wire: gemini, apiKeyEnv: ${X} } }\n' },
    args: ['models', 'list'],
    printed: [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: what is printed
      'offsite.yaml:1:41: quote a text with braces: "${X}"; where a variable is named, write X alone',
    ],
  },
  {
    mistake: 'a section with a typo',
    files: changed('offsite.yaml', 'models', 'modles'),
    printed: ['offsite.yaml:1:1: modles: unknown key; did you mean "models"?'],
  },
  {
    mistake: 'a script of a model that is not there',
    files: changed('offsite.yaml', 'scripted: script', 'scripted: scirpt'),
    printed: ['offsite.yaml:2:8: models.m.scripted: there is no file PROJECT/scirpt.yaml'],
  },
  {
    mistake: 'keys of a suite, of a script and of Harbor in the configuration',
    files: changed(
      'offsite.yaml',
      'models:\n  m: { scripted: script.yaml',
      'judges: [m]\nn_concurrent_trials: 4\nmodels:\n  m: { scripted: script.yaml, fillForms: true',
    ),
    printed: [
      'offsite.yaml:1:1: judges: unknown key here; a suite names its judges; daemon.judges has those of runs that a daemon finds',
      'offsite.yaml:2:1: n_concurrent_trials: unknown key; here that is `concurrency`',
      'offsite.yaml:4:31: models.m.fillForms: unknown key here; it belongs in the script file, which `scripted` names',
    ],
  },
  {
    mistake: 'a script of a model with a typo',
    files: {
      'script.yaml': `turns:
  - txt: hello
`,
    },
    printed: ['PROJECT/script.yaml:2:5: turns[0].txt: unknown key; did you mean "text"?'],
  },
  {
    mistake: 'a sandbox that no engine can provide',
    files: {
      ...changed('suite.yaml', 'bash', 'bash, sandbox: roomy'),
      ...changed('offsite.yaml', 'memory: 3g', 'security: strict, user: root'),
    },
    printed: [
      'offsite.yaml:6:3: sandboxes.roomy: This engine cannot provide what the sandbox "roomy" requires: the strict profile for root: name another user. Change the sandbox, or use an engine that supports it.',
    ],
  },
];
