import { changed, type Mistake } from './mistake.ts';

export const inSuites: readonly Mistake[] = [
  {
    mistake: 'a key of a case with a typo',
    files: changed('suite.yaml', 'verify', 'verfy'),
    printed: ['suite.yaml:6:5: cases[0].verfy: unknown key; did you mean "verify"?'],
  },
  {
    mistake: 'a key of a variant with a typo',
    files: changed('suite.yaml', 'harness', 'harnes'),
    printed: [
      'suite.yaml:3:5: variants[0].harness: is required: expected a text',
      'suite.yaml:3:17: variants[0].harnes: unknown key; did you mean "harness"?',
    ],
  },
  {
    mistake: 'a key of a suite with a typo',
    files: changed('suite.yaml', 'cases', 'case'),
    printed: ['suite.yaml:4:1: case: unknown key; did you mean "cases"?'],
  },
  {
    mistake: 'a key in the wrong place',
    files: changed('suite.yaml', 'cases', 'verify: "true"\ncases'),
    printed: ['suite.yaml:4:1: verify: unknown key here; it belongs at cases[].verify'],
  },
  {
    mistake: 'the configuration in place of the suite',
    args: ['run', 'offsite.yaml'],
    printed: [
      'offsite.yaml:1:1: is a configuration (models, profiles, sandboxes), not a suite; name the suite: Offsite finds the configuration beside it, or takes --config FILE',
    ],
  },
  {
    mistake: 'a prompt for each case, and a key that no part of a suite has',
    files: changed('suite.yaml', 'verify', 'prompt: Do this.\n    workspace: .\n    verify'),
    printed: [
      'suite.yaml:6:5: cases[0].prompt: unknown key; here that is `variables` of the case, for {{name}} in suite.prompt',
      'suite.yaml:7:5: cases[0].workspace: unknown key; expected id, name, tags, variables, source, prepare, verify, checks, judge, validator, user, tests, steps, overall, solution, protected, artifacts, artifactsExcept, agent, environment',
    ],
  },
  {
    mistake: 'a command that YAML reads as a boolean',
    files: changed('suite.yaml', '"true"', 'true'),
    printed: [
      'suite.yaml:6:5: cases[0].verify: expected a script, {file: path} or {source: script}, with in, keep, ignore; without quotes YAML reads it as a boolean: quote it',
    ],
  },
  {
    mistake: 'no prompt',
    files: changed('suite.yaml', 's, prompt: "Do it."', 's'),
    printed: [
      'suite.yaml:1:1: suite.prompt: is required: expected a text, {file: path}, or {prompt: id, channel: name}',
    ],
  },
  {
    mistake: 'no variants',
    files: changed('suite.yaml', '\n  - { model: m, harness: bash }', ' []'),
    printed: ['suite.yaml:2:1: variants: expected at least 1 item'],
  },
  {
    mistake: 'too many trials',
    files: changed('suite.yaml', 'variants', 'trials: 100\nvariants'),
    printed: ['suite.yaml:2:1: trials: expected a number of at most 10'],
  },
  {
    mistake: 'a case without a check',
    files: changed('suite.yaml', '    verify: "true"\n', ''),
    printed: [
      'suite.yaml:5:5: cases[0]: has neither verify nor checks nor a judge, validator or tests: with nothing to check, every trial would be void',
    ],
  },
  {
    mistake: 'two cases of one id',
    files: changed('suite.yaml', '- id', '- { id: a, verify: "true" }\n  - id'),
    printed: ['suite.yaml:6:5: cases[1].id: "a" is already used by cases[0]'],
  },
  {
    mistake: 'a variable that there is not',
    files: changed('suite.yaml', '"Do it', '"Do {{what}}'),
    printed: [
      'suite.yaml:1:17: suite.prompt: {{what}} is not a variable in case a; write \\{{ for literal braces',
    ],
  },
  {
    mistake: 'a script that is not there',
    files: changed('suite.yaml', '"true"', '{ file: verify.sh }'),
    printed: ['suite.yaml:6:5: cases[0].verify: cannot read PROJECT/verify.sh: it does not exist'],
  },
  {
    mistake: 'a file outside the folder of the suite',
    files: { ...changed('suite.yaml', '"true"', '{ file: ../verify.sh }'), '../verify.sh': 'true\n' },
    printed: [
      "suite.yaml:6:5: cases[0].verify: cannot read HOME/verify.sh: it is outside the suite's folder .; permit it with --allow-outside, or allowOutside in offsite.yaml",
    ],
  },
  {
    mistake: 'a key of the suite in a case, a quoted number, and a variant as it is displayed',
    files: changed(
      'suite.yaml',
      '\n  - { model: m, harness: bash }\ncases:\n  - id: a',
      ' [m/bash]\ntrials: "3"\ncases:\n  - id: a\n    trials: 3',
    ),
    printed: [
      'suite.yaml:2:12: variants[0]: expected a model and a harness, such as {model: sonnet, harness: codex}',
      'suite.yaml:3:1: trials: expected a number, but this is a text: remove its quotes',
      'suite.yaml:6:5: cases[0].trials: unknown key here; it belongs at trials',
    ],
  },
  {
    mistake: 'a text in place of a list',
    files: changed('suite.yaml', 'verify', 'artifacts: "*.txt"\n    verify'),
    printed: ['suite.yaml:6:5: cases[0].artifacts: expected a list, but this is a text'],
  },
  {
    mistake: 'words of other runners, and a judge beside the cases',
    files: changed(
      'suite.yaml',
      'cases:\n  - id: a\n    verify: "true"',
      'epochs: 3\njudge: { rubric: "Is it good?", threshold: 0.5 }\ncases:\n  - id: a\n    verify: "true"\n    assert: [{ type: contains, value: hello }]\n    scorer: exact',
    ),
    printed: [
      'suite.yaml:4:1: epochs: unknown key; here that is `trials`',
      'suite.yaml:5:1: judge: unknown key; did you mean "judges"? "judge" belongs at cases[].judge',
      'suite.yaml:9:5: cases[0].assert: unknown key; here that is `checks` and `judge` of a case',
      'suite.yaml:10:5: cases[0].scorer: unknown key; here that is `checks`, `judge` or `validator` of a case',
    ],
  },
  {
    mistake: 'words of Inspect and Harbor for which there are keys of the same name elsewhere',
    files: changed(
      'suite.yaml',
      'bash }\ncases:\n  - id: a\n    verify: "true"',
      'bash, agent: bash }\ncases:\n  - id: a\n    target: hello\n    checks: [{ file: a.txt, notContains: x }]',
    ),
    printed: [
      'suite.yaml:3:32: variants[0].agent: unknown key; here that is `harness` of a variant',
      'suite.yaml:6:5: cases[0].target: unknown key; here that is `checks` or `verify` of a case',
      "suite.yaml:7:29: cases[0].checks[0].notContains: unknown key; here that is `run: '! grep ...'`",
    ],
  },
  {
    mistake: 'a key of the configuration in a suite, and keys for whose places this suite has no part',
    files: {
      'suite.yaml': `suite: { id: s, prompt: "Do it." }
models: { m: { scripted: script.yaml } }
variants:
  - { model: m, harness: bash, dockerfile: Dockerfile }
cases:
  - id: a
    timeout: 5m
    checks: [{ file: a.txt, path: x }, { path: a.txt, contains: x }, { command: ls, contains: x }]
`,
    },
    printed: [
      'suite.yaml:2:1: models: unknown key here; it belongs in offsite.yaml',
      'suite.yaml:4:32: variants[0].dockerfile: unknown key; expected name, model, harness, userModel, profile, sandbox',
      'suite.yaml:7:5: cases[0].timeout: unknown key; here that is `environment.timeouts`, or `timeouts` of a sandbox',
      'suite.yaml:8:29: cases[0].checks[0].path: unknown key; here that is `file`, or `json` with `at`',
      'suite.yaml:8:40: cases[0].checks[1]: expected {file: path}, {json: path, at: pointer}, or {run: command}, with contains, matches or equals',
      'suite.yaml:8:70: cases[0].checks[2]: expected {file: path}, {json: path, at: pointer}, or {run: command}, with contains, matches or equals',
    ],
  },
  {
    mistake: 'a model as a provider calls it',
    files: changed('suite.yaml', 'model: m', 'model: openai/gpt-4o'),
    printed: [
      'suite.yaml:3:7: variants[0].model: "openai/gpt-4o" is not a model of offsite.yaml; available: m; `offsite models add` adds one',
    ],
  },
  {
    mistake: 'a check in the form of promptfoo',
    files: changed('suite.yaml', 'verify: "true"', 'checks: [{ type: contains, value: hello }]'),
    printed: [
      'suite.yaml:6:14: cases[0].checks[0]: expected {file: path}, {json: path, at: pointer}, or {run: command}, with contains, matches or equals',
    ],
  },
  {
    mistake: 'the script of a model in the place of a suite',
    args: ['run', 'script.yaml'],
    printed: [
      'script.yaml:1:1: is the script of a model, not a suite: models.NAME.scripted of offsite.yaml names it, and a variant of a suite the model',
    ],
  },
  {
    mistake: 'a configuration without models in the place of a suite',
    files: {
      'offsite.yaml': `profiles:
  worker: { run: "true" }
`,
    },
    args: ['daemon', 'enqueue', 'offsite.yaml'],
    printed: [
      'offsite.yaml:1:1: is a configuration (models, profiles, sandboxes), not a suite; name the suite: Offsite finds the configuration beside it, or takes --config FILE',
    ],
  },
  {
    mistake: 'a variable inside braces, without quotes',
    files: changed('suite.yaml', 'verify: "true"', 'checks: [{ run: cat note, contains: about {{word}} }]'),
    printed: ['suite.yaml:6:47: quote the text that has {{word}}'],
  },
  {
    mistake: 'a configuration of promptfoo',
    files: {
      'suite.yaml': `prompts: ["Say {{word}}"]
providers: [openai:gpt]
tests:
  - vars: { word: hello }
    assert: [{ type: contains, value: hello }]
`,
    },
    printed: [
      'suite.yaml:1:1: is a configuration of promptfoo, not a suite: `offsite init` writes a first suite here, and in it prompts become suite.prompt, providers become variants, tests become cases, and llm-rubric becomes judge',
    ],
  },
  {
    mistake: 'rubrics that say nothing, and files of a judge outside the workspace',
    files: changed(
      'suite.yaml',
      'cases:\n  - id: a\n    verify: "true"',
      'judges: [m]\ncases:\n  - id: a\n    judge: { rubric: " ", threshold: 0.5 }\n  - id: b\n    variables: { what: "" }\n    judge: [{ rubric: "{{what}}", threshold: 0.5, files: [out.md, /out.md, ../out.md] }]',
    ),
    printed: [
      'suite.yaml:7:14: cases[0].judge.rubric: is empty: say what is good and what is not',
      'suite.yaml:10:15: cases[1].judge[0].rubric: is empty: say what is good and what is not',
      'suite.yaml:10:67: cases[1].judge[0].files[1]: leads out of the workspace: expected a glob in it, such as src/**',
      'suite.yaml:10:76: cases[1].judge[0].files[2]: leads out of the workspace: expected a glob in it, such as src/**',
    ],
  },
  {
    mistake: 'a placeholder that nobody has replaced',
    files: changed(
      'suite.yaml',
      'verify',
      'variables:\n      task: "TODO(offsite): say what the agent shall do"\n    verify',
    ),
    printed: [
      'suite.yaml:7:7: cases[0].variables.task: is still a placeholder; write what the agent is asked',
    ],
  },
];
